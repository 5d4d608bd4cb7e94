//! The text of `/metrics` under construction, and the numbers that stand in it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter or a gauge.
#[derive(Default)]
pub struct Number(AtomicU64);

impl Number {
    /// Adds to it.
    pub fn add(&self, value: u64) {
        self.0.fetch_add(value, Relaxed);
    }

    /// Takes from it.
    pub fn subtract(&self, value: u64) {
        self.0.fetch_sub(value, Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Text exposition under construction.
#[derive(Default)]
pub struct Page {
    /// What is written so far.
    pub text: String,
    name: &'static str,
}

impl Page {
    /// Starts a family: what follows are its samples.
    pub fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        self.text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// One sample of the family, whose name `suffix` extends. Label values must need no escapes.
    pub fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (position, (name, value)) in labels.iter().enumerate() {
            debug_assert!(!value.contains(['"', '\\', '\n']), "label values are our own words");
            let opening = if position == 0 { '{' } else { ',' };
            self.text.push_str(&format!("{opening}{name}=\"{value}\""));
        }
        self.text.push_str(if labels.is_empty() { " " } else { "} " });
        self.text.push_str(&format!("{value}\n"));
    }

    /// A family of one sample.
    pub fn single(&mut self, name: &'static str, kind: &str, help: &str, number: &Number) {
        self.family(name, kind, help);
        self.sample("", &[], number.get() as f64);
    }
}

/// Fails where a sample stands under another family.
#[cfg(test)]
pub(crate) fn check_page(text: &str) {
    let mut family = "";
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(rest) => family = rest.split(' ').next().expect("a name"),
            None if line.starts_with('#') => {}
            None => assert!(line.starts_with(family), "{line} under {family}"),
        }
    }
}
