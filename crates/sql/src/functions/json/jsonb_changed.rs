//! Functions that make another `jsonb` of one: `jsonb_set`, `jsonb_insert`, `#-`, `jsonb_strip_nulls`
//! (<https://www.postgresql.org/docs/15/functions-json.html>).

use crate::types::error::SqlError;
use crate::types::json::json_value::Value;
use crate::types::json::jsonb;
use crate::types::json::jsonb::no_json;
use crate::types::special_fields::jsonb_field;
use crate::types::text::array_literals::array_of;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    /// The value at a path is another; with `false` behind it, where there is one.
    Set,
    /// A value comes before what is at a path; with `true` behind it, after it.
    Insert,
    DeletePath,
    StripNulls,
}

const ALL: &[(&str, Work, &[usize])] = &[
    ("jsonb_set", Work::Set, &[3, 4]),
    ("jsonb_insert", Work::Insert, &[3, 4]),
    ("jsonb_strip_nulls", Work::StripNulls, &[1]),
];

/// The functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    ALL.iter().map(|&(name, work, counts)| made(name, work, counts))
}

/// `jsonb #- path`.
pub fn delete_path() -> ScalarUDF {
    made("jsonb_delete_path", Work::DeletePath, &[2])
}

fn made(name: &'static str, work: Work, counts: &[usize]) -> ScalarUDF {
    let takes = counts.iter().map(|count| TypeSignature::Any(*count)).collect();
    let signature = Signature::one_of(takes, Volatility::Immutable);
    ScalarUDF::from(Function { name, work, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    work: Work,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(jsonb_field(self.name, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays: Result<Vec<ArrayRef>> =
            args.args.iter().map(|one| one.to_array(rows)).collect();
        let columns = Columns::of(&arrays?, self.work)?;
        let mut out = StringViewBuilder::with_capacity(rows);
        for row in 0..rows {
            out.append_option(columns.changed(row, self.work)?);
        }
        Ok(ColumnarValue::Array(Arc::new(out.finish())))
    }
}

/// The arguments of a call.
struct Columns {
    values: StringViewArray,
    paths: Option<ArrayRef>,
    new: Option<StringViewArray>,
    flag: Option<BooleanArray>,
}

fn texts(array: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
}

impl Columns {
    fn of(args: &[ArrayRef], work: Work) -> Result<Columns> {
        let paths = args.get(1).filter(|_| work != Work::StripNulls).cloned();
        let flag = args.get(3).map(|flag| cast(flag, &DataType::Boolean)).transpose()?;
        Ok(Columns {
            values: texts(&args[0])?,
            paths,
            new: args.get(2).map(texts).transpose()?,
            flag: flag.map(|flag| flag.as_boolean().clone()),
        })
    }

    /// What becomes of a row; null where an argument is null.
    fn changed(&self, row: usize, work: Work) -> Result<Option<String>> {
        let is_null = self.values.is_null(row)
            || self.paths.as_ref().is_some_and(|paths| paths.is_null(row))
            || self.new.as_ref().is_some_and(|new| new.is_null(row))
            || self.flag.as_ref().is_some_and(|flag| flag.is_null(row));
        if is_null {
            return Ok(None);
        }
        let read = |text: &str| jsonb::parse(text).ok_or_else(|| no_json(text));
        let mut value = read(self.values.value(row))?;
        let path = self.paths.as_ref().map(|paths| path_of(paths, row)).transpose()?;
        let path = path.unwrap_or_default();
        let new = self.new.as_ref().map(|new| read(new.value(row))).transpose()?;
        let flag = self.flag.as_ref().map(|flag| flag.value(row));
        match (work, new) {
            (Work::Set, Some(new)) => set(&mut value, &path, new, flag.unwrap_or(true))?,
            (Work::Insert, Some(new)) => insert(&mut value, &path, new, flag.unwrap_or(false))?,
            (Work::DeletePath, _) => delete(&mut value, &path)?,
            _ => strip_nulls(&mut value),
        }
        Ok(Some(jsonb::shown(&value)))
    }
}

/// The steps of a path, which is an array of texts, or the text of one.
fn path_of(paths: &ArrayRef, row: usize) -> Result<Vec<String>> {
    let steps: Option<Vec<Option<String>>> = match paths.as_list_opt::<i32>() {
        Some(list) => {
            let steps = texts(&list.value(row))?;
            Some(steps.iter().map(|step| step.map(str::to_string)).collect())
        }
        None => array_of(texts(paths)?.value(row)),
    };
    let steps =
        steps.ok_or_else(|| wrong("22P02", "a path is an array of texts: '{a,b}'".into()))?;
    let known = |(at, step): (usize, Option<String>)| {
        step.ok_or_else(|| wrong("22004", format!("path element at position {} is null", at + 1)))
    };
    steps.into_iter().enumerate().map(known).collect()
}

fn wrong(code: &'static str, words: String) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(code, words)))
}

/// The place in an array that a step names, from its end where it is less than nothing; it may lie outside.
fn place(step: &str, nth: usize, length: usize) -> Result<i64> {
    let words = || format!("path element at position {nth} is not an integer: \"{step}\"");
    let at: i64 = step.parse().map_err(|_| wrong("22P02", words()))?;
    Ok(if at < 0 { at.saturating_add(i64::try_from(length).unwrap_or(i64::MAX)) } else { at })
}

fn inside(at: i64, length: usize) -> Option<usize> {
    usize::try_from(at).ok().filter(|at| *at < length)
}

/// What holds the last step of a path, and that step with its number; none where a step before is not there.
fn holder<'v, 'p>(
    value: &'v mut Value,
    path: &'p [String],
    verb: &str,
) -> Result<Option<(&'v mut Value, &'p str, usize)>> {
    if !value.is_object() && !value.is_array() {
        return Err(wrong("22023", format!("cannot {verb} path in scalar")));
    }
    let Some((last, steps)) = path.split_last() else { return Ok(None) };
    let mut at = value;
    for (nth, step) in steps.iter().enumerate() {
        let next = match at {
            Value::Object(map) => map.get_mut(step),
            Value::Array(all) => match inside(place(step, nth + 1, all.len())?, all.len()) {
                Some(at) => all.get_mut(at),
                None => None,
            },
            _ => None,
        };
        let Some(next) = next else { return Ok(None) };
        at = next;
    }
    Ok(Some((at, last, path.len())))
}

fn set(value: &mut Value, path: &[String], new: Value, creates: bool) -> Result<()> {
    let Some((holder, last, nth)) = holder(value, path, "set")? else { return Ok(()) };
    match holder {
        Value::Object(map) if creates || map.contains_key(last) => {
            map.insert(last.to_string(), new);
        }
        Value::Array(all) => {
            let at = place(last, nth, all.len())?;
            match inside(at, all.len()) {
                Some(at) => all[at] = new,
                None if creates && at < 0 => all.insert(0, new),
                None if creates => all.push(new),
                None => {}
            }
        }
        _ => {}
    }
    Ok(())
}

fn insert(value: &mut Value, path: &[String], new: Value, after: bool) -> Result<()> {
    let Some((holder, last, nth)) = holder(value, path, "set")? else { return Ok(()) };
    match holder {
        Value::Object(map) => {
            if map.contains_key(last) {
                let error = wrong("22023", "cannot replace existing key".into());
                return Err(error);
            }
            map.insert(last.to_string(), new);
        }
        Value::Array(all) => {
            let at = place(last, nth, all.len())?;
            let at = match inside(at, all.len()) {
                Some(at) => at + usize::from(after),
                None if at < 0 => 0,
                None => all.len(),
            };
            all.insert(at, new);
        }
        _ => {}
    }
    Ok(())
}

fn delete(value: &mut Value, path: &[String]) -> Result<()> {
    let Some((holder, last, nth)) = holder(value, path, "delete")? else { return Ok(()) };
    match holder {
        Value::Object(map) => {
            map.remove(last);
        }
        Value::Array(all) => {
            if let Some(at) = inside(place(last, nth, all.len())?, all.len()) {
                all.remove(at);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Members that are null go, at any depth; elements of arrays stay. The parser bounds the depth.
fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(all) => all.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(steps: &[&str]) -> Vec<String> {
        steps.iter().map(|step| (*step).to_string()).collect()
    }

    fn changed(text: &str, change: impl Fn(&mut Value) -> Result<()>) -> String {
        let mut value = jsonb::parse(text).unwrap();
        match change(&mut value) {
            Ok(()) => jsonb::shown(&value),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_at_a_path_is_set() {
        let new = || Value::from(9);
        for (text, steps, creates, expected) in [
            ("{\"a\": {\"b\": 1}}", &["a", "b"][..], false, "{\"a\": {\"b\": 9}}"),
            ("{\"a\": {}}", &["a", "b"], true, "{\"a\": {\"b\": 9}}"),
            ("{\"a\": {}}", &["a", "b"], false, "{\"a\": {}}"),
            ("{\"a\": 1}", &["x", "y"], true, "{\"a\": 1}"),
            ("[1, 2]", &["-1"], true, "[1, 9]"),
            ("[1, 2]", &["7"], true, "[1, 2, 9]"),
            ("[1, 2]", &["-7"], true, "[9, 1, 2]"),
            ("[1, 2]", &[], true, "[1, 2]"),
        ] {
            let made = changed(text, |value| set(value, &path(steps), new(), creates));
            assert_eq!(made, expected, "{text} {steps:?}");
        }
        let refused = changed("[1]", |value| set(value, &path(&["x"]), new(), true));
        assert!(refused.contains("path element at position 1 is not an integer: \"x\""));
        assert!(changed("5", |value| set(value, &path(&["x"]), new(), true)).contains("scalar"));
    }

    #[test]
    fn values_are_inserted_and_deleted() {
        let new = || Value::from(9);
        let inserted = |text: &str, step: &str, after| {
            changed(text, |value| insert(value, &path(&[step]), new(), after))
        };
        assert_eq!(inserted("[1, 2]", "1", false), "[1, 9, 2]");
        assert_eq!(inserted("[1, 2]", "-1", true), "[1, 2, 9]");
        assert_eq!(inserted("{}", "a", false), "{\"a\": 9}");
        assert!(inserted("{\"a\": 1}", "a", false).contains("cannot replace existing key"));
        let deleted = changed("{\"a\": [1, 2]}", |value| delete(value, &path(&["a", "-1"])));
        assert_eq!(deleted, "{\"a\": [1]}");
        let mut value = jsonb::parse("{\"a\": null, \"b\": [null, {\"c\": null}]}").unwrap();
        strip_nulls(&mut value);
        assert_eq!(jsonb::shown(&value), "{\"b\": [null, {}]}");
    }
}
