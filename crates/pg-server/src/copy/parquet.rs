//! `COPY` as Parquet: to the client, to a file on the server and from one.
//!
//! ```text
//! batches ─► encoded on a thread that may block ─┬─► pieces of CopyData
//!                                                └─► a file without its name, until it is whole
//! file ─► lines of JSON, some at a time ─► copy: looked at, then stored
//! ```

use super::copies::in_time;
use super::{Came, Copying};
use crate::protocol::handlers::Queries;
use crate::values::answers::{error, of_copy, of_sql, until};
use futures::{Sink, SinkExt as _, Stream, StreamExt as _};
use pgwire::api::ClientInfo;
use pgwire::api::results::Tag;
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use sql::SqlError;
use sql::copy::{CopyIn, Given, ParquetIn};
use sql::datafusion::arrow::array::RecordBatch;
use sql::parquet::{FileReader, RowsWriter, Source};
use std::fmt::Debug;
use std::io::{ErrorKind, Write};
use std::pin::{Pin, pin};
use tokio::task::spawn_blocking;
use vfs::exchange::{Existing, Folder};

/// Bytes of a message of data.
const PIECE_SIZE: usize = 64 << 10;

type Rows<'a> = Pin<&'a mut (dyn Stream<Item = PgWireResult<RecordBatch>> + Send)>;

impl Queries {
    /// Sends the rows of a query as a Parquet file.
    ///
    /// # Errors
    /// Those of the query, and where rows have no like in Parquet.
    pub async fn parquet_out<C>(
        &self,
        client: &mut C,
        statement: sql::Statement,
    ) -> PgWireResult<()>
    where
        C: Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut writer = RowsWriter::new(&statement.schema(), Vec::new()).map_err(of_sql)?;
        let (answer, ends, permit) = self.run(statement, Vec::new()).await?;
        let columns = answer.schema.fields().len();
        let count = i16::try_from(columns).map_err(|_| error("54011", "too many columns"))?;
        let begin = CopyOutResponse::new(1, count, vec![1; columns]);
        client.feed(PgWireBackendMessage::CopyOutResponse(begin)).await?;
        let mut rows = pin!(until(answer.batches, ends, permit.clone()));
        loop {
            let (next, has_more) = write_next(writer, rows.as_mut()).await?;
            writer = next;
            let bytes = std::mem::take(writer.out());
            send(client, &bytes).await?;
            if !has_more {
                break;
            }
        }
        let count = writer.rows();
        let bytes = blocking(move || writer.finish()).await?;
        permit.leave();
        send(client, &bytes).await?;
        client.feed(PgWireBackendMessage::CopyDone(CopyDone::new())).await?;
        done(client, count).await
    }

    /// Writes the rows of a query to a file on the server.
    ///
    /// # Errors
    /// Those of the query, and where the file may not or cannot be written; none is there then.
    pub async fn parquet_to_file<C>(
        &self,
        client: &mut C,
        statement: sql::Statement,
        (name, existing): (&str, Existing),
    ) -> PgWireResult<()>
    where
        C: Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let file =
            self.files()?.create(name, existing).map_err(|failure| of_sql(of_disk(&failure)))?;
        let mut writer = RowsWriter::new(&statement.schema(), file).map_err(of_sql)?;
        let (answer, ends, permit) = self.run(statement, Vec::new()).await?;
        let mut rows = pin!(until(answer.batches, ends, permit.clone()));
        loop {
            let (next, has_more) = write_next(writer, rows.as_mut()).await?;
            writer = next;
            if !has_more {
                break;
            }
        }
        let count = writer.rows();
        let finish = move || {
            let mut file = writer.finish()?;
            file.flush().map_err(|failure| SqlError::new("58030", failure.to_string()))?;
            file.finish().map_err(|failure| of_disk(&failure))
        };
        blocking(finish).await?;
        permit.leave();
        done(client, count).await
    }

    /// Copies samples from a file on the server.
    ///
    /// # Errors
    /// When it may not or cannot be read, and those of a `COPY`.
    pub async fn copy_file_in<C>(&self, client: &mut C, asked: CopyIn) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let session = self.session()?;
        let time = session.settings().statement_timeout();
        let mut copying = self.copying(session, asked.clone(), Came::Parquet)?.within(time);
        let (folder, now) = (self.files()?.clone(), self.door.app.vfs.now());
        copying.take_file(blocking(move || open(&folder, &asked, now)).await?);
        let copying = self.read_file(copying).await?;
        in_time(copying.ends())?;
        let copied = self.finish(copying, client.transaction_status()).await?;
        self.answer_copy(client, copied.samples, copied.rejected).await
    }

    /// Reads a Parquet file that is all there: its rows are looked at, or stored, as they come. Of a
    /// `COPY` of something else nothing is done.
    ///
    /// # Errors
    /// Of a bad row, and where the client cancels it or its time is over.
    pub async fn read_file(&self, mut copying: Copying) -> PgWireResult<Copying> {
        loop {
            in_time(copying.ends())?;
            let reading = self.work(copying, Copying::read_some);
            let (read, has_more) = tokio::select! {
                biased;
                () = self.cancelled.heard() => return Err(PgWireError::QueryCanceled),
                read = reading => read?,
            };
            copying = read;
            let is_much = copying.push_made(&self.door.app.body_memory).await.map_err(of_copy)?;
            if is_much {
                (copying, ()) = self.work(copying, Copying::work).await?;
            }
            if !has_more {
                return Ok(copying);
            }
        }
    }

    /// Where files on the server are.
    fn files(&self) -> PgWireResult<&Folder> {
        let words =
            "COPY knows no files on this server: the flag --sql.files-dir names no directory";
        let refused = || {
            let refused = SqlError::new("42501", words);
            refused.with_hint("COPY .. FROM STDIN and TO STDOUT work without it.")
        };
        self.door.app.config.files.as_ref().ok_or_else(|| of_sql(refused()))
    }
}

