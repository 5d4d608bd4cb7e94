//! Walks the tree.

use crate::ast::{Body, Expr, ExprKind, Logic, Statement, StatementKind};
use crate::builtins::{self, Call};
use crate::error::{Error, Result, Span};
use crate::scan::Sink;
use crate::stream::{Budget, Collector, Outcome, Stream, Tables};
use crate::value::{Closure, Dictionary, NAME_SIZE, Names, Record, Value, binary, joined};
use influxql::Source;
use model::similar_name::similar_name;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Levels of expressions and calls within each other.
const DEPTH_MAX: usize = 150;
/// Results of a query.
const RESULTS_MAX: usize = 1_000;
/// Rows between two looks at the clock.
const ROWS_OF_TICK: usize = 1 << 10;
/// Steps between two looks at the clock.
const STEPS_OF_TICK: u64 = 1 << 12;
/// Bytes that are made or looked through in the time of a step, about.
const BYTES_OF_STEP: usize = 1 << 8;
/// What a match may cost in the time of a step, about: bytes of the expression times bytes of the
/// text.
const COST_OF_STEP: u64 = 1 << 12;

/// What a query may use.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Bytes of memory.
    pub memory_max: u64,
    /// Why it must end now, if it must.
    pub is_over: &'a dyn Fn() -> Option<String>,
}

