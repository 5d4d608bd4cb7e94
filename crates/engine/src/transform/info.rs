//! `info`: the labels of info metrics, added to the series of the same `instance` and `job`.
//!
//! ```text
//! up{instance="a", job="x"} 1  +  target_info{instance="a", job="x", version="3"} 1
//!                              =  up{instance="a", job="x", version="3"} 1
//! ```
//!
//! Where there are several info series of one metric, the newest sample decides, at each step.

use crate::call::CallContext;
use crate::context::Context;
use crate::error::{QueryError, Result};
use crate::gap::{ABSENT, is_absent};
use crate::memory_source::Condition;
use crate::names::Key;
use crate::vector::Vector;
use model::{Labels, METRIC_NAME, MatchOp, Matcher};
use promql::{At, Call, Edges, Expr, Subquery, VectorSelector};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The labels that tell which series an info series is about.
const IDENTIFYING: [&str; 2] = ["instance", "job"];
/// The info metric when no other is asked for.
const TARGET_INFO: &str = "target_info";

/// `info`.
pub(crate) fn info(call: &CallContext<'_>) -> Result<Vector> {
    let CallContext { context, call: expr, grid, .. } = *call;
    let base = call.vector(0)?;
    let matchers = match expr.arguments.get(1) {
        Some(Expr::Vector(selector)) => selector.matchers.as_slice(),
        _ => &[],
    };
    let (names, data): (Vec<&Matcher>, Vec<&Matcher>) =
        matchers.iter().partition(|matcher| matcher.name == METRIC_NAME);
    let names = name_matchers(&names);
    let conditions: Vec<Condition<'_>> =
        names.iter().map(Condition::compile).collect::<std::result::Result<_, _>>()?;
    // What is an info series itself gets no labels of others.
    let is_info: Vec<bool> = base
        .keys()
        .iter()
        .map(|key| conditions.iter().all(|one| one.matches_value(key.labels.metric_name())))
        .collect();
    let info = match identifying_matchers(&base, &is_info) {
        matchers if matchers.is_empty() => Vector::new(context, grid.len),
        mut matchers => {
            matchers.extend(data.iter().map(|matcher| (*matcher).clone()));
            matchers.extend(names.iter().cloned());
            let selector = info_selector(expr, matchers);
            context.selector_times(&selector, grid, |labels| Err(no_info_metric(labels)))?
        }
    };
    let joined = Join {
        info: &info,
        newest: newest_of_each(&base, &info)?,
        data: data.into_iter().map(Condition::compile).collect::<std::result::Result<_, _>>()?,
    };
    joined.run(context, &base, &is_info)
}

/// The conditions on the info metrics' names; some must say which names there may be.
fn name_matchers(matchers: &[&Matcher]) -> Vec<Matcher> {
    let given = matchers.iter().map(|matcher| (*matcher).clone());
    let is_positive = |matcher: &&Matcher| matches!(matcher.op, MatchOp::Equal | MatchOp::Regex);
    if matchers.iter().any(is_positive) {
        return given.collect();
    }
    if matchers.is_empty() {
        return vec![Matcher::equal(METRIC_NAME, TARGET_INFO)];
    }
    let any_info = Matcher::new(METRIC_NAME, MatchOp::Regex, ".+_info");
    std::iter::once(any_info).chain(given).collect()
}

/// The values of the identifying labels, as matchers; none when no series has such a label.
fn identifying_matchers(base: &Vector, is_info: &[bool]) -> Vec<Matcher> {
    let mut matchers = Vec::new();
    for label in IDENTIFYING {
        let values: BTreeSet<String> = base
            .keys()
            .iter()
            .zip(is_info)
            .filter(|(_, is_info)| !**is_info)
            .filter_map(|(key, _)| key.labels.get(label))
            .map(regex::escape)
            .collect();
        if !values.is_empty() {
            let values: Vec<String> = values.into_iter().collect();
            matchers.push(Matcher::new(label, MatchOp::Regex, values.join("|")));
        }
    }
    matchers
}

