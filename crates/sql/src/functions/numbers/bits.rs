//! The operators of bits: `&`, `|`, `#`, `~`, `<<` and `>>` of whole numbers
//! (<https://www.postgresql.org/docs/15/functions-math.html>).
//!
//! They are functions: the optimizer of DataFusion takes `-x` for `~x`, and `NULL # NULL` for 0.

use crate::types::function::function;
use datafusion::arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray as _};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::arity::{binary, unary};
use datafusion::arrow::datatypes::{DataType, Field, Int16Type, Int32Type, Int64Type};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, ScalarUDF, Signature, Volatility};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::{Arc, LazyLock};

/// The function that `~` is written as.
pub const BIT_NOT: &str = "pg_bit_not";

static AND: LazyLock<ScalarUDF> = LazyLock::new(|| of_two("pg_bit_and", |a, b| a & b));
static OR: LazyLock<ScalarUDF> = LazyLock::new(|| of_two("pg_bit_or", |a, b| a | b));
static XOR: LazyLock<ScalarUDF> = LazyLock::new(|| of_two("pg_bit_xor", |a, b| a ^ b));
static SHIFT_LEFT: LazyLock<ScalarUDF> = LazyLock::new(|| shift("pg_shift_left", Direction::Left));
static SHIFT_RIGHT: LazyLock<ScalarUDF> =
    LazyLock::new(|| shift("pg_shift_right", Direction::Right));

/// The call that does the work of an operator of bits; None for other operators.
///
/// # Errors
/// When a side is no whole number, as 42883.
pub fn resolve(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (function, is_shift) = match expr.op {
        BinaryOperator::BitwiseAnd => (&AND, false),
        BinaryOperator::BitwiseOr => (&OR, false),
        BinaryOperator::PGBitwiseXor => (&XOR, false),
        BinaryOperator::PGBitwiseShiftLeft => (&SHIFT_LEFT, true),
        BinaryOperator::PGBitwiseShiftRight => (&SHIFT_RIGHT, true),
        _ => return Ok(None),
    };
    let (left, right) = (width(&expr.left, schema), width(&expr.right, schema));
    let (left, right) = match (left, right) {
        (Width::Int(left), Width::Int(right)) if is_shift => match right {
            DataType::Int64 => return refuse(expr, schema),
            _ => (left, DataType::Int32),
        },
        (Width::Int(left), Width::Open) if is_shift => (left, DataType::Int32),
        (Width::Int(left), Width::Int(right)) => {
            let wider = wider(left, right);
            (wider.clone(), wider)
        }
        (Width::Int(of), Width::Open) | (Width::Open, Width::Int(of)) => (of.clone(), of),
        _ => return refuse(expr, schema),
    };
    let sides = vec![as_type(&expr.left, left), as_type(&expr.right, right)];
    Ok(Some(function.call(sides)))
}

/// `~`, which is written as a call before it is planned.
pub fn bit_not() -> ScalarUDF {
    let work = |args: &[ArrayRef], _: usize| {
        let of = &args[0];
        Ok(match of.data_type() {
            DataType::Int16 => inverted::<Int16Type>(of, |one| !one),
            DataType::Int32 => inverted::<Int32Type>(of, |one| !one),
            _ => inverted::<Int64Type>(of, |one| !one),
        })
    };
    let types = vec![DataType::Int16, DataType::Int32, DataType::Int64];
    let signature = Signature::uniform(1, types, Volatility::Immutable);
    function(BIT_NOT, signature, first_type, work)
}

/// The type of an operand.
enum Width {
    Int(DataType),
    /// An untyped literal, NULL, or a parameter without a type.
    Open,
    Other,
}

fn width(side: &Expr, schema: &DFSchema) -> Width {
    match side {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => {
            return Width::Int(DataType::Int32);
        }
        Expr::Literal(value, _) if value.data_type().is_string() => return Width::Open,
        Expr::Placeholder(Placeholder { field: None, .. }) => return Width::Open,
        _ => {}
    }
    match side.get_type(schema) {
        Ok(ty @ (DataType::Int16 | DataType::Int32 | DataType::Int64)) => Width::Int(ty),
        Ok(DataType::Int8 | DataType::UInt8) => Width::Int(DataType::Int16),
        Ok(DataType::UInt16) => Width::Int(DataType::Int32),
        Ok(DataType::UInt32 | DataType::UInt64) => Width::Int(DataType::Int64),
        Ok(DataType::Null) => Width::Open,
        _ => Width::Other,
    }
}

