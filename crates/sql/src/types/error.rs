//! What may go wrong, with the code that PostgreSQL's clients know it by.

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use std::fmt;

/// Why a statement has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// PostgreSQL's code for it (<https://www.postgresql.org/docs/15/errcodes-appendix.html>).
    pub code: &'static str,
    /// What is wrong, in words.
    pub message: String,
    /// What more is known of it.
    pub detail: Option<String>,
    /// What may be done about it.
    pub hint: Option<&'static str>,
    /// The table that it is about, and its column or constraint.
    pub object: Option<Box<ErrorObject>>,
}

/// The table that an error is about, in the schema `public`. Clients map the names to their models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorObject {
    /// Name of the table.
    pub table: String,
    /// Name of the column.
    pub column: Option<String>,
    /// Name of the constraint.
    pub constraint: Option<String>,
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}

impl SqlError {
    /// Something wrong that has no name of its own here.
    pub fn new(code: &'static str, message: impl Into<String>) -> SqlError {
        SqlError { code, message: message.into(), detail: None, hint: None, object: None }
    }

    /// The same, with what more is known of it.
    pub fn with_detail(self, detail: String) -> SqlError {
        SqlError { detail: Some(detail), ..self }
    }

    /// The same, with what may be done about it.
    pub fn with_hint(self, hint: &'static str) -> SqlError {
        SqlError { hint: Some(hint), ..self }
    }

    /// Adds the table that it is about.
    pub fn with_object(self, object: ErrorObject) -> SqlError {
        SqlError { object: Some(Box::new(object)), ..self }
    }

    /// The text is no statement, or one that makes no sense.
    pub fn invalid(message: impl Into<String>) -> SqlError {
        SqlError::new("42601", message)
    }

    /// The error of the parser, in PostgreSQL's words.
    pub fn from_parser(text: &str) -> SqlError {
        let text = text.strip_prefix("sql parser error: ").unwrap_or(text);
        let text = text.rfind(" at Line: ").map_or(text, |end| &text[..end]);
        let Some((expected, found)) = text.rsplit_once(", found: ") else {
            return SqlError::invalid(text);
        };
        let message = match found {
            "EOF" => "syntax error at end of input".to_string(),
            found => format!("syntax error at or near \"{found}\""),
        };
        SqlError::invalid(message)
            .with_detail(format!("{}.", expected.replace("Expected: ", "Expected ")))
    }

    /// A statement that is not known here.
    pub fn unsupported(message: impl Into<String>) -> SqlError {
        SqlError::new("0A000", message)
    }

    /// A value that makes no sense for its setting or parameter.
    pub fn wrong_value(message: impl Into<String>) -> SqlError {
        SqlError::new("22023", message)
    }

    /// Bytes that are no text.
    pub fn not_text(message: impl Into<String>) -> SqlError {
        SqlError::new("22021", message)
    }

    /// What should not happen.
    pub fn unexpected(message: impl Into<String>) -> SqlError {
        SqlError::new("XX000", message)
    }

    /// It is larger than it may be.
    pub fn limit(message: impl Into<String>) -> SqlError {
        SqlError::new("54000", message)
    }
}