/// Selects info series at the times at which the first argument's first selector looks.
fn info_selector(call: &Call, matchers: Vec<Matcher>) -> VectorSelector {
    let (at, offset_ms) = first_reference(&call.arguments[0], &mut Vec::new()).unwrap_or_default();
    VectorSelector {
        name: None,
        matchers,
        offset_ms,
        offset_expr: None,
        at,
        edges: Edges::Samples,
        span: call.span,
    }
}

/// `@` and the offset of the first selector, those of the subqueries around it counted in.
fn first_reference<'e>(
    expr: &'e Expr,
    around: &mut Vec<&'e Subquery>,
) -> Option<(Option<At>, i64)> {
    match expr {
        Expr::Number(_) | Expr::String(_) => None,
        Expr::Vector(selector) => Some(reference_of(selector, around)),
        Expr::Matrix(matrix) => Some(reference_of(&matrix.selector, around)),
        Expr::Subquery(subquery) => {
            around.push(subquery);
            let found = first_reference(&subquery.expr, around);
            around.pop();
            found
        }
        Expr::Call(call) => {
            call.arguments.iter().find_map(|argument| first_reference(argument, around))
        }
        Expr::Aggregate(aggregate) => first_reference(&aggregate.expr, around).or_else(|| {
            aggregate.parameter.as_ref().and_then(|parameter| first_reference(parameter, around))
        }),
        Expr::Binary(binary) => {
            first_reference(&binary.left, around).or_else(|| first_reference(&binary.right, around))
        }
        Expr::Unary(unary) => first_reference(&unary.expr, around),
        Expr::Paren(paren) => first_reference(&paren.expr, around),
    }
}

/// Offsets add up until an `@` fixes the time.
fn reference_of(selector: &VectorSelector, around: &[&Subquery]) -> (Option<At>, i64) {
    let (mut at, mut offset_ms) = (selector.at, selector.offset_ms);
    for subquery in around.iter().rev() {
        if at.is_some() {
            break;
        }
        offset_ms = offset_ms.saturating_add(subquery.offset_ms);
        at = subquery.at;
    }
    (at, offset_ms)
}

/// An info metric's name and the values of the identifying labels.
type Identity = (String, [String; 2]);

fn identity(name: &str, labels: &Labels) -> Identity {
    (name.to_string(), IDENTIFYING.map(|label| labels.get(label).unwrap_or("").to_string()))
}

/// The row of the newest info series of each identity at each step.
fn newest_of_each(base: &Vector, info: &Vector) -> Result<BTreeMap<Identity, Vec<Option<usize>>>> {
    let mut newest: BTreeMap<Identity, Vec<Option<usize>>> = BTreeMap::new();
    // What nobody asks for may be ambiguous.
    let is_asked = |step: usize| base.rows().any(|(_, row)| !is_absent(row[step]));
    for (idx, (key, times)) in info.rows().enumerate() {
        let identity = identity(key.labels.metric_name(), &key.labels);
        let chosen = newest.entry(identity).or_insert_with(|| vec![None; times.len()]);
        for (step, (chosen, time)) in chosen.iter_mut().zip(times).enumerate() {
            let rival = chosen.map(|rival| (rival, info.row(rival)[step]));
            match rival {
                _ if is_absent(*time) => {}
                Some((_, other)) if *time < other => {}
                Some((rival, other)) if *time == other && is_asked(step) => {
                    return Err(ambiguous(&info.key(rival).labels, &key.labels, *time));
                }
                _ => *chosen = Some(idx),
            }
        }
    }
    Ok(newest)
}

fn no_info_metric(labels: &Labels) -> QueryError {
    let labels = crate::matching::format_labels(labels);
    QueryError::Execution(format!("this should be an info metric, with float samples: {labels}"))
}

fn ambiguous(a: &Labels, b: &Labels, seconds: f64) -> QueryError {
    let mut both = [a, b];
    both.sort();
    let [existing, new] = both.map(crate::matching::format_labels);
    let at_ms = seconds * 1000.0;
    QueryError::Execution(format!(
        "found duplicate series for info metric: existing {existing} @ {at_ms}, new {new} @ {at_ms}"
    ))
}