fn wider(left: DataType, right: DataType) -> DataType {
    let bytes = |ty: &DataType| ty.primitive_width().unwrap_or(0);
    if bytes(&left) < bytes(&right) { right } else { left }
}

fn as_type(side: &Expr, ty: DataType) -> Expr {
    let field = Arc::new(Field::new("", ty, true));
    match side {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            Expr::Placeholder(Placeholder { id: id.clone(), field: Some(field) })
        }
        other => Expr::Cast(Cast { expr: Box::new(other.clone()), field }),
    }
}

fn refuse(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let name = |side: &Expr| side.get_type(schema).unwrap_or(DataType::Null);
    let (left, right) = (name(&expr.left), name(&expr.right));
    plan_err!("Cannot coerce arithmetic expression {left} {} {right} to valid types", expr.op)
}

fn first_type(types: &[DataType]) -> DataType {
    types.first().cloned().unwrap_or(DataType::Int64)
}

/// Both sides have the same type.
fn of_two(name: &'static str, of: fn(i64, i64) -> i64) -> ScalarUDF {
    let work = move |args: &[ArrayRef], _: usize| {
        // Operands of another type, as a parameter may have, are read as the first one's.
        let ty = match args[0].data_type() {
            ty @ (DataType::Int16 | DataType::Int32) => ty.clone(),
            _ => DataType::Int64,
        };
        let (left, right) = (&cast(&args[0], &ty)?, &cast(&args[1], &ty)?);
        match left.data_type() {
            DataType::Int16 => {
                combined::<Int16Type>(left, right, |a, b| cut(of(a.into(), b.into())))
            }
            DataType::Int32 => {
                combined::<Int32Type>(left, right, |a, b| cut(of(a.into(), b.into())))
            }
            _ => combined::<Int64Type>(left, right, of),
        }
    };
    function(name, Signature::any(2, Volatility::Immutable), first_type, work)
}

/// The low bits of a number that fits.
fn cut<T: TryFrom<i64> + Default>(number: i64) -> T {
    T::try_from(number).unwrap_or_default()
}

#[derive(Clone, Copy)]
enum Direction {
    Left,
    Right,
}

/// Moves bits by a number of places modulo the width, as the processor does for PostgreSQL; a `smallint` is moved
/// as an `integer`, and cut.
fn shift(name: &'static str, direction: Direction) -> ScalarUDF {
    let long = move |one: i64, by: i32| match direction {
        Direction::Left => one.wrapping_shl(by.cast_unsigned()),
        Direction::Right => one.wrapping_shr(by.cast_unsigned()),
    };
    let middle = move |one: i32, by: i32| match direction {
        Direction::Left => one.wrapping_shl(by.cast_unsigned()),
        Direction::Right => one.wrapping_shr(by.cast_unsigned()),
    };
    let work = move |args: &[ArrayRef], _: usize| {
        let by = cast(&args[1], &DataType::Int32)?;
        let by = by.as_primitive::<Int32Type>();
        Ok(match args[0].data_type() {
            DataType::Int16 => {
                let short = |one: i16, by| low_bits(middle(one.into(), by));
                let of = args[0].as_primitive::<Int16Type>();
                Arc::new(binary::<_, _, _, Int16Type>(of, by, short)?) as ArrayRef
            }
            DataType::Int32 => {
                let of = args[0].as_primitive::<Int32Type>();
                Arc::new(binary::<_, _, _, Int32Type>(of, by, middle)?)
            }
            _ => {
                let of = cast(&args[0], &DataType::Int64)?;
                Arc::new(binary::<Int64Type, _, _, Int64Type>(of.as_primitive(), by, long)?)
            }
        })
    };
    function(name, Signature::any(2, Volatility::Immutable), first_type, work)
}

fn low_bits(number: i32) -> i16 {
    let [low, high, ..] = number.to_le_bytes();
    i16::from_le_bytes([low, high])
}

fn combined<T: ArrowPrimitiveType>(
    left: &ArrayRef,
    right: &ArrayRef,
    of: impl Fn(T::Native, T::Native) -> T::Native,
) -> Result<ArrayRef> {
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    Ok(Arc::new(binary::<_, _, _, T>(left, right, of)?))
}

fn inverted<T: ArrowPrimitiveType>(
    of: &ArrayRef,
    not: impl Fn(T::Native) -> T::Native,
) -> ArrayRef {
    Arc::new(unary::<T, _, T>(of.as_primitive(), not))
}
