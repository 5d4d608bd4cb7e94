//! Functions of parts of `bytea`, which share their names with functions of texts
//! (<https://www.postgresql.org/docs/15/functions-binarystring.html>), and digests.

use crate::functions::text::bytea::{bytes, is_bytes};
use crate::types::error::SqlError;
use crate::types::function::{function, map_columns};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryArray, BinaryBuilder, Int32Builder, Int64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use std::sync::Arc;

/// Functions of texts that have a variant for `bytea`.
const OVERLOADED: &[(&str, Variant)] = &[
    ("substr", Variant::Part),
    ("overlay", Variant::Overlay),
    ("octet_length", Variant::Length),
    ("bit_length", Variant::BitLength),
    ("strpos", Variant::Position),
    ("btrim", Variant::Trim { at_start: true, at_end: true }),
    ("ltrim", Variant::Trim { at_start: true, at_end: false }),
    ("rtrim", Variant::Trim { at_start: false, at_end: true }),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Variant {
    Part,
    Overlay,
    Length,
    BitLength,
    Position,
    Trim { at_start: bool, at_end: bool },
}

/// Functions of `bytea` alone.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let any = Signature::any(1, Volatility::Immutable);
    let count = function(
        "bit_count",
        any,
        |_| DataType::Int64,
        |args, _| {
            let ones = |one: &[u8]| one.iter().map(|byte| i64::from(byte.count_ones())).sum();
            let made: Int64Array = bytes(&args[0])?.iter().map(|one| one.map(ones)).collect();
            Ok(Arc::new(made) as ArrayRef)
        },
    );
    [
        count,
        digest("sha224", |bytes| Sha224::digest(bytes).to_vec()),
        digest("sha256", |bytes| Sha256::digest(bytes).to_vec()),
        digest("sha384", |bytes| Sha384::digest(bytes).to_vec()),
        digest("sha512", |bytes| Sha512::digest(bytes).to_vec()),
    ]
    .into_iter()
}

fn digest(name: &'static str, of: fn(&[u8]) -> Vec<u8>) -> ScalarUDF {
    let work = move |args: &[ArrayRef], _: usize| {
        let made: BinaryArray = bytes(&args[0])?.iter().map(|one| one.map(of)).collect();
        Ok(Arc::new(made) as ArrayRef)
    };
    function(name, Signature::any(1, Volatility::Immutable), |_| DataType::Binary, work)
}