/// A query at work.
pub(crate) struct Evaluation<'a> {
    pub(crate) source: &'a dyn Source,
    pub(crate) budget: Arc<Budget>,
    limits: Limits<'a>,
    /// The time of the query, unless `option now` says another.
    now: Cell<i64>,
    outcomes: RefCell<Vec<Outcome>>,
    depth: Cell<usize>,
    steps: Cell<u64>,
    /// Bytes of memory of values; they are of the budget.
    held: Cell<u64>,
    /// The time zone that `option location` says.
    pub(crate) zone: RefCell<Option<jiff::tz::TimeZone>>,
    /// `option geo.units`.
    geo_units: RefCell<Option<Value>>,
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(source: &'a dyn Source, now: i64, limits: Limits<'a>) -> Evaluation<'a> {
        Evaluation {
            source,
            budget: Budget::new(limits.memory_max),
            limits,
            now: Cell::new(now),
            outcomes: RefCell::default(),
            depth: Cell::new(0),
            steps: Cell::new(0),
            held: Cell::new(0),
            zone: RefCell::default(),
            geo_units: RefCell::default(),
        }
    }

    /// Runs the statements of a query; what they yield is kept.
    ///
    /// # Errors
    /// The first that goes wrong.
    pub(crate) fn run(&self, statements: &[Statement], mut names: Names) -> Result<Names> {
        for statement in statements {
            let in_place = |error: Error| error.at(statement.span);
            match &statement.kind {
                StatementKind::Import { path, name } => {
                    builtins::check_package(path).map_err(in_place)?;
                    names = names.with(name.clone(), Value::Package(path.clone()));
                }
                StatementKind::Assign { name, value } => {
                    let value = self.expr(value, &names)?;
                    self.set_option(name, &value).map_err(in_place)?;
                    names = names.with(name.clone(), value);
                }
                StatementKind::SetOption { package, name, value } => {
                    let value = self.expr(value, &names)?;
                    self.set_package_option(names.get(package), name, value).map_err(in_place)?;
                }
                StatementKind::Expr(expr) => {
                    if let Value::Stream(stream) = self.expr(expr, &names)?
                        && !stream.is_yielded
                    {
                        self.keep("_result".into(), &stream).map_err(in_place)?;
                    }
                }
                StatementKind::Return(_) => {
                    return Err(Error::syntax(statement.span, "return outside of a function"));
                }
            }
        }
        Ok(names)
    }

    /// Obeys `option now` and `option location`.
    fn set_option(&self, name: &str, value: &Value) -> Result<()> {
        match (name, value) {
            ("location", value) => *self.zone.borrow_mut() = builtins::zone_of(value)?,
            ("now", Value::Closure(_)) => {
                let now = self.apply(value, Vec::new(), None, Span::default())?;
                let Value::Time(now) = now else {
                    return Err(Error::runtime("option now must be a function of a time"));
                };
                self.now.set(now);
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets `option package.name`.
    ///
    /// # Errors
    /// When the package has no such option here, or takes another value.
    fn set_package_option(&self, package: Option<&Value>, name: &str, value: Value) -> Result<()> {
        let Some(Value::Package(path)) = package else {
            return Err(Error::name(format!("option {name:?} of a package that is not imported")));
        };
        *self.geo_units.borrow_mut() = builtins::geo_option(path, name, value)?;
        Ok(())
    }

    /// `geo.units`, if the query sets it.
    pub(crate) fn geo_units(&self) -> Option<Value> {
        self.geo_units.borrow().clone()
    }

    /// What was yielded.
    pub(crate) fn outcomes(self) -> Vec<Outcome> {
        self.outcomes.into_inner()
    }

    /// Keeps a stream as a result.
    ///
    /// # Errors
    /// When there is one of that name, or reading fails.
    pub(crate) fn keep(&self, name: Arc<str>, stream: &Stream) -> Result<Arc<Stream>> {
        let (list, charge) = self.ready(stream)?;
        let mut outcomes = self.outcomes.borrow_mut();
        if outcomes.iter().any(|outcome| outcome.name == name) {
            let message = format!(
                "tried to produce more than one result with the name {name:?}: give each pipeline a \
                 yield(name: ..) of its own"
            );
            return Err(Error::runtime(message));
        }
        if RESULTS_MAX <= outcomes.len() {
            return Err(Error::limit(format!("more than {RESULTS_MAX} results")));
        }
        outcomes.push(Outcome { name, tables: list.clone(), _charge: charge.clone() });
        Ok(Arc::new(Stream { tables: Tables::Ready { list, charge }, is_yielded: true }))
    }

    /// The tables of a stream, read if they are not yet.
    ///
    /// # Errors
    /// A failed read, or too much of it.
    pub(crate) fn ready(
        &self,
        stream: &Stream,
    ) -> Result<(Arc<Vec<crate::table::Table>>, Arc<crate::stream::Charge>)> {
        match &stream.tables {
            Tables::Ready { list, charge } => Ok((list.clone(), charge.clone())),
            Tables::Scan(scan) => {
                let mut out = self.collector();
                scan.read(self, &mut |table| out.push(table))?;
                let Tables::Ready { list, charge } = out.finish() else {
                    return Err(Error::runtime("no tables"));
                };
                Ok((list, charge))
            }
        }
    }

    /// Calls `sink` for each table. Those of a scan are read one after the other.
    ///
    /// # Errors
    /// A failed read, or what `sink` says.
    pub(crate) fn each(&self, stream: &Stream, sink: &mut Sink<'_>) -> Result<()> {
        match &stream.tables {
            Tables::Scan(scan) => scan.read(self, sink),
            Tables::Ready { list, .. } => {
                for table in list.iter() {
                    self.check_time()?;
                    sink(table.clone())?;
                }
                Ok(())
            }
        }
    }

    /// For tables that are being made.
    pub(crate) fn collector(&self) -> Collector {
        Collector::new(&self.budget)
    }

    /// Counts steps, and looks at the clock now and then.
    ///
    /// # Errors
    /// As [`Evaluation::check_time`].
    fn spend(&self, steps: u64) -> Result<()> {
        let before = self.steps.get();
        let after = before + steps;
        self.steps.set(after);
        let is_due = before / STEPS_OF_TICK != after / STEPS_OF_TICK;
        if is_due { self.check_time() } else { Ok(()) }
    }

    /// Counts bytes that are looked through.
    ///
    /// # Errors
    /// As [`Evaluation::check_time`].
    pub(crate) fn look_through(&self, bytes: usize) -> Result<()> {
        self.spend((bytes / BYTES_OF_STEP) as u64)
    }

    /// Counts a match with a text of so many bytes.
    ///
    /// # Errors
    /// When it would take too long, or the time is over.
    pub(crate) fn match_through(&self, regex: &influxql::Pattern, bytes: usize) -> Result<()> {
        regex.check(bytes).map_err(Error::limit)?;
        self.spend(regex.cost(bytes) / COST_OF_STEP)
    }

    /// Takes memory for a value, and counts the time that it took to make it.
    ///
    /// # Errors
    /// When there is not that much, or the time is over.
    pub(crate) fn hold(&self, size: usize) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        self.look_through(size)?;
        self.held.set(self.held.get() + size as u64);
        self.budget.take(size as u64)
    }

    /// Memory of all values so far.
    pub(crate) fn held(&self) -> u64 {
        self.held.get()
    }

    /// Gives back what was taken for values since `mark`, all of which are gone.
    pub(crate) fn release(&self, mark: u64) {
        self.budget.give_back(self.held.get().saturating_sub(mark));
        self.held.set(mark.min(self.held.get()));
    }

    /// The same where this value is left of them. What refers to others keeps all.
    pub(crate) fn settle(&self, mark: u64, left: &Value) {
        let made = self.held.get().saturating_sub(mark);
        if made == 0 {
            return;
        }
        if let Some(size) = left.whole_size()
            && (size as u64) < made
        {
            self.release(mark + size as u64);
        }
    }

    /// The value, with the memory for it taken.
    fn counted(&self, value: Value) -> Result<Value> {
        self.hold(value.size())?;
        Ok(value)
    }

    /// The time of the query.
    pub(crate) fn now(&self) -> i64 {
        self.now.get()
    }

    /// Fails when the time is over.
    ///
    /// # Errors
    /// Why it is.
    pub(crate) fn check_time(&self) -> Result<()> {
        match (self.limits.is_over)() {
            Some(reason) => Err(Error::limit(reason)),
            None => Ok(()),
        }
    }

    /// The same now and then.
    ///
    /// # Errors
    /// As [`Evaluation::check_time`].
    pub(crate) fn tick(&self, row: usize) -> Result<()> {
        if row % ROWS_OF_TICK == ROWS_OF_TICK - 1 { self.check_time() } else { Ok(()) }
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// What goes wrong, with its place.
    pub(crate) fn expr(&self, expr: &Expr, names: &Names) -> Result<Value> {
        let depth = self.depth.get();
        if DEPTH_MAX <= depth {
            let message = format!("more than {DEPTH_MAX} expressions and calls within each other");
            return Err(Error::limit(message).at(expr.span));
        }
        self.depth.set(depth + 1);
        let in_time = self.spend(1);
        let mark = self.held.get();
        let found = in_time.and_then(|()| self.kind(expr, names));
        self.depth.set(depth);
        if let Ok(value) = &found {
            self.settle(mark, value);
        }
        found.map_err(|error| error.at(expr.span))
    }

    fn kind(&self, expr: &Expr, names: &Names) -> Result<Value> {
        Ok(match &expr.kind {
            ExprKind::Integer(value) => Value::Integer(*value),
            ExprKind::Float(value) => Value::Float(*value),
            ExprKind::Text(text) => Value::Text(text.clone()),
            ExprKind::Duration(duration) => Value::Duration(*duration),
            ExprKind::Time(time) => Value::Time(*time),
            ExprKind::Regex(regex) => Value::Regex(regex.clone()),
            ExprKind::Name(name) => return self.name(name, names),
            ExprKind::Function(function) => {
                let (function, names) = (function.clone(), self.with_defaults(function, names)?);
                let closure = Value::Closure(Arc::new(Closure { function, names }));
                return bounded(self.counted(closure)?);
            }
            ExprKind::Array(items) => {
                let items: Result<Vec<Value>> =
                    items.iter().map(|item| self.expr(item, names)).collect();
                return bounded(self.counted(Value::list(items?))?);
            }
            ExprKind::Dictionary(entries) => {
                let entries: Result<Vec<(Value, Value)>> = entries
                    .iter()
                    .map(|(key, value)| Ok((self.expr(key, names)?, self.expr(value, names)?)))
                    .collect();
                let dictionary = Dictionary::new(entries?)?;
                return bounded(self.counted(Value::Dictionary(Arc::new(dictionary)))?);
            }
            ExprKind::Parts(parts) => return self.parts(parts, names),
            ExprKind::Record { with, fields } => {
                return self.record(with.as_deref(), fields, names);
            }
            ExprKind::Call { .. } => return self.call(expr, None, names),
            ExprKind::Pipe { head, calls } => {
                let mut value = self.expr(head, names)?;
                for call in calls {
                    value = self.call(call, Some(value), names).map_err(|e| e.at(call.span))?;
                }
                value
            }
            ExprKind::Member { object, name } => {
                return self.member(&self.expr(object, names)?, name);
            }
            ExprKind::Index { object, index } => {
                return self.indexed(&self.expr(object, names)?, &self.expr(index, names)?);
            }
            ExprKind::Unary { op, operand } => return self.unary(op, operand, names),
            ExprKind::Binary { op, left, right } => {
                let left = self.expr(left, names)?;
                let right = self.expr(right, names)?;
                if let (Value::Text(text), Value::Regex(regex)) = (&left, &right) {
                    self.match_through(regex, text.len())?;
                }
                return self.counted(binary(op, &left, &right)?);
            }
            ExprKind::Logical { op, terms } => return self.logical(*op, terms, names),
            ExprKind::If { condition, then, otherwise } => {
                let found = builtins::condition(&self.expr(condition, names)?)
                    .map_err(|words| Error::runtime(words).at(condition.span))?;
                return self.expr(if found == Some(true) { then } else { otherwise }, names);
            }
        })
    }

    fn name(&self, name: &str, names: &Names) -> Result<Value> {
        if let Some(value) = names.get(name) {
            return Ok(value.clone());
        }
        match name {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            "inf" => Ok(Value::Duration(crate::time::INFINITE)),
            name => match builtins::find("", name) {
                Some(builtin) => Ok(Value::Builtin(builtin)),
                None => Err(builtins::unknown(name, names.iter())),
            },
        }
    }

    /// The names in sight, with the defaults of parameters before them: those are evaluated where
    /// the function stands.
    fn with_defaults(&self, function: &crate::ast::Function, names: &Names) -> Result<Names> {
        let mut sight = names.clone();
        for param in &function.params {
            if let Some(default) = &param.default {
                self.hold(NAME_SIZE)?;
                sight = sight.with(param.name.clone(), self.expr(default, names)?);
            }
        }
        Ok(sight)
    }

    fn parts(&self, parts: &[Expr], names: &Names) -> Result<Value> {
        let mut text = Value::text("");
        for part in parts {
            let piece = self.expr(part, names)?.print()?;
            let Value::Text(so_far) = &text else { break };
            text = self.counted(joined(so_far, &piece)?)?;
        }
        Ok(text)
    }

    fn record(
        &self,
        with: Option<&Expr>,
        fields: &[(Arc<str>, Expr)],
        names: &Names,
    ) -> Result<Value> {
        let mut record = match with.map(|with| self.expr(with, names)).transpose()? {
            None => Record::default(),
            Some(Value::Record(record)) => (*record).clone(),
            Some(other) => {
                let message =
                    format!("expected a record before \"with\", found {}", other.type_words());
                return Err(Error::runtime(message));
            }
        };
        for (name, field) in fields {
            record.set(name, self.expr(field, names)?);
        }
        bounded(self.counted(Value::Record(Arc::new(record)))?)
    }

    fn unary(&self, op: &str, operand: &Expr, names: &Names) -> Result<Value> {
        let value = self.expr(operand, names)?;
        Ok(match (op, value) {
            ("exists", value) => Value::Boolean(!value.is_null()),
            (_, Value::Null) => Value::Null,
            ("not", Value::Boolean(value)) => Value::Boolean(!value),
            ("-", Value::Integer(value)) => Value::Integer(value.wrapping_neg()),
            ("-", Value::Float(value)) => Value::Float(-value),
            ("-", Value::Duration(value)) => Value::Duration(value.negated()),
            ("+", value @ (Value::Integer(_) | Value::Float(_) | Value::Duration(_))) => value,
            (op, value) => {
                let message = format!("unsupported unary expression {op} {}", value.type_words());
                return Err(Error::runtime(message));
            }
        })
    }

    fn logical(&self, op: Logic, terms: &[Expr], names: &Names) -> Result<Value> {
        let absorbing = op == Logic::Or;
        let mut found = Value::Boolean(!absorbing);
        for term in terms {
            match self.expr(term, names)? {
                Value::Boolean(value) if value == absorbing => {
                    return Ok(Value::Boolean(absorbing));
                }
                Value::Boolean(_) => {}
                Value::Null => found = Value::Null,
                other => {
                    let message = format!("expected bool, found {}", other.type_words());
                    return Err(Error::runtime(message).at(term.span));
                }
            }
        }
        Ok(found)
    }

    fn call(&self, call: &Expr, piped: Option<Value>, names: &Names) -> Result<Value> {
        let ExprKind::Call { callee, args } = &call.kind else {
            return Err(Error::syntax(call.span, "pipe destination must be a function call"));
        };
        let function = self.expr(callee, names)?;
        let mut values = Vec::with_capacity(args.len());
        for (name, arg) in args {
            values.push((name.clone(), self.expr(arg, names)?));
        }
        self.apply(&function, values, piped, call.span)
    }

    /// Calls a function.
    ///
    /// # Errors
    /// What goes wrong in it, or with its arguments.
    pub(crate) fn apply(
        &self,
        function: &Value,
        args: Vec<(Arc<str>, Value)>,
        piped: Option<Value>,
        span: Span,
    ) -> Result<Value> {
        let mark = self.held.get();
        match function {
            Value::Closure(closure) => {
                let made = self.apply_closure(closure, args, piped)?;
                self.settle(mark, &made);
                Ok(made)
            }
            Value::Builtin(builtin) => {
                let call = Call::new(self, builtin.name, args, piped, span);
                let made = (builtin.run)(call).map_err(|error| named(error, builtin.name))?;
                match made.whole_size() {
                    Some(size) => {
                        self.release(mark);
                        self.hold(size)?;
                    }
                    None => self.hold(made.size())?,
                }
                Ok(made)
            }
            other => Err(Error::runtime(format!("cannot call a {}", other.type_words()))),
        }
    }

    fn apply_closure(
        &self,
        closure: &Closure,
        args: Vec<(Arc<str>, Value)>,
        piped: Option<Value>,
    ) -> Result<Value> {
        let params = &closure.function.params;
        if let Some((name, _)) =
            args.iter().find(|(name, _)| params.iter().all(|p| p.name != *name))
        {
            let known = params.iter().map(|param| &*param.name);
            let advice = builtins::did_you_mean(similar_name(name, known));
            return Err(Error::name(format!("found unexpected argument {name}{advice}")));
        }
        let mut names = closure.names.clone();
        let mut piped = piped;
        for param in params {
            let given = args.iter().find(|(name, _)| *name == param.name).map(|(_, value)| value);
            let value = match given {
                Some(value) => value.clone(),
                None if param.is_pipe && piped.is_some() => piped.take().unwrap_or_default(),
                None if param.default.is_some() => continue,
                None => {
                    return Err(Error::name(format!("missing required argument {}", param.name)));
                }
            };
            self.hold(NAME_SIZE)?;
            names = names.with(param.name.clone(), value);
        }
        match &closure.function.body {
            Body::Expr(expr) => self.expr(expr, &names),
            Body::Block(statements) => self.block(statements, names),
        }
    }

    fn block(&self, statements: &[Statement], mut names: Names) -> Result<Value> {
        for statement in statements {
            match &statement.kind {
                StatementKind::Assign { name, value } => {
                    let value = self.expr(value, &names)?;
                    self.hold(NAME_SIZE)?;
                    names = names.with(name.clone(), value);
                }
                StatementKind::Return(expr) => return self.expr(expr, &names),
                StatementKind::Expr(expr) => {
                    self.expr(expr, &names)?;
                }
                StatementKind::Import { .. } | StatementKind::SetOption { .. } => {
                    let message = "import or option statement within a function";
                    return Err(Error::syntax(statement.span, message));
                }
            }
        }
        Err(Error::runtime("the function has no return"))
    }

    fn member(&self, object: &Value, name: &Arc<str>) -> Result<Value> {
        match object {
            Value::Record(record) => match record.get(name) {
                Some(value) => Ok(value.clone()),
                None if record.is_row => Ok(Value::Null),
                None => Err(Error::name(format!("record is missing label {name}"))),
            },
            Value::Package(path) => match builtins::is_geo_units(path, name) {
                true => Ok(self.geo_units().unwrap_or_else(builtins::default_geo_units)),
                false => builtins::member(path, name),
            },
            Value::Null => Ok(Value::Null),
            other => {
                let message =
                    format!("expected a record before .{name}, found {}", other.type_words());
                Err(Error::runtime(message))
            }
        }
    }

    fn indexed(&self, object: &Value, index: &Value) -> Result<Value> {
        match (object, index) {
            (Value::Array(items), Value::Integer(at)) => {
                let item = usize::try_from(*at).ok().and_then(|at| items.get(at));
                item.cloned().ok_or_else(|| {
                    Error::runtime(format!(
                        "cannot access element {at} of an array of {}",
                        items.len()
                    ))
                })
            }
            (Value::Record(_), Value::Text(name)) => self.member(object, name),
            (object, index) => {
                let (object, index) = (object.type_words(), index.type_words());
                Err(Error::runtime(format!("cannot index a {object} with a {index}")))
            }
        }
    }
}

/// The value, unless there are too many within each other.
fn bounded(value: Value) -> Result<Value> {
    match value.depth() <= crate::value::DEPTH_MAX {
        true => Ok(value),
        false => {
            let max = crate::value::DEPTH_MAX;
            Err(Error::limit(format!(
                "more than {max} arrays, records and functions within each other"
            )))
        }
    }
}

/// The error with the name of the function that it came from.
fn named(error: Error, name: &str) -> Error {
    if error.span.is_some() || error.message.starts_with(name) {
        return error;
    }
    Error { message: format!("{name}: {}", error.message).into(), ..error }
}
