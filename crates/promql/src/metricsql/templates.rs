//! The templates that every expression may use without defining them.

use crate::metricsql::parser;
use crate::metricsql::raw::Definition;
use std::sync::LazyLock;

/// A built-in template, which is called like a function.
#[derive(Debug)]
pub struct Template {
    /// Its name.
    pub name: &'static str,
    /// How it is called.
    pub usage: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// What it stands for: `name(parameters) = expression`.
    pub definition: &'static str,
    /// A use of it that needs no data.
    pub example: &'static str,
    /// What the example gives at 01:00:00 on the second day of 1970 with a step of a minute.
    pub answer: &'static str,
}

/// All of them, by name.
pub static TEMPLATES: &[Template] = &[
    Template {
        name: "alias",
        usage: r#"alias(q, "name")"#,
        doc: "Gives all series a name.",
        definition: r#"alias(q, name) = label_set(q, "__name__", name)"#,
        example: r#"alias(time(), "now")"#,
        answer: "now 90000",
    },
    Template {
        name: "range_median",
        usage: "range_median(q)",
        doc: "The median of each series over the query's range.",
        definition: "range_median(q) = range_quantile(0.5, q)",
        example: "range_median(time())",
        answer: "{} 90000",
    },
    Template {
        name: "ru",
        usage: "ru(free, max)",
        doc: "How much of a resource is used, in percent.",
        definition: "ru(free, max) = \
            clamp_min(max - clamp_min(free, 0), 0) / clamp_min(max, 0) * 100",
        example: "ru(25, 100)",
        answer: "{} 75",
    },
    Template {
        name: "ttf",
        usage: "ttf(free)",
        doc: "In how many seconds a resource that shrinks will be used up, smoothed.",
        definition: "ttf(free) = smooth_exponential(\
            clamp_max(clamp_max(-free, 0) / clamp_max(deriv_fast(free), 0), 365*24*3600), \
            clamp_max(step()/300, 1))",
        example: "ttf((91000 - time())[1h:1m])",
        answer: "{} 1000",
    },
];

/// The definitions, parsed.
pub(super) static BUILT_IN: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    // That none is lost here is a test.
    TEMPLATES.iter().filter_map(|row| parser::parse_definition(row.definition).ok()).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_definitions_parse() {
        let names: Vec<&str> = BUILT_IN.iter().map(|built| built.name.as_str()).collect();
        let listed: Vec<&str> = TEMPLATES.iter().map(|row| row.name).collect();
        assert_eq!(names, listed);
        assert!(listed.is_sorted());
    }
}
