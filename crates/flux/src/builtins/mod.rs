//! The functions: one table of packages and names, and a file for each family.

mod aggregates;
mod arrays;
mod combining;
mod dictionaries;
mod encodings;
mod events;
mod experimental;
mod geo;
mod grouping;
mod histograms;
mod interpolation;
mod joins;
mod mathematics;
mod neighbours;
mod rates;
mod refusals;
mod rows;
mod scalars;
mod schemas;
mod selectors;
mod sources;
mod states;
mod statistics;
mod strings;
mod types;
mod windows;

use crate::ast::Param;
use crate::error::{Error, Result, Span};
use crate::eval::Evaluation;
use crate::stream::Stream;
use crate::time::Duration;
use crate::value::{Closure, Kind, Value};
use model::similar_name::similar_name;
use std::cell::RefCell;
use std::sync::Arc;

pub(crate) use geo::{default_geo_units, geo_option, is_geo_units};
pub use sources::{ORGANISATION_ID, bucket_id, bucket_names};
pub(crate) use windows::zone_of;

/// A function that is part of the language.
pub(crate) struct Builtin {
    /// The path of its package, empty for those that need no import.
    pub(crate) package: &'static str,
    pub(crate) name: &'static str,
    pub(crate) run: fn(Call<'_>) -> Result<Value>,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.package, self.name)
    }
}

const fn function(
    package: &'static str,
    name: &'static str,
    run: fn(Call<'_>) -> Result<Value>,
) -> Builtin {
    Builtin { package, name, run }
}

/// All tables of functions.
const TABLES: &[&[Builtin]] = &[
    sources::FUNCTIONS,
    schemas::FUNCTIONS,
    aggregates::FUNCTIONS,
    selectors::FUNCTIONS,
    windows::FUNCTIONS,
    grouping::FUNCTIONS,
    rows::FUNCTIONS,
    neighbours::FUNCTIONS,
    combining::FUNCTIONS,
    states::FUNCTIONS,
    histograms::FUNCTIONS,
    scalars::FUNCTIONS,
    strings::FUNCTIONS,
    encodings::FUNCTIONS,
    rates::FUNCTIONS,
    arrays::FUNCTIONS,
    dictionaries::FUNCTIONS,
    events::FUNCTIONS,
    experimental::FUNCTIONS,
    geo::FUNCTIONS,
    interpolation::FUNCTIONS,
    joins::FUNCTIONS,
    mathematics::FUNCTIONS,
    refusals::FUNCTIONS,
    statistics::FUNCTIONS,
    types::FUNCTIONS,
];

/// Packages that may be imported though they have no functions of their own here, and others under
/// two names.
const PACKAGES: &[(&str, &str)] = &[
    ("influxdata/influxdb", "influxdata/influxdb"),
    ("influxdata/influxdb/v1", "influxdata/influxdb/schema"),
    ("experimental/array", "array"),
    ("experimental/csv", "csv"),
    ("universe", ""),
];

/// Functions of `experimental` that are those of everyday, with fixed columns.
const SAME_IN_EXPERIMENTAL: &[&str] = &[
    "count",
    "distinct",
    "fill",
    "first",
    "histogram",
    "histogramQuantile",
    "integral",
    "last",
    "max",
    "mean",
    "min",
    "mode",
    "quantile",
    "skew",
    "spread",
    "stddev",
    "sum",
    "unique",
    "window",
];

/// Where a package's functions stand in the tables.
fn canonical(path: &str) -> &str {
    PACKAGES.iter().find(|(alias, _)| *alias == path).map_or(path, |(_, path)| path)
}

/// A function of a package.
pub(crate) fn find(path: &str, name: &str) -> Option<&'static Builtin> {
    let path = canonical(path);
    let all = TABLES.iter().flat_map(|table| table.iter());
    all.into_iter().find(|builtin| builtin.package == path && builtin.name == name)
}

/// Whether there is such a package.
///
/// # Errors
/// When there is none.
pub(crate) fn check_package(path: &str) -> Result<()> {
    let wanted = canonical(path);
    let has_functions =
        TABLES.iter().flat_map(|table| table.iter()).any(|builtin| builtin.package == wanted);
    if has_functions || wanted == "influxdata/influxdb" {
        return Ok(());
    }
    let reason = match refusals::reason_of(path) {
        Some(reason) => format!("package {path:?} is refused: {reason}"),
        None => format!(
            "package {path:?} is not supported here (docs/doors/flux.md lists those that are)"
        ),
    };
    Err(Error::name(reason))
}

/// `package.name`
///
/// # Errors
/// When there is no such function.
pub(crate) fn member(path: &str, name: &str) -> Result<Value> {
    if let Some(builtin) = find(path, name) {
        return Ok(Value::Builtin(builtin));
    }
    if let Some(constant) = scalars::constant(path, name) {
        return Ok(constant);
    }
    // `influxdb.from` and `influxdb.buckets` are those of everyday.
    let is_of_everyday = match canonical(path) {
        "influxdata/influxdb" => true,
        "experimental" => SAME_IN_EXPERIMENTAL.contains(&name),
        _ => false,
    };
    if is_of_everyday && let Some(builtin) = find("", name) {
        return Ok(Value::Builtin(builtin));
    }
    let wanted = canonical(path);
    let builtins = TABLES.iter().flat_map(|table| table.iter());
    let known = builtins.filter(|builtin| builtin.package == wanted).map(|one| one.name);
    let advice = did_you_mean(similar_name(name, known));
    Err(Error::name(format!("package {path:?} has no member {name:?} here{advice}")))
}

