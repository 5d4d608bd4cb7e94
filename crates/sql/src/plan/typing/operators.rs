//! Operators that are functions here: those of `jsonb`, and `||` of texts.

use crate::catalog::regproc::REGPROC;
use crate::functions::arrays::array_sets::contains_all;
use crate::functions::calendar::days::days_between;
use crate::functions::calendar::spans::call as time_between;
use crate::functions::json::jsonb_changed::delete_path;
use crate::functions::json::jsonb_functions::{
    CONCAT, CONTAINS, DELETE, FIELD, FIELD_TEXT, HAS_ALL, HAS_ANY, HAS_KEY, PATH, PATH_TEXT, call,
};
use crate::functions::numbers::bits;
use crate::functions::text::{bytea, texts};
use crate::parse::rewrite::types::arrow_type;
use crate::plan::typing::casts::cast_changes::{
    as_interval, literal_time, read_literal, text_as_interval,
};
use crate::plan::typing::number_operators;
use crate::plan::typing::special_types::is_jsonb;
use crate::types::casts::array_casts::read_text;
use crate::types::categories::{common_number, is_open};
use crate::types::numeric::exact_casts;
use crate::types::numeric::value::NUMERIC;
use crate::types::special_fields::{BPCHAR, JSON, JSONB, UUID, VARCHAR, special_field};
use crate::types::text::array_literals::array_of;
use crate::types::time::interval_products::{product, quotient};
use crate::types::time::intervals::INTERVAL;
use crate::types::time::zones::ZONE;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, TypePlanner};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, ScalarUDF};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, ExactNumberInfo, TimezoneInfo,
};
use std::sync::{Arc, LazyLock};

static DELETED_AT: LazyLock<ScalarUDF> = LazyLock::new(delete_path);

/// Makes functions of operators.
#[derive(Debug)]
pub struct JsonbOperators;

impl ExprPlanner for JsonbOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let name = match expr.op {
            BinaryOperator::LongArrow => FIELD_TEXT,
            BinaryOperator::Arrow => FIELD,
            BinaryOperator::AtArrow | BinaryOperator::ArrowAt => match has_all(&expr, schema) {
                Some(planned) => return Ok(PlannerResult::Planned(planned)),
                None => CONTAINS,
            },
            BinaryOperator::Question => HAS_KEY,
            BinaryOperator::QuestionPipe => HAS_ANY,
            BinaryOperator::QuestionAnd => HAS_ALL,
            BinaryOperator::HashArrow => PATH,
            BinaryOperator::HashLongArrow => PATH_TEXT,
            BinaryOperator::HashMinus => {
                let args = vec![expr.left, expr.right];
                return Ok(PlannerResult::Planned(DELETED_AT.call(args)));
            }
            BinaryOperator::Minus if is_jsonb(&expr.left, schema)? => DELETE,
            BinaryOperator::Minus | BinaryOperator::Plus => {
                let expr = with_time(with_same_type(expr, schema)?, schema);
                let (left, right) = (&expr.left, &expr.right);
                let difference = match expr.op {
                    BinaryOperator::Minus => time_between(left, right, schema)
                        .or_else(|| days_between(left, right, schema)),
                    _ => None,
                };
                return match difference {
                    Some(planned) => Ok(PlannerResult::Planned(planned)),
                    None => number_operators::resolve(expr, schema),
                };
            }
            BinaryOperator::Multiply | BinaryOperator::Divide => {
                let of = if expr.op == BinaryOperator::Multiply { product } else { quotient };
                return match of(&expr.left, &expr.right, schema) {
                    Some(planned) => Ok(PlannerResult::Planned(planned)),
                    None => number_operators::resolve(expr, schema),
                };
            }
            BinaryOperator::StringConcat => return joined_sides(expr, schema),
            _ => {
                let expr = with_compared_type(expr, schema)?;
                return match bits::resolve(&expr, schema)? {
                    Some(planned) => Ok(PlannerResult::Planned(planned)),
                    None => number_operators::resolve(with_arrays(expr, schema), schema),
                };
            }
        };
        let is_swapped = expr.op == BinaryOperator::ArrowAt;
        let mut args = vec![expr.left, expr.right];
        if is_swapped {
            args.reverse();
        }
        Ok(PlannerResult::Planned(call(name, args)))
    }
}

