//! Rows of a statement to PostgreSQL's messages, and errors to its codes.

use super::array_values;
use super::parameters::element_of;
use super::rows;
use crate::copy::CopyError;
use crate::session::cancels::Cancelled;
use crate::session::place::Place;
use futures::{Stream, StreamExt as _, stream};
use pgwire::api::Type;
use pgwire::api::portal::Format;
use pgwire::api::results::{FieldFormat, FieldInfo, QueryResponse, Response};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::data::DataRow;
use pgwire::messages::response::NoticeResponse;
use sql::datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryArray, RecordBatch, RecordBatchOptions,
    StringViewArray,
};
use sql::datafusion::arrow::compute::cast;
use sql::datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Schema};
use sql::{Answer, Batches, SqlError, shown};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

/// A client that takes no rows for this long leaves its place among the running queries.
const CLIENT_PATIENCE: Duration = Duration::from_millis(100);

/// An error of PostgreSQL.
pub fn error(code: &str, message: impl Into<String>) -> PgWireError {
    info("ERROR", code, message.into(), None)
}

/// One after which the connection ends.
pub fn fatal(code: &str, message: impl Into<String>) -> PgWireError {
    info("FATAL", code, message.into(), None)
}

fn info(severity: &str, code: &str, message: String, hint: Option<String>) -> PgWireError {
    let mut info = ErrorInfo::new(severity.to_string(), code.to_string(), message);
    info.severity_nonlocalized = Some(severity.to_string());
    info.hint = hint;
    PgWireError::UserError(Box::new(info))
}

/// What a client may want to know and need not heed.
pub fn warning(code: &str, message: &str) -> NoticeResponse {
    let mut info = ErrorInfo::new("WARNING".into(), code.to_string(), message.to_string());
    info.severity_nonlocalized = Some("WARNING".into());
    info.into()
}

/// What a client may like to know.
pub fn notice(message: &str) -> NoticeResponse {
    let mut info = ErrorInfo::new("NOTICE".into(), "00000".into(), message.to_string());
    info.severity_nonlocalized = Some("NOTICE".into());
    info.into()
}

/// What is wrong with a statement.
pub fn of_sql(failure: SqlError) -> PgWireError {
    let mut told = ErrorInfo::new("ERROR".into(), failure.code.into(), failure.message);
    told.severity_nonlocalized = Some("ERROR".into());
    told.detail = failure.detail;
    told.hint = failure.hint.map(str::to_string);
    if let Some(object) = failure.object {
        told.schema = Some("public".to_string());
        told.table = Some(object.table);
        told.column = object.column;
        told.constraint = object.constraint;
    }
    PgWireError::UserError(Box::new(told))
}

/// Adds the place in the text of the statement that an error is about, where it is known.
pub fn with_position(failure: PgWireError, text: &str) -> PgWireError {
    match failure {
        PgWireError::UserError(mut info) if info.position.is_none() => {
            let position = sql::error_position(text, &info.code, &info.message);
            info.position = position.map(|position| position.to_string());
            PgWireError::UserError(info)
        }
        other => other,
    }
}

/// What is wrong with a `COPY`.
pub fn of_copy(failure: CopyError) -> PgWireError {
    let mut info = ErrorInfo::new("ERROR".into(), failure.code.into(), failure.message);
    info.severity_nonlocalized = Some("ERROR".into());
    info.where_context = failure.context;
    info.hint = failure.hint;
    PgWireError::UserError(Box::new(info))
}