/// Gives the functions of a session their variants.
pub fn register(context: &SessionContext) {
    for (name, variant) in OVERLOADED {
        if let Some(inner) = context.state().scalar_functions().get(*name).cloned() {
            let signature = Signature::user_defined(Volatility::Immutable);
            context.register_udf(ScalarUDF::from(Overloaded {
                inner,
                variant: *variant,
                signature,
            }));
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Overloaded {
    inner: Arc<ScalarUDF>,
    variant: Variant,
    signature: Signature,
}

impl Overloaded {
    fn returns(&self) -> DataType {
        match self.variant {
            Variant::Part | Variant::Overlay | Variant::Trim { .. } => DataType::Binary,
            Variant::Length | Variant::BitLength | Variant::Position => DataType::Int32,
        }
    }

    fn is_count_known(&self, count: usize) -> bool {
        match self.variant {
            Variant::Part => matches!(count, 2 | 3),
            Variant::Overlay => matches!(count, 3 | 4),
            Variant::Length | Variant::BitLength => count == 1,
            Variant::Position | Variant::Trim { .. } => count == 2,
        }
    }

    /// Whether the first argument is `bytea`, and there are as many as the variant takes.
    fn is_meant(&self, types: &[DataType]) -> bool {
        types.first().is_some_and(is_bytes) && self.is_count_known(types.len())
    }

    fn work(&self, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let first = bytes(&args[0])?;
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        match self.variant {
            Variant::Part => parts(&first, &args[1..], rows),
            Variant::Overlay => overlaid(&first, &args[1..], rows),
            Variant::Length | Variant::BitLength => {
                let times = if self.variant == Variant::Length { 1 } else { 8 };
                let mut out = Int32Builder::with_capacity(rows);
                first
                    .iter()
                    .for_each(|one| out.append_option(one.map(|one| count(one.len() * times))));
                Ok(Arc::new(out.finish()))
            }
            Variant::Position => {
                let (parts, mut out) = (bytes(&args[1])?, Int32Builder::with_capacity(rows));
                for (one, part) in first.iter().zip(&parts) {
                    crate::types::runtime::cancellation::check()?;
                    let both = one.zip(part);
                    out.append_option(both.map(|(one, part)| count(position(one, part))));
                }
                Ok(Arc::new(out.finish()))
            }
            Variant::Trim { at_start, at_end } => {
                let (sets, mut out) = (bytes(&args[1])?, BinaryBuilder::new());
                for (one, set) in first.iter().zip(&sets) {
                    let both = one.zip(set);
                    out.append_option(both.map(|(one, set)| trimmed(one, set, at_start, at_end)));
                }
                Ok(Arc::new(out.finish()))
            }
        }
    }
}

fn types_of(fields: &[FieldRef]) -> Vec<DataType> {
    fields.iter().map(|field| field.data_type().clone()).collect()
}

impl ScalarUDFImpl for Overloaded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if self.is_meant(types) {
            return Ok(types.to_vec());
        }
        let fields = types.iter().map(|ty| Arc::new(Field::new("", ty.clone(), true)) as FieldRef);
        let fields: Vec<FieldRef> = fields.collect();
        Ok(types_of(&fields_with_udf(&fields, self.inner.as_ref())?))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self.is_meant(types) {
            true => Ok(self.returns()),
            false => self.inner.return_type(types),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match self.is_meant(&types_of(args.arg_fields)) {
            true => Ok(Arc::new(Field::new(self.name(), self.returns(), true))),
            false => self.inner.return_field_from_args(args),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if !self.is_meant(&types_of(&args.arg_fields)) {
            return self.inner.invoke_with_args(args);
        }
        map_columns(&args.args, args.number_rows, |arrays, rows| self.work(arrays, rows))
    }
}

fn numbers(array: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn wrong(code: &'static str, words: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(code, words)))
}

/// The bytes from a place that is counted from 1, at most so many.
fn part(bytes: &[u8], from: i64, count: Option<i64>) -> Result<&[u8]> {
    if count.is_some_and(|count| count < 0) {
        return Err(wrong("22011", "negative substring length not allowed"));
    }
    let place = |at: i64| usize::try_from(at.max(0)).unwrap_or(usize::MAX).min(bytes.len());
    let first = from.saturating_sub(1);
    let end = count.map_or(i64::MAX, |count| first.saturating_add(count));
    Ok(bytes.get(place(first)..place(end)).unwrap_or_default())
}

fn parts(all: &BinaryArray, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let from = numbers(&args[0])?;
    let counts = args.get(1).map(numbers).transpose()?;
    let mut out = BinaryBuilder::new();
    for row in 0..rows {
        let has_no_count = counts.as_ref().is_some_and(|counts| counts.is_null(row));
        if all.is_null(row) || from.is_null(row) || has_no_count {
            out.append_null();
            continue;
        }
        let count = counts.as_ref().map(|counts| counts.value(row));
        out.append_value(part(all.value(row), from.value(row), count)?);
    }
    Ok(Arc::new(out.finish()))
}

/// `overlay(bytes placing other from place for count)`.
fn overlaid(all: &BinaryArray, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (others, from) = (bytes(&args[0])?, numbers(&args[1])?);
    let counts = args.get(2).map(numbers).transpose()?;
    let mut out = BinaryBuilder::new();
    for row in 0..rows {
        let has_no_count = counts.as_ref().is_some_and(|counts| counts.is_null(row));
        if all.is_null(row) || others.is_null(row) || from.is_null(row) || has_no_count {
            out.append_null();
            continue;
        }
        let (one, other, from) = (all.value(row), others.value(row), from.value(row));
        if from <= 0 {
            return Err(wrong("22011", "negative substring length not allowed"));
        }
        let length = i64::try_from(other.len()).unwrap_or(i64::MAX);
        let count = counts.as_ref().map_or(length, |counts| counts.value(row));
        let before = part(one, 1, Some(from - 1))?;
        let behind = part(one, from.saturating_add(count), None)?;
        out.append_value([before, other, behind].concat());
    }
    Ok(Arc::new(out.finish()))
}

/// The place of a part, counted from 1; 0 where it is not there.
fn position(bytes: &[u8], part: &[u8]) -> usize {
    if part.is_empty() {
        return 1;
    }
    bytes.windows(part.len()).position(|window| window == part).map_or(0, |at| at + 1)
}

fn trimmed<'a>(mut bytes: &'a [u8], set: &[u8], at_start: bool, at_end: bool) -> &'a [u8] {
    while at_start
        && let [first, rest @ ..] = bytes
        && set.contains(first)
    {
        bytes = rest;
    }
    while at_end
        && let [rest @ .., last] = bytes
        && set.contains(last)
    {
        bytes = rest;
    }
    bytes
}
