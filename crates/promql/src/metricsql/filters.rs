//! Selectors with their templates expanded: the name and the filters of each set put together.

use crate::error::Span;
use crate::metricsql::ast::{Expr, Selector};
use crate::metricsql::raw::{self, Filter, Raw};
use crate::metricsql::with::{Expander, Node, Result, Scope};
use crate::quote::quote;
use model::{METRIC_NAME, MatchOp, Matcher};
use std::collections::HashSet;

impl<'a> Expander<'a> {
    /// A selector, or what the template that has the name of its metric makes of it.
    pub(super) fn selector(&mut self, scope: Scope, written: &'a raw::Selector) -> Result<Node> {
        let span = self.span(written.span);
        let mut sets = Vec::with_capacity(written.sets.len());
        for filters in &written.sets {
            sets.push(self.set(scope, written.name.as_ref(), filters)?);
        }
        self.spread_name(&mut sets, span)?;
        let selector = Selector { sets: without_empty(sets), span };
        let template = selector.metric_name().and_then(|name| self.find(scope, name));
        match template {
            // The name of a function is a metric's where there are no arguments.
            Some(idx) if !self.is_function(idx) => {
                let base = self.apply(idx, Vec::new(), span)?;
                self.filtered(base, selector)
            }
            _ => Ok((Expr::Selector(selector), 1)),
        }
    }

    /// The matchers of one set, the metric's name first.
    fn set(
        &mut self,
        scope: Scope,
        name: Option<&(String, Span)>,
        filters: &'a [Filter],
    ) -> Result<Vec<Matcher>> {
        let mut metric: Option<Matcher> = None;
        let mut matchers = Vec::with_capacity(filters.len() + 1);
        if let Some((name, span)) = name {
            self.set_metric(&mut metric, name, self.span(*span))?;
        }
        for filter in filters {
            match filter {
                Filter::Metric(name, span) => {
                    self.set_metric(&mut metric, name, self.span(*span))?;
                }
                Filter::Matcher { label, op, value, span } => {
                    let span = self.span(*span);
                    let value = self.text(scope, value, span)?;
                    if label == METRIC_NAME && *op == MatchOp::Equal {
                        self.set_metric(&mut metric, &value, span)?;
                    } else {
                        matchers.push(self.matcher(label, *op, value, span)?);
                    }
                }
                Filter::Template(name, span) => {
                    let span = self.span(*span);
                    matchers.extend(self.filter_template(scope, name, span)?);
                }
            }
        }
        matchers.splice(0..0, metric);
        remove_duplicates(&mut matchers);
        Ok(matchers)
    }

    fn set_metric(&mut self, metric: &mut Option<Matcher>, name: &str, span: Span) -> Result<()> {
        if let Some(other) = metric
            && other.value != name
        {
            let (first, second) = (quote(&other.value), quote(name));
            let message = format!("metric name must not be set twice: {first} or {second}");
            return Err(self.error(span, message));
        }
        self.charge_part(name.len(), span)?;
        *metric = Some(Matcher::equal(METRIC_NAME, name));
        Ok(())
    }

    fn matcher(&mut self, label: &str, op: MatchOp, value: String, span: Span) -> Result<Matcher> {
        self.charge_part(label.len() + value.len(), span)?;
        let is_regex = matches!(op, MatchOp::Regex | MatchOp::NotRegex);
        if is_regex {
            self.patterns.check(&value).map_err(|why| self.error(span, why))?;
        }
        Ok(Matcher::new(label, op, value))
    }

    /// The matchers of a template that is used as a filter.
    fn filter_template(&mut self, scope: Scope, name: &str, span: Span) -> Result<Vec<Matcher>> {
        let wrong = match self.named(scope, name, span)? {
            Expr::Selector(selector) if selector.metric_name().is_some() => "has a metric's name",
            Expr::Selector(selector) if 1 < selector.sets.len() => "has an \"or\"",
            Expr::Selector(mut selector) => return Ok(selector.sets.pop().unwrap_or_default()),
            _ => "is no {...}",
        };
        Err(self.error(span, format!("template {} {wrong}, expected {{...}}", quote(name))))
    }