/// Plans `||` by what stands on its sides.
fn joined_sides(expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    if let Some(array) = array_beside_null(&expr, schema) {
        return Ok(PlannerResult::Planned(array));
    }
    if let Some(arrays) = arrays_of_literal(&expr, schema)? {
        return Ok(PlannerResult::Original(arrays));
    }
    Ok(match joined(&expr, schema)? {
        Some(Joins::Jsonb) => PlannerResult::Planned(call(CONCAT, vec![expr.left, expr.right])),
        Some(Joins::Bytes) => {
            PlannerResult::Planned(bytea::JOINED.call(vec![expr.left, expr.right]))
        }
        Some(Joins::Texts) => {
            PlannerResult::Planned(texts::JOINED.call(vec![expr.left, expr.right]))
        }
        None => PlannerResult::Original(with_one_number(expr, schema)),
    })
}

/// Reads a quoted literal as the type of the other side, where PostgreSQL has `+` or `-` of two such values, and as an
/// interval beside a time of day (<https://www.postgresql.org/docs/15/typeconv-oper.html>).
///
/// # Errors
/// 22007 and 22008 for a literal that is no such value.
fn with_same_type(expr: RawBinaryExpr, schema: &DFSchema) -> Result<RawBinaryExpr> {
    let is_minus = expr.op == BinaryOperator::Minus;
    with_literal_type(expr, schema, |ty| match ty {
        DataType::Interval(_) => Some(ty.clone()),
        DataType::Date32 | DataType::Time64(_) if is_minus => Some(ty.clone()),
        DataType::Time64(_) => Some(INTERVAL),
        _ => None,
    })
}

/// Reads a quoted literal that is compared with a value of a type that DataFusion does not compare with texts.
///
/// # Errors
/// 22007, 22008 and 22P02 for a literal that is no such value.
fn with_compared_type(expr: RawBinaryExpr, schema: &DFSchema) -> Result<RawBinaryExpr> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if !matches!(expr.op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
        return Ok(expr);
    }
    with_literal_type(expr, schema, |ty| match ty {
        DataType::Interval(_) | DataType::Time64(_) => Some(ty.clone()),
        DataType::Boolean | DataType::Binary => Some(ty.clone()),
        _ => None,
    })
}

/// Reads a quoted literal as the type that the type of the other side asks for.
///
/// # Errors
/// Returns the errors of the cast.
fn with_literal_type(
    mut expr: RawBinaryExpr,
    schema: &DFSchema,
    wanted: impl Fn(&DataType) -> Option<DataType>,
) -> Result<RawBinaryExpr> {
    let wanted = |side: &Expr| side.get_type(schema).ok().and_then(|ty| wanted(&ty));
    match (is_open(&expr.left), is_open(&expr.right)) {
        (false, true) if let Some(ty) = wanted(&expr.left) => {
            expr.right = read_literal(expr.right, &ty, schema)?;
        }
        (true, false) if let Some(ty) = wanted(&expr.right) => {
            expr.left = read_literal(expr.left, &ty, schema)?;
        }
        _ => {}
    }
    Ok(expr)
}

/// A text that is taken from a time, or from which one is taken, is a time, too; one that is added is
/// an interval.
fn with_time(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let time_of = |side: &Expr| match side.get_type(schema) {
        Ok(one @ DataType::Timestamp(..)) => Some(one),
        _ => None,
    };
    let is_taken = expr.op == BinaryOperator::Minus;
    let of = |side: &Expr| side.get_type(schema).ok();
    let is_interval = |side: &Expr| matches!(of(side), Some(DataType::Interval(_)));
    let is_date = |side: &Expr| matches!(of(side), Some(DataType::Date32));
    // A day and an interval are a time: the interval may be of hours.
    if is_date(&expr.left) && is_interval(&expr.right) {
        expr.left = cast_to_clock(expr.left);
    } else if is_interval(&expr.left) && is_date(&expr.right) {
        expr.right = cast_to_clock(expr.right);
    }
    let is_declared = matches!(&expr.right, Expr::Placeholder(one) if one.field.is_some());
    if is_declared {
        return expr;
    }
    if let Some(time) = time_of(&expr.left) {
        let read = is_taken.then(|| literal_time(&expr.right, &time)).flatten();
        // What is taken from now is how long ago something was.
        let is_length =
            !is_taken || matches!(&expr.left, Expr::ScalarFunction(f) if f.name() == "now");
        expr.right = read.unwrap_or_else(|| match is_length {
            true => as_interval(expr.right),
            false => text_as_interval(expr.right),
        });
    } else if let Some(time) = time_of(&expr.right) {
        let read = is_taken.then(|| literal_time(&expr.left, &time)).flatten();
        expr.left = read.unwrap_or_else(|| text_as_interval(expr.left));
    }
    expr
}

fn cast_to_clock(date: Expr) -> Expr {
    let clock = DataType::Timestamp(TimeUnit::Microsecond, None);
    Expr::Cast(Cast { expr: Box::new(date), field: Arc::new(Field::new("timestamp", clock, true)) })
}