/// How PostgreSQL describes columns.
pub fn fields(schema: &Schema, format: &Format) -> PgWireResult<Vec<FieldInfo>> {
    let field = |(at, field): (usize, &Arc<Field>)| {
        // The metadata of a text may be left in a field of another type.
        let is_named = |name: &&str| match field.data_type() {
            DataType::Int32 => matches!(*name, "oid" | "xid" | sql::REGPROC),
            ty => ty.is_string() || ty.is_null() || matches!(ty, DataType::List(_)),
        };
        let named = field.metadata().get(sql::TYPE_KEY).map(String::as_str).filter(is_named);
        let pg_type = match named {
            Some(sql::JSONB) => Type::JSONB,
            Some(sql::JSON) => Type::JSON,
            Some("jsonb[]") => Type::JSONB_ARRAY,
            Some("json[]") => Type::JSON_ARRAY,
            Some("uuid[]") => Type::UUID_ARRAY,
            Some("varchar[]") => Type::VARCHAR_ARRAY,
            Some("bpchar[]") => Type::BPCHAR_ARRAY,
            Some("name[]") => Type::NAME_ARRAY,
            Some("oid") => Type::OID,
            Some("xid") => Type::XID,
            Some(sql::REGPROC) => Type::REGPROC,
            Some("oid[]") => Type::OID_ARRAY,
            Some("name") => Type::NAME,
            Some("char") => Type::CHAR,
            Some("uuid") => Type::UUID,
            Some("int2vector") => Type::INT2_VECTOR,
            Some("oidvector") => Type::OID_VECTOR,
            Some("varchar") => Type::VARCHAR,
            Some("bpchar") => Type::BPCHAR,
            _ if is_numeric(field.data_type()) => Type::NUMERIC,
            _ if is_numerics(field.data_type()) => Type::NUMERIC_ARRAY,
            _ if let Some(nested) = array_values::nested_type(field.data_type()) => nested?,
            _ => arrow_pg::datatypes::field_into_pg_type(field)?,
        };
        // What is not known is a text to clients.
        let pg_type = if pg_type == Type::UNKNOWN { Type::TEXT } else { pg_type };
        let size = type_size(&pg_type);
        let name = sql::shown_name(field.name()).to_string();
        let format = if is_binary(format, at) { FieldFormat::Binary } else { FieldFormat::Text };
        Ok(FieldInfo::new(name, None, None, pg_type, format).with_type_size(size))
    };
    schema.fields().iter().enumerate().map(field).collect()
}

/// Whether a column is one of numbers with all their digits.
fn is_numeric(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal256(..))
}

/// The same of lists.
fn is_numerics(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(of) if is_numeric(of.data_type()))
}

/// Whether a column is wanted in binary; a client may have said too few formats.
pub fn is_binary(format: &Format, at: usize) -> bool {
    match format {
        Format::UnifiedText => false,
        Format::UnifiedBinary => true,
        Format::Individual(all) => all.get(at) == Some(&1),
    }
}

/// `pg_type.typlen`.
fn type_size(pg_type: &Type) -> i16 {
    match *pg_type {
        Type::BOOL | Type::CHAR => 1,
        Type::NAME => 64,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE | Type::OID => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME => 8,
        Type::INTERVAL | Type::UUID => 16,
        _ => -1,
    }
}

/// What ends a statement before its last row.
pub struct Ends {
    /// Told when the client cancels it.
    pub cancelled: Arc<Cancelled>,
    /// When its time is over.
    pub deadline: Instant,
    /// How long that is, for words.
    pub timeout: Duration,
}

/// Rows as a client wants them. The place among the running queries is held until the last, but not
/// while the client reads nothing.
pub fn response(
    answer: Answer,
    format: &Format,
    ends: Ends,
    place: Arc<Place>,
) -> PgWireResult<Response> {
    let fields = Arc::new(fields(&answer.schema, format)?);
    let encoded = fields.clone();
    let batches = until(answer.batches, ends, place).map(move |batch| (batch, encoded.clone()));
    let rows = batches.flat_map(|(batch, fields)| stream::iter(rows_of(batch, fields)));
    Ok(Response::Query(QueryResponse::new(fields, rows)))
}

/// Leaves a place a moment after it was made, unless it is dropped before.
struct DelayedLeave(JoinHandle<()>);

impl DelayedLeave {
    fn new(place: &Arc<Place>) -> DelayedLeave {
        let place = place.clone();
        DelayedLeave(tokio::spawn(async move {
            sleep(CLIENT_PATIENCE).await;
            place.leave();
        }))
    }
}

