//! PostgreSQL's ways of saying what DataFusion knows by others, changed before it plans.
//!
//! What DataFusion would take for something else is refused.

use crate::error::SqlError;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, CastKind, DataType as SqlType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, LimitClause, ObjectName,
    ObjectNamePart, Query, Statement, TimezoneInfo, Value, ValueWithSpan, VisitMut as _,
    VisitorMut,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The schema of PostgreSQL's own tables and functions.
pub const CATALOG_SCHEMA: &str = "pg_catalog";
/// What a text becomes when it is cast to `jsonb`.
pub const JSONB_IN: &str = "jsonb_in";
/// Steps into an expression that a statement may take.
const DEPTH_MAX: usize = 500;

/// Types of parameters that the planner does not find by itself.
pub type Hints = BTreeMap<String, DataType>;

/// Changes a statement to what DataFusion knows; returns what is said of its parameters' types.
///
/// # Errors
/// What cannot be said to DataFusion, and what is too deep.
pub fn rewrite(statement: &mut Statement) -> Result<Hints, SqlError> {
    let mut rewriter = Rewriter { hints: Hints::new(), depth: 0 };
    match statement.visit(&mut rewriter) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(rewriter.hints),
    }
}

struct Rewriter {
    hints: Hints,
    depth: usize,
}