/// Whether one array has all values of another, if they are arrays.
fn has_all(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let (all, some) = match expr.op {
        BinaryOperator::AtArrow => (&expr.left, &expr.right),
        _ => (&expr.right, &expr.left),
    };
    let list = |side: &Expr| match side.get_type(schema) {
        Ok(DataType::List(of)) => Some(of.data_type().clone()),
        _ => None,
    };
    match (list(all), list(some)) {
        (Some(_), Some(_)) => Some(contains_all(all.clone(), some.clone())),
        (Some(of), None) => Some(contains_all(all.clone(), as_list(some, &of, schema)?)),
        (None, Some(of)) => Some(contains_all(as_list(all, &of, schema)?, some.clone())),
        (None, None) => None,
    }
}

/// An untyped literal or parameter as an array of a type; None for other expressions, and for a text that is no array.
fn as_list(side: &Expr, of: &DataType, schema: &DFSchema) -> Option<Expr> {
    match side {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            let list = DataType::List(Arc::new(Field::new_list_field(of.clone(), true)));
            let field = Some(Arc::new(Field::new("list", list, true)));
            Some(Expr::Placeholder(Placeholder { id: id.clone(), field }))
        }
        Expr::Literal(text, _) => {
            let texts = array_of(text.try_as_str()??)?;
            if texts.is_empty() {
                return Some(Expr::Literal(
                    ScalarValue::List(ScalarValue::new_list(&[], of, true)),
                    None,
                ));
            }
            let each = |text: Option<String>| {
                let text = Expr::Literal(ScalarValue::Utf8View(text), None);
                text.cast_to(of, schema).ok()
            };
            let elements: Option<Vec<Expr>> = texts.into_iter().map(each).collect();
            Some(make_array(elements?))
        }
        _ => None,
    }
}

/// `array || NULL`, where the NULL without a type is an array: the array as it is.
fn array_beside_null(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let is_null = |side: &Expr| matches!(side, Expr::Literal(ScalarValue::Null, _));
    let is_array = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::List(_)));
    match (&expr.left, &expr.right) {
        (array, null) if is_array(array) && is_null(null) => Some(array.clone()),
        (null, array) if is_array(array) && is_null(null) => Some(array.clone()),
        _ => None,
    }
}

/// `array || 'literal'`, where the literal is an array, too; none without such a literal.
///
/// # Errors
/// `22P02` when the literal is no array.
fn arrays_of_literal(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<RawBinaryExpr>> {
    let text = |side: &Expr| match side {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text.clone()),
        _ => None,
    };
    let element = |side: &Expr| match side.get_type(schema) {
        Ok(DataType::List(of)) => Some(of.data_type().clone()),
        _ => None,
    };
    let (found, side, of) = match (text(&expr.left), text(&expr.right)) {
        (Some(found), None) => (found, &expr.left, element(&expr.right)),
        (None, Some(found)) => (found, &expr.right, element(&expr.left)),
        _ => return Ok(None),
    };
    let Some(of) = of else { return Ok(None) };
    read_text(&found).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let Some(array) = as_list(side, &of, schema) else { return Ok(None) };
    let (left, right) = match std::ptr::eq(side, &expr.left) {
        true => (array, expr.right.clone()),
        false => (expr.left.clone(), array),
    };
    Ok(Some(RawBinaryExpr { op: expr.op.clone(), left, right }))
}

/// Reads an untyped literal beside an array as an array: `tags = '{a,b}'`.
fn with_arrays(mut expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if !matches!(expr.op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
        return expr;
    }
    let element = |side: &Expr| match side.get_type(schema) {
        Ok(DataType::List(of)) => Some(of.data_type().clone()),
        _ => None,
    };
    let (left, right) = (element(&expr.left), element(&expr.right));
    match (left, right) {
        (Some(of), None) => {
            expr.right = as_list(&expr.right, &of, schema).unwrap_or(expr.right);
        }
        (None, Some(of)) => expr.left = as_list(&expr.left, &of, schema).unwrap_or(expr.left),
        _ => {}
    }
    expr
}

/// An array of numbers and a number, or another array, of which both have the same type.
fn with_one_number(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let of = |side: &Expr| match side.get_type(schema) {
        Ok(DataType::List(of)) => Some((true, of.data_type().clone())),
        Ok(ty) => Some((false, ty)),
        Err(_) => None,
    };
    let short = |side: Expr| match &side {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => match i32::try_from(*number) {
            Ok(number) => Expr::Literal(ScalarValue::Int32(Some(number)), None),
            Err(_) => side,
        },
        _ => side,
    };
    let RawBinaryExpr { op, left, right } = expr;
    let (left, right) = (short(left), short(right));
    let made = |left, right| RawBinaryExpr { op: op.clone(), left, right };
    let (Some((left_is_list, one)), Some((right_is_list, other))) = (of(&left), of(&right)) else {
        return made(left, right);
    };
    let Some(common) = common_number(&[one, other]) else { return made(left, right) };
    let wanted = |is_list: bool| match is_list {
        true => DataType::List(Arc::new(Field::new_list_field(common.clone(), true))),
        false => common.clone(),
    };
    let cast =
        |side: Expr, is_list: bool| exact_casts::exact_cast(&wanted(is_list)).call(vec![side]);
    made(cast(left, left_is_list), cast(right, right_is_list))
}