impl Drop for DelayedLeave {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The batches, with an error where the statement has to end. A client that takes the rows of a batch
/// slowly leaves its place to others until it asks for the next batch.
pub fn until(
    batches: Batches,
    ends: Ends,
    place: Arc<Place>,
) -> impl Stream<Item = PgWireResult<RecordBatch>> + Send {
    stream::unfold(Some((batches, ends, place, None)), |state| async move {
        let (mut batches, ends, place, leave) = state?;
        drop::<Option<DelayedLeave>>(leave);
        let next = tokio::select! {
            biased;
            () = ends.cancelled.heard() => Some(Err(PgWireError::QueryCanceled)),
            () = sleep_until(ends.deadline) => Some(Err(timed_out(ends.timeout))),
            next = next_batch(&mut batches, &place) => next,
        };
        match next? {
            Ok(batch) => {
                let leave = Some(DelayedLeave::new(&place));
                Some((Ok(batch), Some((batches, ends, place, leave))))
            }
            Err(failure) => Some((Err(failure), None)),
        }
    })
}

async fn next_batch(batches: &mut Batches, place: &Place) -> Option<PgWireResult<RecordBatch>> {
    if let Err(failure) = place.take_unless(|| batches.is_asleep()).await {
        return Some(Err(error("53000", failure.to_string())));
    }
    batches.next().await.map(|batch| batch.map_err(of_sql))
}

/// That a statement took too long.
pub fn timed_out(timeout: Duration) -> PgWireError {
    let words =
        format!("canceling statement due to statement timeout ({timeout:?}; query.timeout)");
    error("57014", words)
}

fn rows_of(
    batch: PgWireResult<RecordBatch>,
    fields: Arc<Vec<FieldInfo>>,
) -> Vec<PgWireResult<DataRow>> {
    let encoded = batch.and_then(|batch| {
        let count = batch.num_rows();
        let columns = as_sent(batch, &fields);
        if let Some(rows) = rows::rows(count, &columns, &fields) {
            return Ok(rows.into_iter().map(Ok).collect());
        }
        let described = columns
            .iter()
            .enumerate()
            .map(|(at, column)| Field::new(at.to_string(), column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(described.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)
            .map_err(|failure| error("XX000", failure.to_string()))?;
        let fields = as_encoded(fields, batch.columns());
        Ok(until_error(arrow_pg::encode_recordbatch(fields, batch), count))
    });
    match encoded {
        Ok(rows) => rows,
        Err(failure) => vec![Err(failure)],
    }
}

/// Collects at most `count` rows and stops at the first error: the encoder would return that error for ever.
fn until_error(
    rows: impl Iterator<Item = PgWireResult<DataRow>>,
    count: usize,
) -> Vec<PgWireResult<DataRow>> {
    let mut collected = Vec::with_capacity(count);
    for row in rows.take(count) {
        let is_error = row.is_err();
        collected.push(row);
        if is_error {
            break;
        }
    }
    collected
}

/// Lists are texts by now where they are wanted in text, if they are vectors or nested.
fn as_encoded(fields: Arc<Vec<FieldInfo>>, columns: &[ArrayRef]) -> Arc<Vec<FieldInfo>> {
    let is_text = |(field, column): (&FieldInfo, &ArrayRef)| {
        let is_list = is_vector(field.datatype())
            || element_of(field.datatype()).is_some()
            || array_values::special_element(field.datatype()).is_some();
        is_list && field.format() == FieldFormat::Text && column.data_type().is_string()
    };
    if !fields.iter().zip(columns).any(is_text) {
        return fields;
    }
    let encoded = |(field, column): (&FieldInfo, &ArrayRef)| match is_text((field, column)) {
        true => FieldInfo::new(field.name().into(), None, None, Type::TEXT, field.format()),
        false => field.clone(),
    };
    Arc::new(fields.iter().zip(columns).map(encoded).collect())
}

fn is_vector(pg_type: &Type) -> bool {
    [Type::INT2_VECTOR, Type::OID_VECTOR].contains(pg_type)
}

/// A value of whatever type as the text that PostgreSQL shows.
fn as_text(column: &ArrayRef) -> ArrayRef {
    let shown = shown::column(column).unwrap_or_else(|| column.clone());
    cast(&shown, &DataType::Utf8View).unwrap_or_else(|_| column.clone())
}

/// `[microseconds i64][days i32][months i32]`.
fn in_binary(length: Option<shown::Length>) -> Option<Vec<u8>> {
    let shown::Length { months, days, micros } = length?;
    let mut bytes = micros.to_be_bytes().to_vec();
    bytes.extend_from_slice(&days.to_be_bytes());
    bytes.extend_from_slice(&months.to_be_bytes());
    Some(bytes)
}

/// The 16 bytes of a `uuid`.
pub fn uuid_bytes(text: &str) -> Option<Vec<u8>> {
    let number = u128::from_str_radix(&text.replace('-', ""), 16).ok()?;
    Some(number.to_be_bytes().to_vec())
}

/// Lists of numbers, as PostgreSQL's own tables have them: `1 2` in text, in binary an array that is
/// counted from 0, `[1][0][type][count][0]`, then `[size][number]` each.
fn vectors_as_sent(column: &ArrayRef, pg_type: &Type, format: FieldFormat) -> ArrayRef {
    let numbers = cast(column, &DataType::new_list(DataType::Int32, true));
    let Some(lists) = numbers.as_ref().ok().and_then(|all| all.as_list_opt::<i32>()) else {
        return column.clone();
    };
    let of_one = |list: ArrayRef| list.as_primitive::<Int32Type>().values().to_vec();
    let all = lists.iter().map(|list| list.map(of_one));
    if format == FieldFormat::Text {
        let text = |list: Vec<i32>| {
            list.iter().map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
        };
        return Arc::new(all.map(|list| list.map(text)).collect::<StringViewArray>());
    }
    let (of, size) = if *pg_type == Type::INT2_VECTOR { (Type::INT2, 2) } else { (Type::OID, 4) };
    let bytes = |list: Vec<i32>| {
        let count = i32::try_from(list.len()).unwrap_or(0);
        let head = [1, 0, i32::try_from(of.oid()).unwrap_or(0), count, 0];
        let mut out: Vec<u8> = head.iter().flat_map(|one| one.to_be_bytes()).collect();
        for number in list {
            out.extend_from_slice(&i32::to_be_bytes(size));
            // The last bytes of a number are those of a shorter one.
            out.extend(number.to_be_bytes().into_iter().skip(if size == 2 { 2 } else { 0 }));
        }
        out
    };
    Arc::new(all.map(|list| list.map(bytes)).collect::<BinaryArray>())
}

/// Columns as they are sent: numbers and times as PostgreSQL shows them, and in binary a `jsonb` that
/// begins with the number of its version, 1.
/// Numbers of the type that a client was told, where what was bound has made others of them.
fn as_told(column: &ArrayRef, told: &Type) -> ArrayRef {
    let wanted = match *told {
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        _ => return column.clone(),
    };
    match column.data_type() {
        known if *known != wanted && known.is_numeric() => {
            cast(column, &wanted).unwrap_or_else(|_| column.clone())
        }
        _ => column.clone(),
    }
}

fn as_sent(batch: RecordBatch, fields: &[FieldInfo]) -> Vec<ArrayRef> {
    let sent = |(column, field): (&ArrayRef, &FieldInfo)| match field.format() {
        format if is_vector(field.datatype()) => vectors_as_sent(column, field.datatype(), format),
        // A parameter that was said to be a text, and came as something else.
        _ if *field.datatype() == Type::TEXT && !column.data_type().is_string() => as_text(column),
        FieldFormat::Text
            if array_values::is_written_here(column.data_type(), field.datatype()) =>
        {
            array_values::in_text(column)
        }
        FieldFormat::Text if *field.datatype() == Type::REGPROC => sql::regproc_texts(column),
        FieldFormat::Text => shown::column(column).unwrap_or_else(|| column.clone()),
        FieldFormat::Binary
            if let Some(arrays) = array_values::in_binary(column, field.datatype()) =>
        {
            arrays
        }
        FieldFormat::Binary if *field.datatype() == Type::INTERVAL => {
            match shown::lengths(column) {
                Some(lengths) => {
                    Arc::new(lengths.into_iter().map(in_binary).collect::<BinaryArray>())
                }
                None => column.clone(),
            }
        }
        FieldFormat::Binary if *field.datatype() == Type::JSONB => {
            let Some(texts) = column.as_any().downcast_ref::<StringViewArray>() else {
                return column.clone();
            };
            let prefixed = texts.iter().map(|text| text.map(|text| format!("\u{1}{text}")));
            Arc::new(prefixed.collect::<StringViewArray>())
        }
        FieldFormat::Binary if column.data_type().is_decimal() => {
            let texts = as_text(column);
            let bytes = texts
                .as_string_view()
                .iter()
                .map(|text| text.and_then(sql::ordinary::numeric_bytes));
            Arc::new(bytes.collect::<BinaryArray>())
        }
        // A float was bound where a number with all its digits was expected.
        FieldFormat::Binary if *field.datatype() == Type::NUMERIC => {
            let Some(floats) = column.as_primitive_opt::<Float64Type>() else {
                return column.clone();
            };
            let in_binary = |value: f64| sql::ordinary::numeric_bytes(&value.to_string());
            let sent = floats.iter().map(|value| value.and_then(in_binary));
            Arc::new(sent.collect::<BinaryArray>())
        }
        FieldFormat::Binary if *field.datatype() == Type::UUID => {
            let Some(texts) = column.as_any().downcast_ref::<StringViewArray>() else {
                return column.clone();
            };
            Arc::new(texts.iter().map(|text| text.and_then(uuid_bytes)).collect::<BinaryArray>())
        }
        FieldFormat::Binary => as_told(column, field.datatype()),
    };
    batch.columns().iter().zip(fields).map(sent).collect()
}
