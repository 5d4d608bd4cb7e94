//! Fields that the functions of a statement read of the same place: their series are looked up at once, as
//! soon as the first of them is wanted.

use super::table::Symbols;
use super::{Evaluator, Result, compile};
use crate::ast::Expr;
use crate::source::{Fields, Place, SharedSet};
use model::{Matcher, TimeRange};
use std::sync::PoisonError;

/// What is read together, and what has been looked up.
#[derive(Default)]
pub(super) struct Together<'a> {
    fields: Vec<String>,
    found: Vec<Found<'a>>,
}

struct Found<'a> {
    database: String,
    measurement: String,
    range: TimeRange,
    field: String,
    matchers: Vec<Matcher>,
    set: SharedSet<'a>,
}

impl<'a> Found<'a> {
    fn is_of(&self, place: &Place<'_>, field: &str, matchers: &[Matcher]) -> bool {
        self.field == field
            // A subquery may ask for other series of the same.
            && self.matchers == matchers
            && self.range == place.range
            && self.measurement == place.measurement
            && self.database == place.database
    }
}

/// The fields of functions that read them alone, each once.
pub(super) fn fields_of(symbols: &Symbols) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    if !symbols.refs.is_empty() {
        return fields;
    }
    for call in &symbols.calls {
        if let Expr::Call { name, args } = call
            && !compile::is_transformation(name)
            && let Some(Expr::Var { name, .. }) = args.first()
            && !fields.contains(name)
        {
            fields.push(name.clone());
        }
    }
    fields
}

impl<'a> Evaluator<'a> {
    /// Has these fields read together until [`Evaluator::apart`] gets what is returned.
    pub(super) fn together(&self, fields: Vec<String>) -> Together<'a> {
        let mut together = self.together.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut together, Together { fields, found: Vec::new() })
    }

    /// What was read together before is so again.
    pub(super) fn apart(&self, before: Together<'a>) {
        *self.together.lock().unwrap_or_else(PoisonError::into_inner) = before;
    }

    /// The series of a field, one of `known`.
    pub(super) fn series_of(
        &self,
        place: &Place<'_>,
        (field, known): (&str, &Fields),
        matchers: &[Matcher],
    ) -> Result<SharedSet<'a>> {
        let mut together = self.together.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = together.found.iter().find(|found| found.is_of(place, field, matchers))
        {
            return Ok(found.set.clone());
        }
        let fields: Vec<String> =
            together.fields.iter().filter(|field| known.contains_key(*field)).cloned().collect();
        let Some(at) = fields.iter().position(|other| other == field) else {
            return self.source.select(place, field, matchers).map(SharedSet::from);
        };
        let names: Vec<&str> = fields.iter().map(String::as_str).collect();
        let sets = self.source.select_together(place, &names, matchers)?;
        let set = sets.get(at).cloned();
        together.found.extend(fields.into_iter().zip(sets).map(|(field, set)| Found {
            database: place.database.to_string(),
            measurement: place.measurement.to_string(),
            range: place.range,
            field,
            matchers: matchers.to_vec(),
            set,
        }));
        match set {
            Some(set) => Ok(set),
            None => self.source.select(place, field, matchers).map(SharedSet::from),
        }
    }
}