    /// Gives the metric's name to the sets that say nothing about it, if the others agree.
    fn spread_name(&mut self, sets: &mut [Vec<Matcher>], span: Span) -> Result<()> {
        let names: HashSet<&str> = sets.iter().filter_map(|set| name_of(set)).collect();
        let mut names = names.into_iter().filter(|name| !name.is_empty());
        let (Some(name), None) = (names.next(), names.next()) else { return Ok(()) };
        let name = name.to_string();
        for set in sets {
            if set.iter().all(|matcher| matcher.name != METRIC_NAME) {
                self.charge_part(name.len(), span)?;
                set.insert(0, Matcher::equal(METRIC_NAME, name.as_str()));
            }
        }
        Ok(())
    }

    /// `template{filters}`: the template's own selector with the filters added.
    fn filtered(&mut self, (base, depth): Node, selector: Selector) -> Result<Node> {
        let span = selector.span;
        if selector.sets.iter().all(|set| set.len() == 1) {
            return Ok((base, depth));
        }
        let merged = match base {
            Expr::Selector(base) => Expr::Selector(self.merged(base, selector)?),
            Expr::Rollup(mut rollup) => match rollup.expr {
                Expr::Selector(base) => {
                    rollup.expr = Expr::Selector(self.merged(base, selector)?);
                    Expr::Rollup(rollup)
                }
                _ => return Err(self.error(span, NO_SELECTOR)),
            },
            _ => return Err(self.error(span, NO_SELECTOR)),
        };
        Ok((merged, depth))
    }

    /// Each set of the base with each set of the filters, of which only one may have several.
    fn merged(&mut self, base: Selector, filters: Selector) -> Result<Selector> {
        let span = filters.span;
        if base.sets.len() != 1 && filters.sets.len() != 1 {
            let message = "filters with \"or\" cannot be added to a template with \"or\"";
            return Err(self.error(span, message));
        }
        let mut sets = Vec::new();
        for own in &base.sets {
            for added in &filters.sets {
                let mut set = Vec::with_capacity(own.len() + added.len());
                // The first one added is the template's name.
                for matcher in own.iter().chain(&added[1..]) {
                    self.charge_part(matcher.name.len() + matcher.value.len(), span)?;
                    set.push(matcher.clone());
                }
                remove_duplicates(&mut set);
                sets.push(set);
            }
        }
        Ok(Selector { sets, span })
    }
}

const NO_SELECTOR: &str = "filters can only be added to a template that is a selector";

/// A set without matchers is met by every series; alone it is written `{}`.
fn without_empty(sets: Vec<Vec<Matcher>>) -> Vec<Vec<Matcher>> {
    if sets.iter().any(Vec::is_empty) { Vec::new() } else { sets }
}

fn remove_duplicates(matchers: &mut Vec<Matcher>) {
    let mut seen = HashSet::with_capacity(matchers.len());
    let is_first: Vec<bool> = matchers.iter().map(|matcher| seen.insert(matcher)).collect();
    let mut is_first = is_first.into_iter();
    matchers.retain(|_| is_first.next().unwrap_or(true));
}

/// The metric's name that a set of matchers demands.
fn name_of(set: &[Matcher]) -> Option<&str> {
    let first = set.first()?;
    (first.name == METRIC_NAME && first.op == MatchOp::Equal).then_some(first.value.as_str())
}

impl Selector {
    /// The metric's name, if all sets demand the same one.
    pub fn metric_name(&self) -> Option<&str> {
        let (first, others) = self.sets.split_first()?;
        let name = name_of(first).filter(|name| !name.is_empty())?;
        others.iter().all(|set| name_of(set) == Some(name)).then_some(name)
    }
}

impl Expr {
    /// The name of the metric that is all there is.
    pub(super) fn bare_name(&self) -> Option<&str> {
        match self {
            Expr::Selector(selector) if selector.sets.iter().all(|set| set.len() == 1) => {
                selector.metric_name()
            }
            _ => None,
        }
    }
}

impl Raw {
    /// The name of the metric that is all there is.
    pub(super) fn bare_name(&self) -> Option<&str> {
        match self {
            Raw::Selector(selector) if selector.sets.iter().all(Vec::is_empty) => {
                selector.name.as_ref().map(|(name, _)| name.as_str())
            }
            _ => None,
        }
    }
}