impl VisitorMut for Rewriter {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            let exprs = limit.iter().chain(offset.as_ref().map(|offset| &offset.value));
            exprs.for_each(|expr| self.hint(expr, DataType::Int64));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<Self::Break> {
        // PostgreSQL looks into its own schema first.
        if let [ObjectNamePart::Identifier(ident)] = name.0.as_slice()
            && ident.value.to_ascii_lowercase().starts_with("pg_")
        {
            name.0.insert(0, ObjectNamePart::Identifier(Ident::new(CATALOG_SCHEMA)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<Self::Break> {
        self.depth += 1;
        if DEPTH_MAX < self.depth {
            let message = format!("an expression of more than {DEPTH_MAX} steps into each other");
            return ControlFlow::Break(Box::new(SqlError { code: "54001", message }));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        match self.change(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

impl Rewriter {
    fn hint(&mut self, expr: &Expr, data_type: DataType) {
        if let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = expr {
            self.hints.insert(name.clone(), data_type);
        }
    }

    fn change(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        match expr {
            Expr::Function(function) => self.function(function)?,
            Expr::Cast { .. } => self.cast(expr)?,
            Expr::Collate { expr: inner, .. } => *expr = (**inner).clone(),
            Expr::BinaryOp { .. } => self.operator(expr),
            Expr::AnyOp { .. } | Expr::AllOp { .. } => self.any_of(expr),
            Expr::TypedString(typed) => {
                let value = Box::new(Expr::Value(typed.value.clone()));
                let data_type = typed.data_type.clone();
                let (kind, array, format) = (CastKind::Cast, false, None);
                *expr = Expr::Cast { kind, expr: value, data_type, array, format };
                self.cast(expr)?;
            }
            Expr::SimilarTo { .. } => {
                let words = "SIMILAR TO is not known here: use ~ with a regular expression";
                return Err(SqlError::unsupported(words));
            }
            Expr::AtTimeZone { time_zone, .. } => {
                let zone = literal(time_zone).unwrap_or_default().to_ascii_lowercase();
                if !["utc", "gmt", "z", "etc/utc"].contains(&zone.as_str()) {
                    let words = format!("time zone {time_zone} is not known here: times are UTC");
                    return Err(SqlError::unsupported(words));
                }
            }
            _ => {}
        }
        if let Expr::Function(function) = expr
            && is_named(&function.name, "to_timestamp")
            && let Some(one) = only_argument(function)
            && !matches!(one, Expr::Cast { .. })
        {
            *expr = cast(expr.clone(), instant());
        }
        Ok(())
    }

    fn function(&mut self, function: &mut Function) -> Result<(), SqlError> {
        let parts = &mut function.name.0;
        if let [ObjectNamePart::Identifier(schema), _] = parts.as_slice()
            && [CATALOG_SCHEMA, "information_schema", "public"].contains(&schema.value.as_str())
        {
            parts.remove(0);
        }
        Ok(())
    }

    fn cast(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        let Expr::Cast { expr: inner, data_type, .. } = expr else { return Ok(()) };
        if let Some(known) = arrow_type(data_type) {
            self.hint(inner, known);
        }
        match data_type {
            SqlType::JSONB | SqlType::JSON => *expr = call(JSONB_IN, vec![(**inner).clone()]),
            SqlType::Array(_) => {
                if let Some(texts) = literal(inner).and_then(|text| array_of(&text)) {
                    let elements = texts.into_iter().map(|text| match text {
                        Some(text) => text_literal(text),
                        None => Expr::Value(Value::Null.into()),
                    });
                    let array = Array { elem: elements.collect(), named: true };
                    **inner = Expr::Array(array);
                } else if !matches!(**inner, Expr::Array(_)) && !is_placeholder(inner) {
                    let words = format!("a cast to {data_type} is not known but of literals");
                    return Err(SqlError::unsupported(words));
                }
            }
            SqlType::Bytea => {
                return Err(SqlError::unsupported("type bytea is not known here"));
            }
            SqlType::Custom(name, _) => {
                let Some(changed) = catalog_cast(name, inner) else { return Ok(()) };
                *expr = changed;
            }
            SqlType::Regclass => *expr = call("to_regclass", vec![(**inner).clone()]),
            _ => {}
        }
        Ok(())
    }

    fn operator(&mut self, expr: &mut Expr) {
        let Expr::BinaryOp { op, left, right } = expr else { return };
        if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
            let plain = parts.last().map(String::as_str).unwrap_or_default();
            if let Some(known) = operator_of(plain) {
                *op = known;
            }
        }
        match op {
            BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch => dot_is_any(right),
            BinaryOperator::AtArrow | BinaryOperator::LongArrow | BinaryOperator::Question => {
                self.hint(right, DataType::Utf8View);
                let _ = left;
            }
            _ => {}
        }
    }

    /// `x = ANY('{a,b}')` is `x IN ('a', 'b')`, which the index answers.
    fn any_of(&mut self, expr: &mut Expr) {
        let (left, right, negated) = match expr {
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
            _ => return,
        };
        let mut inner = &**right;
        while let Expr::Nested(nested) = inner {
            inner = nested;
        }
        self.hint(inner, texts());
        let list = match inner {
            Expr::Array(array) => array.elem.clone(),
            Expr::Cast { expr, .. } => match &**expr {
                Expr::Array(array) => array.elem.clone(),
                _ => return,
            },
            plain => match literal(plain).and_then(|text| array_of(&text)) {
                Some(all) => all.into_iter().flatten().map(text_literal).collect(),
                None => return,
            },
        };
        if list.is_empty() {
            *expr = Expr::Value(Value::Boolean(negated).into());
            return;
        }
        *expr = Expr::InList { expr: left.clone(), list, negated };
    }
}

/// Casts to types that only PostgreSQL's own tables have.
fn catalog_cast(name: &ObjectName, inner: &Expr) -> Option<Expr> {
    let last = name.0.last()?.as_ident()?.value.to_ascii_lowercase();
    Some(match last.as_str() {
        "regclass" => call("to_regclass", vec![inner.clone()]),
        "oid" | "xid" | "cid" => cast(inner.clone(), SqlType::Int(None)),
        "regtype" => call("to_regtype", vec![inner.clone()]),
        "regproc" | "regprocedure" | "name" | "char" | "text" | "bpchar" | "cstring" => {
            cast(inner.clone(), SqlType::Text)
        }
        "jsonb" | "json" => call(JSONB_IN, vec![inner.clone()]),
        "int4" => cast(inner.clone(), SqlType::Int(None)),
        "int8" => cast(inner.clone(), SqlType::BigInt(None)),
        "timestamptz" => cast(inner.clone(), instant()),
        "float8" => cast(inner.clone(), SqlType::DoublePrecision),
        "bool" => cast(inner.clone(), SqlType::Boolean),
        _ => return None,
    })
}

fn operator_of(text: &str) -> Option<BinaryOperator> {
    Some(match text {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// In PostgreSQL a dot is any character, a newline, too.
fn dot_is_any(pattern: &mut Expr) {
    if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = pattern
        && !text.starts_with("(?")
    {
        text.insert_str(0, DOT_IS_ANY);
    }
}

/// What makes a dot match a newline.
pub const DOT_IS_ANY: &str = "(?s)";

fn is_named(name: &ObjectName, wanted: &str) -> bool {
    let last = name.0.last().and_then(ObjectNamePart::as_ident);
    last.is_some_and(|ident| ident.value.eq_ignore_ascii_case(wanted))
}

fn only_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => Some(expr),
        _ => None,
    }
}

fn is_placeholder(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }))
}

/// A literal's text.
fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            Some(text.clone())
        }
        _ => None,
    }
}

fn text_literal(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    let list = FunctionArgumentList {
        duplicate_treatment: None,
        args: args.collect(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn cast(expr: Expr, data_type: SqlType) -> Expr {
    let (kind, array, format) = (CastKind::Cast, false, None);
    Expr::Cast { kind, expr: Box::new(expr), data_type, array, format }
}

fn instant() -> SqlType {
    SqlType::Timestamp(None, TimezoneInfo::WithTimeZone)
}

/// Arrays of texts.
pub fn texts() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)))
}

/// The type of a parameter that is cast.
fn arrow_type(sql_type: &SqlType) -> Option<DataType> {
    use datafusion::arrow::datatypes::{IntervalUnit, TimeUnit};
    let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
    Some(match sql_type {
        SqlType::Boolean | SqlType::Bool => DataType::Boolean,
        SqlType::SmallInt(_) | SqlType::Int2(_) => DataType::Int16,
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) => DataType::Int32,
        SqlType::BigInt(_) | SqlType::Int8(_) => DataType::Int64,
        SqlType::Real | SqlType::Float4 => DataType::Float32,
        SqlType::DoublePrecision | SqlType::Double(_) | SqlType::Float8 | SqlType::Float(_) => {
            DataType::Float64
        }
        SqlType::Numeric(_) | SqlType::Decimal(_) => DataType::Float64,
        SqlType::Date => DataType::Date32,
        SqlType::Interval { .. } => DataType::Interval(IntervalUnit::MonthDayNano),
        SqlType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some(crate::samples::ZONE.into()))
        }
        SqlType::Timestamp(..) => DataType::Timestamp(TimeUnit::Microsecond, None),
        SqlType::Text | SqlType::Varchar(_) | SqlType::CharacterVarying(_) | SqlType::Char(_) => {
            DataType::Utf8View
        }
        SqlType::Array(datafusion::sql::sqlparser::ast::ArrayElemTypeDef::SquareBracket(of, _)) => {
            list(arrow_type(of)?)
        }
        _ => return None,
    })
}