fn open(folder: &Folder, asked: &CopyIn, now: i64) -> Result<FileReader, SqlError> {
    let Given::Parquet(ParquetIn { columns, file: Some(name) }) = &asked.given else {
        return Err(SqlError::unexpected("a COPY of no file"));
    };
    let file = folder.read(name).map_err(|failure| of_disk(&failure))?;
    let source = Source::of_file(file);
    let source = source.map_err(|failure| SqlError::new("58030", failure.to_string()))?;
    FileReader::open(source, columns.as_deref(), now)
}

/// Writes the next batch; whether there was one.
async fn write_next<W: Write + Send + 'static>(
    mut writer: RowsWriter<W>,
    mut rows: Rows<'_>,
) -> PgWireResult<(RowsWriter<W>, bool)> {
    let Some(batch) = rows.next().await else { return Ok((writer, false)) };
    let batch = batch?;
    blocking(move || writer.push(&batch).map(|()| (writer, true))).await
}

/// Does what takes its time, or waits for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SqlError> + Send + 'static,
) -> PgWireResult<T> {
    let done = spawn_blocking(work).await;
    done.map_err(|failure| error("XX000", format!("COPY: {failure}")))?.map_err(of_sql)
}

async fn send<C>(client: &mut C, bytes: &[u8]) -> PgWireResult<()>
where
    C: Sink<PgWireBackendMessage> + Unpin + Send + Sync,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    for piece in bytes.chunks(PIECE_SIZE) {
        let piece = CopyData::new(piece.to_vec().into());
        client.feed(PgWireBackendMessage::CopyData(piece)).await?;
    }
    Ok(())
}

async fn done<C>(client: &mut C, rows: u64) -> PgWireResult<()>
where
    C: Sink<PgWireBackendMessage> + Unpin + Send + Sync,
    PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
{
    let tag = Tag::new("COPY").with_rows(usize::try_from(rows).unwrap_or(usize::MAX));
    client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
    Ok(())
}

/// Why a file on the server is not read or written. Where it lies is not told.
fn of_disk(failure: &vfs::Error) -> SqlError {
    let name = failure.path.file_name().unwrap_or(failure.path.as_os_str()).to_string_lossy();
    let code = match failure.source.kind() {
        ErrorKind::NotFound => "58P01",
        ErrorKind::AlreadyExists => "58P02",
        ErrorKind::PermissionDenied => "42501",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "53100",
        _ => "58030",
    };
    let refused = SqlError::new(code, format!("file \"{name}\": {}", failure.source));
    match code {
        "58P02" => refused.with_hint("WITH (FORMAT parquet, OVERWRITE) replaces it."),
        "42501" => refused.with_hint("Files are plain ones in the directory of --sql.files-dir."),
        _ => refused,
    }
}
