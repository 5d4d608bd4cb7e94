//! `COPY (query) TO`: rows to lines; those that become Parquet go on to `parquet`.

use crate::protocol::handlers::Queries;
use crate::values::answers::{error, of_sql};
use futures::{Sink, SinkExt as _, StreamExt as _};
use pgwire::api::portal::Format;
use pgwire::api::results::{Response, Tag};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use sql::copy::{CopyFormat, CopyOut, CopyTo};
use vfs::exchange::Existing;

impl Queries {
    /// Sends the rows of a query as lines.
    ///
    /// # Errors
    /// Those of the query.
    pub async fn copy_out<C>(&self, client: &mut C, copy: CopyOut) -> PgWireResult<()>
    where
        C: Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let statement = self.session()?.sql.plan(copy.query).await.map_err(of_sql)?;
        let format = match copy.to {
            CopyTo::Lines(format) => format,
            CopyTo::Binary => return self.binary_out(client, statement).await,
            CopyTo::Parquet => return self.parquet_out(client, statement).await,
            CopyTo::File { name, overwrites } => {
                let existing = if overwrites { Existing::Replaced } else { Existing::Kept };
                return self.parquet_to_file(client, statement, (&name, existing)).await;
            }
        };
        let answer = self.query(statement, Vec::new(), &Format::UnifiedText).await?;
        let Response::Query(mut rows) = answer else {
            return Err(error("XX000", "a query without rows"));
        };
        let fields = rows.row_schema();
        let columns =
            i16::try_from(fields.len()).map_err(|_| error("54011", "too many columns"))?;
        let begin = CopyOutResponse::new(0, columns, vec![0; fields.len()]);
        client.feed(PgWireBackendMessage::CopyOutResponse(begin)).await?;
        if format.has_header {
            let names = fields.iter().map(|field| Some(field.name().as_bytes()));
            let line = line(names, &format);
            client.feed(PgWireBackendMessage::CopyData(CopyData::new(line.into()))).await?;
        }
        let mut count = 0;
        while let Some(row) = rows.data_rows().next().await {
            let line = line(values(&row?.data), &format);
            client.feed(PgWireBackendMessage::CopyData(CopyData::new(line.into()))).await?;
            count += 1;
        }
        client.feed(PgWireBackendMessage::CopyDone(CopyDone::new())).await?;
        let tag = Tag::new("COPY").with_rows(count);
        client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
        Ok(())
    }
}

/// What binary rows begin with, and what ends them.
const BINARY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const BINARY_END: &[u8] = &[0xff, 0xff];

impl Queries {
    /// Sends the rows of a query as lengths and bytes: `[values i16]`, then `[size i32][bytes]` each,
    /// which is what a row's message has, too.
    ///
    /// # Errors
    /// Those of the query.
    async fn binary_out<C>(&self, client: &mut C, statement: sql::Statement) -> PgWireResult<()>
    where
        C: Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let answer = self.query(statement, Vec::new(), &Format::UnifiedBinary).await?;
        let Response::Query(mut rows) = answer else {
            return Err(error("XX000", "a query without rows"));
        };
        let columns = rows.row_schema().len();
        let count = i16::try_from(columns).map_err(|_| error("54011", "too many columns"))?;
        let begin = CopyOutResponse::new(1, count, vec![1; columns]);
        client.feed(PgWireBackendMessage::CopyOutResponse(begin)).await?;
        // Clients read the head where the first row begins, as PostgreSQL sends it.
        let (mut bytes, mut sent) = (BINARY_HEAD.to_vec(), 0);
        while let Some(row) = rows.data_rows().next().await {
            bytes.extend_from_slice(&count.to_be_bytes());
            bytes.extend_from_slice(&row?.data);
            let data = CopyData::new(std::mem::take(&mut bytes).into());
            client.feed(PgWireBackendMessage::CopyData(data)).await?;
            sent += 1;
        }
        bytes.extend_from_slice(BINARY_END);
        let end = CopyData::new(bytes.into());
        client.feed(PgWireBackendMessage::CopyData(end)).await?;
        client.feed(PgWireBackendMessage::CopyDone(CopyDone::new())).await?;
        let tag = Tag::new("COPY").with_rows(sent);
        client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
        Ok(())
    }
}

/// The values of a row's message: `[size i32][bytes]` each, -1 for none.
fn values(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = row;
    std::iter::from_fn(move || {
        let (size, tail) = rest.split_first_chunk()?;
        rest = tail;
        let Ok(size) = usize::try_from(i32::from_be_bytes(*size)) else { return Some(None) };
        let (value, tail) = rest.split_at_checked(size)?;
        rest = tail;
        Some(Some(value))
    })
}

fn line<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, format: &CopyFormat) -> Vec<u8> {
    let mut line = Vec::new();
    let mut delimiter = [0; 4];
    let delimiter = format.delimiter.encode_utf8(&mut delimiter).as_bytes();
    for (at, value) in values.enumerate() {
        if at != 0 {
            line.extend_from_slice(delimiter);
        }
        match value {
            None => line.extend_from_slice(format.null.as_bytes()),
            Some(value) if format.is_csv => push_quoted(&mut line, value, delimiter, &format.null),
            Some(value) => push_escaped(&mut line, value, delimiter),
        }
    }
    line.push(b'\n');
    line
}

/// A value in CSV, in quotes where it would be taken for something else.
fn push_quoted(line: &mut Vec<u8>, value: &[u8], delimiter: &[u8], null: &str) {
    let needs = value == null.as_bytes()
        || value == b"\\."
        || value.iter().any(|byte| b"\"\r\n".contains(byte) || delimiter.contains(byte));
    if !needs {
        line.extend_from_slice(value);
        return;
    }
    line.push(b'"');
    for byte in value {
        if *byte == b'"' {
            line.push(b'"');
        }
        line.push(*byte);
    }
    line.push(b'"');
}

/// A value in text, with backslashes before what means something.
fn push_escaped(line: &mut Vec<u8>, value: &[u8], delimiter: &[u8]) {
    for byte in value {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            0x08 => line.extend_from_slice(b"\\b"),
            0x0b => line.extend_from_slice(b"\\v"),
            0x0c => line.extend_from_slice(b"\\f"),
            plain => {
                if delimiter == [*plain] {
                    line.push(b'\\');
                }
                line.push(*plain);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_postgresql() {
        let values = [Some(&b"a"[..]), None, Some(b""), Some(b"b,\"c\"\\\n\t")];
        let format = |is_csv: bool, delimiter: char, null: &str| CopyFormat {
            is_csv,
            delimiter,
            null: null.to_string(),
            has_header: false,
        };
        let text = line(values.into_iter(), &format(false, '\t', "\\N"));
        assert_eq!(text, b"a\t\\N\t\tb,\"c\"\\\\\\n\\t\n");
        let csv = line(values.into_iter(), &format(true, ',', ""));
        assert_eq!(csv, b"a,,\"\",\"b,\"\"c\"\"\\\n\t\"\n");
    }
}