/// What `||` puts together.
enum Joins {
    Jsonb,
    Bytes,
    Texts,
}

/// None where it is arrays, or nothing is known of it.
fn joined(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<Joins>> {
    let is_open = |side: &Expr| matches!(side, Expr::Literal(..) | Expr::Placeholder(_));
    let sides = [&expr.left, &expr.right];
    let mut are_jsonb = [false; 2];
    for (side, is_one) in sides.iter().zip(&mut are_jsonb) {
        *is_one = is_jsonb(side, schema)?;
    }
    let may_be = sides.iter().zip(are_jsonb).all(|(side, is_one)| is_one || is_open(side));
    if may_be && are_jsonb.contains(&true) {
        return Ok(Some(Joins::Jsonb));
    }
    let are_bytes = |side: &&Expr| matches!(side.get_type(schema), Ok(DataType::Binary));
    if sides.iter().any(are_bytes) && sides.iter().all(|side| are_bytes(side) || is_open(side)) {
        return Ok(Some(Joins::Bytes));
    }
    let is_array = |side: &&Expr| {
        matches!(
            side.get_type(schema),
            Ok(DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
        )
    };
    Ok((!sides.iter().any(is_array)).then_some(Joins::Texts))
}

/// Binary digits of a `real`.
const REAL_DIGITS: u64 = 24;

/// Types that DataFusion does not know by PostgreSQL's names.
#[derive(Debug)]
pub struct PostgresTypes;

impl TypePlanner for PostgresTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let text = |of| Arc::new(special_field(of, of, DataType::Utf8View, true));
        Ok(match sql_type {
            // `float` is `float8`, and `float(24)` is `float4`.
            SqlType::Float(digits) => {
                let is_short =
                    matches!(digits, ExactNumberInfo::Precision(digits) if *digits <= REAL_DIGITS);
                let ty = if is_short { DataType::Float32 } else { DataType::Float64 };
                Some(Arc::new(Field::new("float", ty, true)))
            }
            SqlType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                let micros = DataType::Time64(TimeUnit::Microsecond);
                Some(Arc::new(Field::new("time", micros, true)))
            }
            SqlType::Numeric(_) | SqlType::Decimal(_) | SqlType::Dec(_) => {
                Some(Arc::new(Field::new("numeric", NUMERIC, true)))
            }
            SqlType::JSONB => Some(text(JSONB)),
            SqlType::JSON => Some(text(JSON)),
            SqlType::Varchar(_) | SqlType::CharacterVarying(_) | SqlType::CharVarying(_) => {
                Some(text(VARCHAR))
            }
            SqlType::Char(_) | SqlType::Character(_) => Some(text(BPCHAR)),
            SqlType::Uuid => Some(text(UUID)),
            SqlType::Timestamp(_, zone) => {
                let is_instant = matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
                let zone = is_instant.then(|| ZONE.into());
                let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
                Some(Arc::new(Field::new("timestamp", micros, true)))
            }
            // With a name of its own the field is what the cast says: a `jsonb` that becomes a text is
            // none to clients any more.
            SqlType::Text => Some(Arc::new(Field::new("text", DataType::Utf8View, true))),
            // What PostgreSQL's own tables are asked with.
            SqlType::Custom(name, _) => {
                let name = name.0.last().and_then(|part| part.as_ident());
                match name.map(|ident| ident.value.to_ascii_lowercase()).as_deref() {
                    Some(of @ ("oid" | "xid" | "cid")) => {
                        Some(Arc::new(special_field(of, of, DataType::Int32, true)))
                    }
                    Some(of @ "name") => Some(text(of)),
                    Some("regproc" | "regprocedure") => {
                        Some(Arc::new(special_field(REGPROC, REGPROC, DataType::Int32, true)))
                    }
                    Some("char") => Some(Arc::new(Field::new("name", DataType::Utf8View, true))),
                    _ => None,
                }
            }
            // A field without a name would get the metadata of the value: `'1'::varchar::int` is no `varchar`.
            other => arrow_type(other).map(|ty| Arc::new(Field::new("cast", ty, true))),
        })
    }
}