impl From<&store::Error> for SqlError {
    fn from(error: &store::Error) -> SqlError {
        let code = match error {
            store::Error::DeadlineExceeded | store::Error::Cancelled => "57014",
            store::Error::LimitExceeded { .. } => "54000",
            // A foreign server's connection failed.
            store::Error::Away { .. } => "08006",
            // Clients ask again by themselves.
            store::Error::SeriesDropped => "40001",
            _ => "XX000",
        };
        SqlError::new(code, error.to_string())
    }
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> SqlError {
        let root = match error.find_root() {
            DataFusionError::External(inner) => {
                if let Some(known) = inner.downcast_ref::<store::Error>() {
                    return known.into();
                }
                if let Some(known) = inner.downcast_ref::<SqlError>() {
                    return known.clone();
                }
                // A pattern, which is compiled when the first row comes.
                let text = inner.to_string();
                let code = if text.contains("regex parse error") { "2201B" } else { "XX000" };
                return SqlError::new(code, text);
            }
            root => root,
        };
        if let Some(missing) = missing_table(root) {
            return missing;
        }
        let text = root.strip_backtrace();
        let text = text.strip_prefix("Error during planning: ").unwrap_or(&text).to_string();
        if let Some(known) = of_summary(&text) {
            return known;
        }
        if let Some(unknown) = unknown_schema(&text) {
            return unknown;
        }
        let code = match root {
            DataFusionError::SQL(..) => "42601",
            DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => planned(&text),
            DataFusionError::NotImplemented(_) if is_unknown_type(&text) => "42704",
            DataFusionError::NotImplemented(_) => "0A000",
            DataFusionError::Internal(_) if text.contains("Failed to coerce types") => "42883",
            DataFusionError::Execution(_) if text.contains("Cannot access field") => "42809",
            DataFusionError::Execution(_) if text.contains("common type for arguments") => "42804",
            DataFusionError::Execution(_) if text.contains("must appear in argument list") => {
                "0A000"
            }
            DataFusionError::ResourcesExhausted(_) => "53200",
            DataFusionError::ArrowError(inner, _) => computed(&inner.to_string()),
            DataFusionError::Execution(_) => computed(&text),
            _ => "XX000",
        };
        SqlError::new(code, in_its_words(&text).unwrap_or(text).replace('\0', ""))
    }
}

/// The error for a function of a schema that there is not: `nowhere.now()`.
fn unknown_schema(text: &str) -> Option<SqlError> {
    let (_, rest) = text.split_once("Invalid function '")?;
    let (schema, _) = rest.split('\'').next()?.split_once('.')?;
    let is_known = ["pg_catalog", "public", "information_schema"].contains(&schema);
    (!is_known).then(|| SqlError::new("3F000", format!("schema \"{schema}\" does not exist")))
}

/// That a function was given what `stats_agg` and its kin make: the planner shows how that is built,
/// and takes it for a fault of its own.
fn of_summary(text: &str) -> Option<SqlError> {
    let (_, rest) = text
        .split_once("satisfy a call to '")
        .or_else(|| text.split_once("Function '"))
        .filter(|_| text.contains("Struct(\""))?;
    let (name, rest) = rest.split_once('\'')?;
    let is_refused = rest.starts_with(" failed to match any signature")
        || rest.starts_with(" user-defined coercion failed")
            && rest.contains("failed to match any signature")
        || rest.contains("coercion from Struct(");
    let words = format!("{name} of a summary, such as stats_agg makes, is not known here");
    let hint = "Ask it by an arrow: summary -> average(), -> stddev(), -> variance(), -> sum().";
    is_refused.then(|| SqlError::unsupported(words).with_hint(hint))
}

/// What PostgreSQL says, which clients look for.
fn in_its_words(text: &str) -> Option<String> {
    if let Some((_, rest)) = text.split_once("No field named ") {
        // What fields there are is no help, and some are ours alone.
        let name = rest.split(['\n', ' ']).next().unwrap_or_default();
        let name = name.trim_end_matches(['.', ',']).replace('"', "");
        return Some(format!("column \"{name}\" does not exist"));
    }
    if let Some(words) = of_value(text) {
        return Some(words);
    }
    if let Some((before, _)) = text.split_once("\" must appear in the GROUP BY clause") {
        let name = before.rsplit('"').next().unwrap_or_default();
        let words = "must appear in the GROUP BY clause or be used in an aggregate function";
        return Some(format!("column \"{name}\" {words}"));
    }
    // Names that are like it are rarely what was meant.
    if let Some((_, rest)) = text.split_once("Invalid function '") {
        let name = rest.split('\'').next().unwrap_or_default();
        return Some(format!("function {name}() does not exist"));
    }
    if let Some(words) = of_operator(text) {
        return Some(words);
    }
    if text.contains("Cannot cast to Interval") && text.contains("Overflowing") {
        return Some("date out of range".into());
    }
    if text.contains("Divide by zero") {
        return Some("division by zero".into());
    }
    if let Some((_, types)) = text.split_once("Failed to unify argument types of make_array: [") {
        let types = types.split(']').next().unwrap_or_default();
        let mut names: Vec<String> = types.split(", ").map(postgres_type).collect();
        names.dedup();
        let two = names.iter().take(2).cloned().collect::<Vec<_>>().join(" and ");
        return Some(format!("ARRAY types {two} cannot be matched"));
    }
    if text.contains("negative count not allowed") || text.contains("overlay start position") {
        return Some("negative substring length not allowed".into());
    }
    if text.contains(MANY_ROWS) {
        return Some("more than one row returned by a subquery used as an expression".into());
    }
    if let Some((_, rest)) = text.split_once("Unsupported date_trunc granularity: '") {
        let unit = rest.split('\'').next().unwrap_or_default();
        return Some(format!("unit \"{unit}\" not recognized for type timestamp with time zone"));
    }
    if let Some((_, rest)) = text.split_once("Ambiguous reference to unqualified field ") {
        let name = rest.replace('"', "");
        return Some(format!("column reference \"{name}\" is ambiguous"));
    }
    let (_, rest) = text.split_once("table 'quipu.")?;
    let (name, _) = rest.split_once("' not found")?;
    let name = name.strip_prefix("public.").unwrap_or(name);
    Some(format!("relation \"{name}\" does not exist"))
}