/// A call of a function.
pub(crate) struct Call<'c> {
    pub(crate) evaluation: &'c Evaluation<'c>,
    pub(crate) name: &'static str,
    pub(crate) span: Span,
    args: RefCell<Vec<(Arc<str>, Value)>>,
    piped: RefCell<Option<Value>>,
    /// Names of arguments that the function takes and the call lacks.
    lacking: RefCell<Vec<&'static str>>,
}

impl<'c> Call<'c> {
    pub(crate) fn new(
        evaluation: &'c Evaluation<'_>,
        name: &'static str,
        args: Vec<(Arc<str>, Value)>,
        piped: Option<Value>,
        span: Span,
    ) -> Call<'c> {
        let (args, piped) = (RefCell::new(args), RefCell::new(piped));
        Call { evaluation, name, span, args, piped, lacking: RefCell::default() }
    }

    /// An argument, if it is there; it is not there any more.
    pub(crate) fn optional(&self, name: &'static str) -> Option<Value> {
        let mut args = self.args.borrow_mut();
        match args.iter().position(|(other, _)| &**other == name) {
            Some(at) => Some(args.swap_remove(at).1),
            None => {
                self.lacking.borrow_mut().push(name);
                None
            }
        }
    }

    /// An argument that must be there.
    pub(crate) fn required(&self, name: &'static str) -> Result<Value> {
        self.optional(name).ok_or_else(|| {
            let args = self.args.borrow();
            let similar = args.iter().find(|(given, _)| similar_name(given, [name]).is_some());
            let advice = similar.map(|(given, _)| format!("; did you mean {name} by {given}?"));
            let advice = advice.unwrap_or_default();
            Error::name(format!("{}: missing required argument {name}{advice}", self.name))
        })
    }

    /// All arguments were asked for; what is left is unknown.
    pub(crate) fn done(&self) -> Result<()> {
        match self.args.borrow().first() {
            None => Ok(()),
            Some((name, _)) => {
                let similar = similar_name(name, self.lacking.borrow().iter().copied());
                let advice = did_you_mean(similar);
                Err(Error::name(format!("{}: found unexpected argument {name}{advice}", self.name)))
            }
        }
    }

    /// What was piped in, or came as that argument.
    pub(crate) fn input(&self, name: &'static str) -> Result<Value> {
        match self.piped.borrow_mut().take() {
            Some(value) => Ok(value),
            None => self.required(name),
        }
    }

    /// The stream of tables that was piped in.
    pub(crate) fn tables(&self) -> Result<Arc<Stream>> {
        match self.input("tables")? {
            Value::Stream(stream) => Ok(stream),
            other => Err(self.wrong("tables", "stream of tables", &other)),
        }
    }

    pub(crate) fn wrong(&self, argument: &str, wanted: &str, found: &Value) -> Error {
        let found = found.type_words();
        Error::runtime(format!(
            "{}: argument {argument}: expected {wanted} but found {found}",
            self.name
        ))
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<Arc<str>>> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "string", &other)),
        }
    }

    pub(crate) fn text_or(&self, name: &'static str, default: &str) -> Result<Arc<str>> {
        Ok(self.text(name)?.unwrap_or_else(|| default.into()))
    }

    pub(crate) fn required_text(&self, name: &'static str) -> Result<Arc<str>> {
        match self.required(name)? {
            Value::Text(text) => Ok(text),
            other => Err(self.wrong(name, "string", &other)),
        }
    }

    pub(crate) fn integer(&self, name: &'static str) -> Result<Option<i64>> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::Integer(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong(name, "int", &other)),
        }
    }

    /// A number of rows.
    pub(crate) fn count(&self, name: &'static str) -> Result<Option<usize>> {
        let Some(value) = self.integer(name)? else { return Ok(None) };
        let message = format!("{}: argument {name} must not be negative, found {value}", self.name);
        usize::try_from(value).map(Some).map_err(|_| Error::runtime(message))
    }

    pub(crate) fn float(&self, name: &'static str) -> Result<Option<f64>> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::Float(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong(name, "float", &other)),
        }
    }

    pub(crate) fn switch(&self, name: &'static str) -> Result<Option<bool>> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::Boolean(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong(name, "bool", &other)),
        }
    }

    pub(crate) fn duration(&self, name: &'static str) -> Result<Option<Duration>> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::Duration(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong(name, "duration", &other)),
        }
    }

    /// A time, said as such, as a distance from now, or in seconds since the epoch.
    pub(crate) fn time(&self, name: &'static str) -> Result<Option<i64>> {
        match self.optional(name) {
            None => Ok(None),
            Some(value) => self.as_time(name, &value).map(Some),
        }
    }

    pub(crate) fn as_time(&self, name: &'static str, value: &Value) -> Result<i64> {
        match value {
            Value::Time(time) => Ok(*time),
            Value::Duration(distance) => Ok(distance.after(self.evaluation.now())),
            Value::Integer(seconds) => Ok(seconds.saturating_mul(1_000_000_000)),
            other => Err(self.wrong(name, "time or duration", other)),
        }
    }

    pub(crate) fn texts(&self, name: &'static str) -> Result<Option<Vec<Arc<str>>>> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        let Value::Array(items) = &value else {
            return Err(self.wrong(name, "array of strings", &value));
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items.iter() {
            match item {
                Value::Text(text) => texts.push(text.clone()),
                other => return Err(self.wrong(name, "array of strings", other)),
            }
        }
        Ok(Some(texts))
    }

    /// Argument that is a function, which will be called with `given`.
    pub(crate) fn function(&self, name: &'static str, given: &[&str]) -> Result<Option<Value>> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::Closure(closure)) => {
                self.check_parameters(&closure, given)?;
                Ok(Some(Value::Closure(closure)))
            }
            Some(value @ Value::Builtin(_)) => Ok(Some(value)),
            Some(other) => Err(self.wrong(name, "function", &other)),
        }
    }

    /// # Errors
    /// When a function cannot be called with these arguments, even if it never is.
    pub(crate) fn check_parameters(&self, closure: &Closure, given: &[&str]) -> Result<()> {
        let params = &closure.function.params;
        let is_taken = |name: &&&str| params.iter().any(|param| &*param.name == **name);
        let name = self.name;
        if let Some(unexpected) = given.iter().find(|name| !is_taken(name)) {
            let message = format!("{name}: fn does not take the argument {unexpected}");
            return Err(Error::name(message));
        }
        let is_missing = |param: &&Param| {
            param.default.is_none() && !param.is_pipe && !given.contains(&&*param.name)
        };
        match params.iter().find(is_missing) {
            None => Ok(()),
            Some(param) => {
                Err(Error::name(format!("{name}: missing required argument {}", param.name)))
            }
        }
    }

    /// Calls a condition with one argument; null does not hold.
    ///
    /// # Errors
    /// When it returns anything but a boolean.
    pub(crate) fn holds(&self, function: &Value, (name, value): (&str, Value)) -> Result<bool> {
        let found = self.apply(function, &[(name, value)])?;
        let holds =
            condition(&found).map_err(|words| Error::runtime(format!("{}: {words}", self.name)))?;
        Ok(holds.unwrap_or(false))
    }

    /// Pipes a value into a function that needs no import.
    pub(crate) fn pipe(
        &self,
        name: &'static str,
        input: Value,
        args: &[(&str, Value)],
    ) -> Result<Value> {
        let function =
            find("", name).map(Value::Builtin).ok_or_else(|| unknown(name, std::iter::empty()))?;
        let args = args.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        self.evaluation.apply(&function, args, Some(input), self.span)
    }

    /// A stream that is an argument.
    pub(crate) fn stream(&self, name: &'static str) -> Result<Arc<Stream>> {
        match self.required(name)? {
            Value::Stream(stream) => Ok(stream),
            other => Err(self.wrong(name, "stream of tables", &other)),
        }
    }

    /// An argument that must be there and be a function, called with `given`.
    pub(crate) fn required_function(&self, name: &'static str, given: &[&str]) -> Result<Value> {
        let missing = || Error::name(format!("{}: missing required argument {name}", self.name));
        self.function(name, given)?.ok_or_else(missing)
    }

    /// Calls a function with these arguments.
    pub(crate) fn apply(&self, function: &Value, args: &[(&str, Value)]) -> Result<Value> {
        let args = args.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        self.evaluation.apply(function, args, None, self.span)
    }
}

