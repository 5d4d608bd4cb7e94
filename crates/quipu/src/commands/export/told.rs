//! What an export wrote, and what it had to leave out: told at its end, and remembered with how far it is.

use cli::quantity::{format_count, format_size};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

/// Counts of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Samples that were written.
    pub samples: u64,
    /// What was not, in words, and how often.
    pub left_out: BTreeMap<String, u64>,
}

impl Told {
    /// Counts what was left out.
    pub fn leave_out(&mut self, what: &str, count: u64) {
        if 0 < count {
            match self.left_out.get_mut(what) {
                Some(known) => *known += count,
                None => drop(self.left_out.insert(what.to_string(), count)),
            }
        }
    }

    /// Says what was left out.
    pub fn say(&self) {
        for (what, count) in &self.left_out {
            eprintln!("quipu: {what}: {count}");
        }
    }
}

/// What people see of an export under way, on standard error.
pub struct Shown {
    bar: ProgressBar,
    start: Instant,
    /// Samples of runs before this one.
    before: u64,
}

impl Shown {
    /// Of so many pieces, of which some are done.
    ///
    /// # Errors
    /// Never, unless the template is wrong.
    pub fn new(what: &str, pieces: u64, done: u64, before: u64) -> anyhow::Result<Shown> {
        let bar = ProgressBar::new(pieces);
        let template = format!("{{bar:30}} {{pos}} of {{len}} {what}, {{msg}}, {{eta}} left");
        bar.set_style(ProgressStyle::with_template(&template)?);
        bar.set_position(done);
        bar.reset_eta();
        bar.set_message("0 samples");
        Ok(Shown { bar, start: Instant::now(), before })
    }

    /// Shows so many samples.
    pub fn samples(&self, samples: u64) {
        let seconds = self.start.elapsed().as_secs_f64().max(0.001);
        let rate = samples.saturating_sub(self.before) as f64 / seconds;
        self.bar.set_message(format!(
            "{} samples, {}/s",
            format_count(samples),
            format_count(rate as u64)
        ));
    }

    /// Shows so many bytes, where nobody looks at samples.
    pub fn size(&self, size: u64) {
        self.bar.set_message(format_size(size));
    }

    /// A piece is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// It is over.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