/// The words for an operator that takes no such types, which DataFusion names by those of Arrow.
fn of_operator(text: &str) -> Option<String> {
    let arithmetic = text
        .split_once("Cannot coerce arithmetic expression ")
        .and_then(|(_, rest)| rest.split_once(" to valid types"));
    let comparison = text
        .split_once("Cannot infer common argument type for comparison operation ")
        .map(|(_, rest)| (rest.lines().next().unwrap_or(rest), ""));
    let (operation, _) = arithmetic.or(comparison)?;
    let words: Vec<&str> = operation.split(' ').collect();
    let is_operator =
        |word: &&str| word.bytes().all(|byte| b"+-*/%<>=!~|&^".contains(&byte)) && !word.is_empty();
    let at = words.iter().position(is_operator)?;
    let side = |side: &[&str]| postgres_type(&side.join(" "));
    Some(format!(
        "operator does not exist: {} {} {}",
        side(&words[..at]),
        words[at],
        side(&words[at + 1..])
    ))
}

/// PostgreSQL's name of a type by Arrow's.
fn postgres_type(arrow: &str) -> String {
    let name = match arrow {
        "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        "Float32" => "real",
        "Float64" => "double precision",
        "Boolean" => "boolean",
        "Date32" => "date",
        "Utf8" | "Utf8View" | "LargeUtf8" => "text",
        "Binary" | "BinaryView" | "LargeBinary" => "bytea",
        "Null" => "unknown",
        other if other.starts_with("Decimal") => "numeric",
        other if other.starts_with("Time64") => "time without time zone",
        other if other.starts_with("Interval") => "interval",
        other if other.starts_with("Timestamp") && other.contains(',') => {
            "timestamp with time zone"
        }
        other if other.starts_with("Timestamp") => "timestamp without time zone",
        other => {
            let inner = other.strip_prefix("List(").and_then(|rest| rest.strip_suffix(')'));
            return inner
                .map_or_else(|| other.to_string(), |of| format!("{}[]", postgres_type(of)));
        }
    };
    name.to_string()
}

/// Types of PostgreSQL that are not known here.
const UNKNOWN_TYPES: &[&str] = &[
    "aclitem",
    "bit",
    "box",
    "cidr",
    "circle",
    "hstore",
    "inet",
    "int4range",
    "int8range",
    "jsonpath",
    "line",
    "lseg",
    "ltree",
    "macaddr",
    "money",
    "name",
    "numrange",
    "oid",
    "path",
    "pg_lsn",
    "point",
    "polygon",
    "regproc",
    "regrole",
    "timetz",
    "tsquery",
    "tsrange",
    "tstzrange",
    "tsvector",
    "txid_snapshot",
    "varbit",
    "vector",
    "xml",
];

/// Whether PostgreSQL has a type of a name, known here or not.
pub fn is_postgres_type(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let others = ["bpchar", "cid", "int2vector", "oidvector", "regproc", "regtype", "tid", "xid"];
    UNKNOWN_TYPES.contains(&name.as_str()) || others.contains(&name.as_str())
}

/// Whether the planner says that it has no such type, and PostgreSQL has none either.
fn is_unknown_type(text: &str) -> bool {
    let Some((_, name)) = text.split_once("Unsupported SQL type ") else { return false };
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let name = name.trim_matches('"').split(word).next().unwrap_or_default();
    !UNKNOWN_TYPES.contains(&name.to_ascii_lowercase().as_str())
}

