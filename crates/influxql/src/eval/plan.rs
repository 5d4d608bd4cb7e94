//! A checked SELECT: its stars still stand for whatever there is.

use super::window::{Interval, Windows};
use crate::ast::{Expr, Field, Fill, MeasurementName, Page};
use jiff::tz::TimeZone;
use std::collections::HashMap;

/// What is read.
#[derive(Clone, Debug)]
pub enum PlanSource {
    /// `policy` is resolved into `database` before anything is read.
    Measurement {
        database: String,
        policy: Option<String>,
        name: MeasurementName,
    },
    Query(Box<Plan>),
}

/// A checked SELECT.
#[derive(Clone, Debug)]
pub struct Plan {
    pub fields: Vec<Field>,
    pub sources: Vec<PlanSource>,
    /// Without bounds of time.
    pub condition: Option<Expr>,
    /// Without `time()`.
    pub dimensions: Vec<Expr>,
    pub interval: Interval,
    /// Whether the windows are those of the query around it.
    pub is_interval_inherited: bool,
    /// The first and the last nanosecond.
    pub range: (i64, i64),
    pub fill: Fill,
    pub is_descending: bool,
    pub page: Page,
    pub series_page: Page,
    pub zone: Option<TimeZone>,
    /// The name of the column of times.
    pub time_name: String,
    /// Whether there is no such column.
    pub omits_time: bool,
}

impl Plan {
    /// How its time is cut.
    pub fn windows(&self) -> Windows {
        let (start, end) = self.range;
        Windows { interval: self.interval, start, end, zone: self.zone.clone() }
    }

    /// The names of all columns but the time's; doubles get a number.
    pub fn column_names(&self) -> Vec<String> {
        let mut named: Vec<(Option<&str>, String)> = Vec::new();
        for field in &self.fields {
            named.push((field.alias.as_deref(), name_of(&field.expr)));
            for extra in extra_columns(&field.expr) {
                named.push((None, name_of(extra)));
            }
        }
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (alias, _) in &named {
            if let Some(alias) = alias {
                counts.insert((*alias).to_string(), 1);
            }
        }
        let mut out = Vec::new();
        for (alias, name) in named {
            let name = match alias {
                Some(alias) => alias.to_string(),
                None => unique(name, &mut counts),
            };
            out.push(name);
        }
        out
    }

    /// The names of the tags that rows are grouped by, sorted.
    pub fn tag_names(&self) -> Vec<String> {
        let names = self.dimensions.iter().filter_map(|dimension| match dimension {
            Expr::Var { name, .. } => Some(name.clone()),
            _ => None,
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.dedup();
        names
    }
}

fn unique(name: String, counts: &mut HashMap<String, usize>) -> String {
    let mut name = name;
    if let Some(&count) = counts.get(&name) {
        let mut number = count;
        loop {
            let candidate = format!("{name}_{number}");
            if !counts.contains_key(&candidate) {
                counts.insert(name, number + 1);
                name = candidate;
                break;
            }
            number += 1;
        }
    }
    *counts.entry(name.clone()).or_insert(0) += 1;
    name
}

/// The tags of `top` and `bottom`, which are columns behind it.
pub fn extra_columns(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::Call { name, args } if matches!(name.as_str(), "top" | "bottom") => {
            args.get(1..args.len().saturating_sub(1)).unwrap_or_default()
        }
        _ => &[],
    }
}

/// What a column without an alias is called.
pub fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Call { name, .. } => name.clone(),
        Expr::Var { name, .. } | Expr::Distinct(name) => name.clone(),
        Expr::Paren(inner) => name_of(inner),
        Expr::Binary { .. } => {
            let mut names = Vec::new();
            binary_names(expr, &mut names);
            names.join("_")
        }
        _ => String::new(),
    }
}

fn binary_names(expr: &Expr, out: &mut Vec<String>) {
    match expr {
        Expr::Var { name, .. } => out.push(name.clone()),
        Expr::Call { name, .. } => out.push(name.clone()),
        Expr::Binary { left, right, .. } => {
            binary_names(left, out);
            binary_names(right, out);
        }
        Expr::Paren(inner) => binary_names(inner, out),
        _ => {}
    }
}
