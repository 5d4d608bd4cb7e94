//! The order of `jsonb` (<https://www.postgresql.org/docs/15/datatype-json.html#JSON-INDEXING>): an object is above an
//! array, an array above a boolean, a number, a string and null; among arrays and objects the one with more parts is
//! above. A value that stands alone is an array of one part, below arrays that have one.
//!
//! A key of bytes has the order: it is what is sorted and compared.

use crate::types::function::function;
use crate::types::json::json_value::{Number, Value};
use crate::types::json::jsonb;
use crate::types::numeric::value::Numeric;
use datafusion::arrow::array::{ArrayRef, BinaryArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::as_string_view_array;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

/// Returns sort keys of `jsonb` values: bytes that order as PostgreSQL orders the values.
pub static JSONB_ORDER: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let keys = |args: &[ArrayRef], _: usize| {
        let texts = cast(&args[0], &DataType::Utf8View)?;
        let texts: &StringViewArray = as_string_view_array(&texts)?;
        let keys = texts.iter().map(|text| text.and_then(key)).collect::<BinaryArray>();
        Ok(Arc::new(keys) as ArrayRef)
    };
    Arc::new(function("pg_jsonb_order", signature, |_| DataType::Binary, keys))
});

const NULL: u8 = 0;
const STRING: u8 = 1;
const NUMBER: u8 = 2;
const FALSE: u8 = 3;
const TRUE: u8 = 4;
const ARRAY: u8 = 5;
const OBJECT: u8 = 6;

fn key(text: &str) -> Option<Vec<u8>> {
    let value = jsonb::parse(text)?;
    let mut out = Vec::with_capacity(text.len() + 16);
    if !value.is_array() && !value.is_object() {
        push_count(ARRAY, 1, &mut out);
        out.push(0);
    }
    push(&value, &mut out);
    Some(out)
}

fn push_count(kind: u8, count: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend(text.as_bytes());
    // No text has a zero byte.
    out.push(0);
}

fn push(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::String(text) => {
            out.push(STRING);
            push_text(text, out);
        }
        Value::Number(number) => {
            out.push(NUMBER);
            push_number(number, out);
        }
        Value::Array(all) => {
            push_count(ARRAY, all.len(), out);
            out.push(1);
            all.iter().for_each(|one| push(one, out));
        }
        Value::Object(map) => {
            push_count(OBJECT, map.len(), out);
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            pairs.sort_by(|(one, _), (other, _)| (one.len(), one).cmp(&(other.len(), other)));
            for (name, one) in pairs {
                push_text(name, out);
                push(one, out);
            }
        }
    }
}

/// The nearest float, and among numbers of one float the digits.
fn push_number(number: &Number, out: &mut Vec<u8>) {
    let text = number.text();
    // Zero with a sign is zero.
    let float = text.parse::<f64>().unwrap_or(f64::NAN) + 0.0;
    let bits = float.to_bits();
    let is_negative = bits >> 63 == 1;
    out.extend((if is_negative { !bits } else { bits | 1 << 63 }).to_be_bytes());
    let exact = Numeric::parse(text).and_then(|one| one.encode());
    let mut exact = exact.map(|raw| Numeric::key(raw).to_be_bytes()).unwrap_or_default();
    exact[0] ^= 1 << 7;
    out.extend(exact);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_postgresql() {
        let all = [
            "[]",
            "null",
            "\"\"",
            "\"a\"",
            "\"ab\"",
            "\"b\"",
            "-10",
            "-1.5",
            "0",
            "0.5",
            "1",
            "9",
            "10",
            "9007199254740993",
            "1e30",
            "false",
            "true",
            "[null]",
            "[\"a\"]",
            "[1]",
            "[2]",
            "[[]]",
            "[{}]",
            "[1, 1]",
            "{}",
            "{\"a\": 1}",
            "{\"a\": 2}",
            "{\"aa\": 1}",
            "{\"b\": 1}",
            "{\"a\": 1, \"b\": 1}",
        ];
        for two in all.windows(2) {
            assert!(key(two[0]) < key(two[1]), "{two:?}");
        }
        assert_eq!(key("1.0"), key("1"));
        assert_eq!(key("-0"), key("0"));
    }
}
