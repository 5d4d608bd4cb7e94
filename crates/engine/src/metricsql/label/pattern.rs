//! Functions that match labels with regular expressions.

use super::super::arguments::with_label;
use super::super::{Argument, CallContext, Series};
use crate::error::Result;
use re2::{Regexp, expanded_size_max};
use std::collections::HashMap;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    match context.name {
        "label_match" | "label_mismatch" => {
            context.expect_count(arguments, 3, 3)?;
            let mut series = context.take(arguments, 0)?;
            let name = context.text(arguments, 1)?;
            let regexp = context.anchored_regexp(context.text(arguments, 2)?)?;
            let is_match = context.name == "label_match";
            series.retain(|one| regexp.is_match(one.labels.get(name).unwrap_or("")) == is_match);
            Ok(series)
        }
        "label_transform" => {
            context.expect_count(arguments, 4, 4)?;
            let series = context.take(arguments, 0)?;
            let name = context.text(arguments, 1)?;
            let regexp = context.regexp(context.text(arguments, 2)?)?;
            let replacement = context.text(arguments, 3)?;
            Replacement { regexp, source: name, target: name, replacement }.run(context, series)
        }
        _ => {
            context.expect_count(arguments, 5, 5)?;
            let series = context.take(arguments, 0)?;
            let target = context.text(arguments, 1)?;
            let replacement = context.text(arguments, 2)?;
            let source = context.text(arguments, 3)?;
            let regexp = context.anchored_regexp(context.text(arguments, 4)?)?;
            Replacement { regexp, source, target, replacement }.run(context, series)
        }
    }
}

/// What is found in one label goes into another.
struct Replacement<'a> {
    regexp: Regexp,
    source: &'a str,
    target: &'a str,
    /// With `$1` and `${name}` for what the expression's groups match.
    replacement: &'a str,
}

impl Replacement<'_> {
    fn run(&self, context: &CallContext<'_>, mut series: Vec<Series>) -> Result<Vec<Series>> {
        // Few values usually stand for many series.
        let mut known: HashMap<String, Option<String>> = HashMap::new();
        for one in &mut series {
            let value = one.labels.get(self.source).unwrap_or("");
            if !known.contains_key(value) {
                known.insert(value.to_string(), self.replace(context, value)?);
            }
            if let Some(Some(replaced)) = known.get(value) {
                one.labels = with_label(&one.labels, self.target, replaced);
                context.check_labels(&one.labels)?;
            }
        }
        Ok(series)
    }

    /// The value with every match replaced, if there is any.
    fn replace(&self, context: &CallContext<'_>, value: &str) -> Result<Option<String>> {
        // What one match may become has to be known before it is written.
        context.check_size(expanded_size_max(self.replacement, value))?;
        let mut replaced = String::new();
        let mut end = None;
        for captures in self.regexp.regex().captures_iter(value) {
            let found = captures.get_match();
            replaced.push_str(&value[end.unwrap_or(0)..found.start()]);
            self.regexp.expand(self.replacement, &captures, &mut replaced);
            context.check_size(replaced.len())?;
            end = Some(found.end());
        }
        Ok(end.map(|end| replaced + &value[end..]))
    }
}