/// How DataFusion says that a subquery has more rows than a value can have.
const MANY_ROWS: &str = "Scalar subquery returned more than one row";

/// Codes by the planner's words for what is wrong: all of an entry's words are in the message.
const PLANNED: &[(&[&str], &str)] = &[
    (&["table '", "not found"], "42P01"),
    (&["Function 'make_array' user-defined coercion failed"], "42804"),
    (&["Function 'coalesce' user-defined coercion failed"], "42804"),
    (&["Function 'greatest' user-defined coercion failed"], "42804"),
    (&["Function 'least' user-defined coercion failed"], "42804"),
    (&["Incompatible inputs for Union"], "42804"),
    (&["argument type for logical boolean operation"], "42804"),
    (&["to grouping function is not in grouping columns"], "42803"),
    (&["Cannot get result type for temporal operation"], "42883"),
    (&["condition must be boolean"], "42804"),
    (&["Failed to coerce then"], "42804"),
    (&["Cannot find a common type for arguments"], "42804"),
    (&["in SetComparison"], "42883"),
    (&["Invalid qualifier"], "42P01"),
    (&["Ambiguous reference"], "42702"),
    (&["specified more than once"], "42712"),
    (&["is defined multiple times"], "42P20"),
    (&["is not defined!"], "42704"),
    (&["must appear in the GROUP BY clause"], "42803"),
    (&["calls cannot be nested"], "42803"),
    (&["Aggregate functions are not allowed"], "42803"),
    (&["Cannot coerce arithmetic expression"], "42883"),
    (&["Cannot infer common argument type for comparison"], "42883"),
    (&["Failed to coerce arguments"], "42883"),
    (&["does not support zero arguments"], "42883"),
    (&["arguments but received"], "42883"),
    (&["argument(s) but received"], "42883"),
    (&["can only be applied to array"], "42883"),
    (&["Unary operator 'NOT'"], "42804"),
    (&["Unary operator"], "42883"),
    (&["Cannot automatically convert"], "42846"),
    (&["Inconsistent data type across values list"], "42804"),
    (&["have different type"], "42804"),
    (&["CASE expression 'then' values"], "42804"),
    (&["Cannot create filter with non-boolean predicate"], "42804"),
    (&["DISTINCT ON expressions must match"], "42P10"),
    (&["must appear in select list"], "42P10"),
    (&["Cannot find column with position"], "42P10"),
    (&["given as column alias"], "42P10"),
    (&["frame offsets for ROWS / GROUPS must be non negative"], "22013"),
    (&["Invalid window frame"], "42P20"),
    (&["RANGE requires exactly one ORDER BY column"], "42P20"),
    (&["GROUPS requires an ORDER BY clause"], "42P20"),
    (&["LIMIT must be >= 0"], "2201W"),
    (&["OFFSET must be >=0"], "2201X"),
    (&["Correlated scalar subquery"], "0A000"),
    (&["outer reference columns is not allowed"], "0A000"),
    (&["cannot contain non-correlated columns"], "0A000"),
    (&["subquery can only be used in"], "0A000"),
    (&["No field named"], "42703"),
    (&["Schema error"], "42703"),
    (&["Invalid function"], "42883"),
    (&["table function '", "not found"], "42883"),
    (&["No function matches"], "42883"),
];

/// What kind of thing a plan lacks; the planner says it in words alone.
fn planned(text: &str) -> &'static str {
    let is_one = |words: &&[&str]| words.iter().all(|one| text.contains(one));
    PLANNED.iter().find(|(words, _)| is_one(words)).map_or("42601", |(_, code)| *code)
}

/// A column of a table that is not in FROM.
fn missing_table(error: &DataFusionError) -> Option<SqlError> {
    let DataFusionError::SchemaError(error, _) = error else { return None };
    let SchemaError::FieldNotFound { field, valid_fields } = &**error else { return None };
    let table = field.relation.as_ref()?;
    let is_known = |one: &Column| match &one.relation {
        Some(known) => known.resolved_eq(table) || known.table() == table.table(),
        None => false,
    };
    if valid_fields.iter().any(is_known) {
        return None;
    }
    let words = format!("missing FROM-clause entry for table \"{}\"", table.table());
    Some(SqlError::new("42P01", words))
}