/// Truth of a value; nothing for null.
///
/// # Errors
/// Words for a value that is neither a boolean nor null.
pub(crate) fn condition(value: &Value) -> std::result::Result<Option<bool>, String> {
    match value {
        Value::Boolean(value) => Ok(Some(*value)),
        Value::Null => Ok(None),
        other => Err(format!("expected bool but found {}", other.type_words())),
    }
}

/// Tables that cannot be one.
pub(crate) fn collision((one, other): (Kind, Kind)) -> Error {
    Error::runtime(format!(
        "schema collision: cannot group {} and {} types together",
        one.words(),
        other.words()
    ))
}

/// Returns the error for an unknown name. `others` are the names in scope.
pub(crate) fn unknown<'a>(name: &str, others: impl Iterator<Item = &'a str>) -> Error {
    let builtins = TABLES.iter().flat_map(|table| table.iter());
    let known = builtins.filter(|builtin| builtin.package.is_empty()).map(|one| one.name);
    let advice = did_you_mean(similar_name(name, others.chain(known)));
    Error::name(format!("undefined identifier {name:?}{advice}"))
}

pub(crate) fn did_you_mean(similar: Option<&str>) -> String {
    similar.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// A column that is not there.
pub(crate) fn no_column(name: &str) -> Error {
    Error::runtime(format!("column {name:?} does not exist"))
}
