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

    /// One histogram of the family: `buckets` are counts up to each bound in order, not cumulative;
    /// what is left of `count` lies above all bounds.
    pub fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        buckets: impl Iterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        let mut below = 0;
        for (bound, in_bucket) in buckets {
            below += in_bucket;
            let bound = bound.to_string();
            let labels = [labels, &[("le", bound.as_str())]].concat();
            self.sample("_bucket", &labels, below as f64);
        }
        let labels_of_all = [labels, &[("le", "+Inf")]].concat();
        self.sample("_bucket", &labels_of_all, count as f64);
        self.sample("_sum", labels, sum);
        self.sample("_count", labels, count as f64);
    }

    /// A family of one sample.
    pub fn single(&mut self, name: &'static str, kind: &str, help: &str, number: &Number) {
        self.family(name, kind, help);
        self.sample("", &[], number.get() as f64);
    }
}

/// Fails where a sample stands under another family.
pub fn check_page(text: &str) {
    let mut family = "";
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(rest) => family = rest.split(' ').next().expect("a name"),
            None if line.starts_with('#') => {}
            None => assert!(line.starts_with(family), "{line} under {family}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_histograms_are_cumulative() {
        let mut page = Page::default();
        page.family("f", "histogram", "h.");
        page.histogram(&[("a", "b")], [(0.5, 1), (2.0, 3)].into_iter(), 5, 7.5);
        let lines: Vec<&str> = page.text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "f_bucket{a=\"b\",le=\"0.5\"} 1",
                "f_bucket{a=\"b\",le=\"2\"} 4",
                "f_bucket{a=\"b\",le=\"+Inf\"} 5",
                "f_sum{a=\"b\"} 7.5",
                "f_count{a=\"b\"} 5",
            ]
        );
    }
}