/// The type of whole numbers of which a number is none that was cast to it.
fn whole_out_of_range(text: &str) -> Option<&'static str> {
    let is_of = |name: &str| {
        let is_cast =
            text.contains("Can't cast value") && text.contains(&format!("to type {name}"));
        let has_overflown = text.contains(&format!("{name}Array overflow"));
        is_cast || has_overflown || text.contains(&format!("is out of range {name}"))
    };
    let names = [("Int16", "smallint"), ("Int32", "integer"), ("Int64", "bigint")];
    names.into_iter().find(|(name, _)| is_of(name)).map(|(_, shown)| shown)
}

/// What is wrong with a text that is no value of a type.
fn of_value(text: &str) -> Option<String> {
    let one = quoted(text);
    if text.contains("Error parsing timestamp from") {
        return Some(match is_dated(one) {
            true => format!("date/time field value out of range: \"{one}\""),
            false => format!("invalid input syntax for type timestamp: \"{one}\""),
        });
    }
    if let Some(name) = whole_out_of_range(text) {
        return Some(format!("{name} out of range"));
    }
    let (_, rest) = text.split_once("Cannot cast string '")?;
    let (_, rest) = rest.rsplit_once("to value of ")?;
    let name = match rest.split_whitespace().next()? {
        "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        "Float32" => "real",
        "Float64" => "double precision",
        "Date32" if is_dated(one) => {
            return Some(format!("date/time field value out of range: \"{one}\""));
        }
        "Date32" => "date",
        "Boolean" => "boolean",
        other if other.starts_with("Decimal") => "numeric",
        _ => return None,
    };
    Some(match is_number(one) && name != "date" {
        true => format!("value \"{one}\" is out of range for type {name}"),
        false => format!("invalid input syntax for type {name}: \"{one}\""),
    })
}

/// The first text in quotes.
fn quoted(text: &str) -> &str {
    text.split('\'').nth(1).unwrap_or_default()
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text has the form of a date: its month, day or hour is one that there is not.
fn is_dated(text: &str) -> bool {
    let date = text.get(..10).unwrap_or_default();
    let is_form = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    !date.is_empty() && date.bytes().enumerate().all(is_form)
}

/// What went wrong while values were made of values.
fn computed(text: &str) -> &'static str {
    let says = |words: &str| text.contains(words);
    if says("regex parse error") || says("Regular expression did not compile") {
        "2201B"
    } else if says("Divide by zero") {
        "22012"
    } else if says("factorial of a negative") {
        "22003"
    } else if says("to value of Boolean type") {
        "22P02"
    } else if says(MANY_ROWS) {
        "21000"
    } else if says("cannot take square root") || says("raised to a ") {
        "2201F"
    } else if says("negative count not allowed") || says("overlay start position") {
        "22011"
    } else if says("field position must not be zero") {
        "22023"
    } else if says("cannot take logarithm") {
        "2201E"
    } else if says("Unsupported date_trunc granularity") {
        "22023"
    } else if says("Cannot cast to Interval") {
        "22008"
    } else if says("overflow") || says("Overflow") || whole_out_of_range(text).is_some() {
        "22003"
    } else if says("Invalid input syntax for type interval") {
        "22007"
    } else if says("Cannot cast") && is_number(quoted(text)) && !says("Date32") {
        "22003"
    } else if (says("timestamp") || says("Date32")) && is_dated(quoted(text)) {
        "22008"
    } else if says("Error parsing timestamp") || says("Date32") || says("Time64") {
        "22007"
    } else if says("Cast error") || says("Parser error") || says("Cannot cast") {
        "22P02"
    } else {
        "XX000"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_store_keep_their_code() {
        let limit = store::Limit::Series;
        let failure = store::Error::LimitExceeded { limit, what: "series", value: 8, max: 7 };
        let wrapped = DataFusionError::External(Box::new(failure));
        let wrapped = DataFusionError::Context("while reading".into(), Box::new(wrapped));
        assert_eq!(SqlError::from(wrapped).code, "54000");
        let late = DataFusionError::External(Box::new(store::Error::DeadlineExceeded));
        assert_eq!(SqlError::from(late).code, "57014");
    }
}