/// PostgreSQL's literal of an array: `{a,"b c",NULL}`; none when it is no such literal.
pub fn array_of(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut all = Vec::new();
    if inner.trim().is_empty() {
        return Some(all);
    }
    let (mut one, mut is_open, mut was_quoted) = (String::new(), false, false);
    let mut push = |one: &mut String, was_quoted: &mut bool| {
        let plain = std::mem::take(one);
        all.push(match std::mem::take(was_quoted) {
            true => Some(plain),
            false if plain.trim().eq_ignore_ascii_case("null") => None,
            false => Some(plain.trim().to_string()),
        });
    };
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => one.push(characters.next()?),
            '"' => {
                is_open = !is_open;
                was_quoted = true;
            }
            ',' if !is_open => push(&mut one, &mut was_quoted),
            // Arrays of arrays are not known.
            '{' | '}' if !is_open => return None,
            // What stands around quotes.
            space if was_quoted && !is_open && space.is_whitespace() => {}
            plain => one.push(plain),
        }
    }
    if is_open {
        return None;
    }
    push(&mut one, &mut was_quoted);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    fn rewritten(text: &str) -> Result<(String, Hints), SqlError> {
        let mut all = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
        let hints = rewrite(&mut all[0])?;
        Ok((all[0].to_string(), hints))
    }

    #[test]
    fn postgresqls_ways_become_others() {
        for (text, expected) in [
            (
                "SELECT a = ANY('{x,\"y z\"}') FROM pg_class",
                "SELECT a IN ('x', 'y z') FROM pg_catalog.pg_class",
            ),
            ("SELECT a <> ALL(ARRAY['x'])", "SELECT a NOT IN ('x')"),
            ("SELECT a = ANY('{}')", "SELECT false"),
            ("SELECT pg_catalog.f(1)", "SELECT f(1)"),
            (
                "SELECT a OPERATOR(pg_catalog.~) '^x' COLLATE pg_catalog.default",
                "SELECT a ~ '(?s)^x'",
            ),
            ("SELECT '{\"a\":1}'::jsonb", "SELECT jsonb_in('{\"a\":1}')"),
            ("SELECT '{a,NULL}'::text[]", "SELECT ARRAY['a', NULL]::TEXT[]"),
            ("SELECT 'm'::regclass", "SELECT to_regclass('m')"),
            ("SELECT to_timestamp(5)", "SELECT CAST(to_timestamp(5) AS TIMESTAMP WITH TIME ZONE)"),
        ] {
            assert_eq!(rewritten(text).unwrap().0, expected, "{text}");
        }
    }

    #[test]
    fn what_means_something_else_is_refused() {
        for text in
            ["SELECT a SIMILAR TO 'b'", "SELECT a AT TIME ZONE 'Asia/Tokyo'", "SELECT 'a'::bytea"]
        {
            assert_eq!(rewritten(text).map_err(|error| error.code).unwrap_err(), "0A000", "{text}");
        }
        let deep = format!("SELECT 1{}", "+1".repeat(600));
        assert_eq!(rewritten(&deep).map_err(|error| error.code).unwrap_err(), "54001");
    }

    #[test]
    fn parameters_say_their_types() {
        let text = "SELECT $1::int, $2::timestamptz FROM m WHERE a = ANY($3) LIMIT $4 OFFSET $5";
        let hints = rewritten(text).unwrap().1;
        assert_eq!(hints["$1"], DataType::Int32);
        assert!(matches!(hints["$2"], DataType::Timestamp(_, Some(_))));
        assert_eq!(hints["$3"], texts());
        assert_eq!((&hints["$4"], &hints["$5"]), (&DataType::Int64, &DataType::Int64));
    }
}