/// Everything that series are to be joined with.
struct Join<'a> {
    info: &'a Vector,
    newest: BTreeMap<Identity, Vec<Option<usize>>>,
    /// The conditions on labels other than the name. If there are any, only their labels are added.
    data: Vec<Condition<'a>>,
}

impl Join<'_> {
    fn run(&self, context: &Context<'_>, base: &Vector, is_info: &[bool]) -> Result<Vector> {
        let names: BTreeSet<&str> = self.newest.keys().map(|(name, _)| name.as_str()).collect();
        let mut out = Vector::new(context, base.steps());
        for (idx, ((key, row), is_info)) in base.rows().zip(is_info).enumerate() {
            context.check()?;
            // A row that becomes several keeps at each step what is the value there.
            let cells = base.cells(idx);
            if *is_info {
                out.push_mixed(context, key.clone(), row, cells)?;
                continue;
            }
            let candidates: Vec<&[Option<usize>]> = names
                .iter()
                .filter_map(|name| self.newest.get(&identity(name, &key.labels)))
                .map(Vec::as_slice)
                .collect();
            for (labels, row) in self.rows_of(key, row, &candidates)? {
                let key = Key { labels, drops_name: key.drops_name };
                out.push_mixed(context, key, &row, cells)?;
            }
        }
        out.merge_same_labels()
    }

    /// The rows that a series becomes: one for each set of labels that it has at some step.
    fn rows_of(
        &self,
        key: &Key,
        row: &[f64],
        candidates: &[&[Option<usize>]],
    ) -> Result<Vec<(Labels, Vec<f64>)>> {
        let mut known: HashMap<Vec<usize>, Option<usize>> = HashMap::new();
        let mut rows: Vec<(Labels, Vec<f64>)> = Vec::new();
        for (step, value) in row.iter().enumerate().filter(|(_, value)| !is_absent(**value)) {
            let chosen: Vec<usize> = candidates.iter().filter_map(|of| of[step]).collect();
            let at = match known.get(&chosen) {
                Some(at) => *at,
                None => {
                    let labels = self.joined(key, &chosen)?;
                    let at = labels.map(|labels| row_of(&mut rows, labels, row.len()));
                    known.insert(chosen, at);
                    at
                }
            };
            if let Some(at) = at {
                rows[at].1[step] = *value;
            }
        }
        Ok(rows)
    }

    /// The labels of a series with those of info series; `None` where it has to have some and has
    /// not.
    fn joined(&self, key: &Key, chosen: &[usize]) -> Result<Option<Labels>> {
        if chosen.is_empty() && !self.data.iter().all(|condition| condition.matches_value("")) {
            return Ok(None);
        }
        let mut added: BTreeMap<&str, &str> = BTreeMap::new();
        for idx in chosen {
            for (name, value) in self.info.key(*idx).labels.iter() {
                let is_listed = self.data.iter().any(|condition| condition.matcher.name == name);
                if name == METRIC_NAME || !(self.data.is_empty() || is_listed) {
                    continue;
                }
                if added.get(name).is_some_and(|other| *other != value) {
                    return Err(QueryError::Execution(format!("conflicting label: {name}")));
                }
                if key.labels.get(name).is_none() {
                    added.insert(name, value);
                }
            }
        }
        let mut builder = key.labels.to_builder();
        for (name, value) in added {
            builder.set(name, value);
        }
        Ok(Some(builder.finish()))
    }
}

/// Where the row of these labels is; it may be new.
fn row_of(rows: &mut Vec<(Labels, Vec<f64>)>, labels: Labels, steps: usize) -> usize {
    let known = rows.iter().position(|(other, _)| *other == labels);
    known.unwrap_or_else(|| {
        rows.push((labels, vec![ABSENT; steps]));
        rows.len() - 1
    })
}
