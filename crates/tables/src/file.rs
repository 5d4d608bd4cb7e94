//! The file that a checkpoint keeps a table in: written once, from start to end; see
//! `docs/format/tables.md`.
//!
//! ```text
//! magic "QPTB" │ format u32 │ head block │ blocks of rows │ end block
//! block   size u32 │ checksum u32 │ kind u8 │ body
//! ```
//!
//! A block's checksum is of the one before it, too, and the first one's of the magic and the format:
//! blocks cannot change places, and the last checksum, which the manifest has, is of the whole file.
//! Each block of rows is read without the others, and the end has the head once more: `salvage` reads
//! what is whole of a damaged file.

use crate::error::{Error, Result};
use crate::limits::{NAME_SIZE_MAX, ROW_SIZE_MAX};
use crate::manifest::{FileInfo, corrupt, file_name};
use crate::record::{put_row, read_row};
use crate::schema::{put_schema, put_text, read_schema, read_text};
use crate::set::check_row;
use crate::table::{ROW_NUMBER_END, Table};
use codec::{Crc32, Reader, crc32, put_u32, put_varint};
use std::path::Path;
use vfs::{AppendFile, Vfs};

pub(crate) const MAGIC: &[u8; 4] = b"QPTB";
/// The format that is written, and the newest one that is read.
pub(crate) const FORMAT: u32 = 2;
/// The oldest one. There numbers of rows go on from block to block, and the end is empty.
pub(crate) const FIRST_FORMAT: u32 = 1;
/// Bytes of the magic and the format.
pub(crate) const START_SIZE: usize = 8;
pub(crate) const HEAD: u8 = 1;
pub(crate) const ROWS: u8 = 2;
pub(crate) const END: u8 = 3;
/// A block of rows ends once it has so many bytes.
const BLOCK_SIZE: usize = 256 << 10;
/// Bytes of a block, at most: one row more than [`BLOCK_SIZE`], or the largest schema.
pub(crate) const BLOCK_SIZE_MAX: usize = 2 * ROW_SIZE_MAX;

const _: () = assert!(BLOCK_SIZE + ROW_SIZE_MAX + 64 < BLOCK_SIZE_MAX);

/// The checksum of a block behind another.
pub(crate) fn crc_of(before: u32, kind: u8, body: &[u8]) -> u32 {
    let mut crc = Crc32::default();
    crc.update(&before.to_le_bytes());
    crc.update(&[kind]);
    crc.update(body);
    crc.finish()
}

/// Writes a table, as it is after the record `seq` of the log, to a new file and syncs it. Its name is
/// durable after the directory's sync.
pub(crate) fn write(
    vfs: &dyn Vfs,
    dir: &Path,
    number: u64,
    seq: u64,
    table: &Table,
) -> Result<FileInfo> {
    let file = vfs.create(&dir.join(file_name(number)))?;
    let mut start = MAGIC.to_vec();
    put_u32(&mut start, FORMAT);
    let mut writer = Writer { file, crc: crc32(&start), buffer: start };
    let mut body = Vec::new();
    put_varint(&mut body, number);
    put_varint(&mut body, seq);
    put_varint(&mut body, table.id());
    put_varint(&mut body, table.next_row());
    put_varint(&mut body, table.row_count() as u64);
    put_text(&mut body, table.name());
    put_schema(&mut body, table.schema());
    writer.block(HEAD, &body)?;
    let head = std::mem::take(&mut body);
    let mut before = 0;
    for row in table.rows() {
        put_varint(&mut body, row.id.0 - before);
        put_row(&mut body, row.bytes());
        before = row.id.0;
        if BLOCK_SIZE <= body.len() {
            writer.block(ROWS, &body)?;
            body.clear();
            before = 0;
        }
    }
    if !body.is_empty() {
        writer.block(ROWS, &body)?;
    }
    writer.block(END, &head)?;
    writer.file.sync()?;
    let (size, end_crc) = (writer.file.size(), writer.crc);
    let info = FileInfo { table: table.id(), file: number, size, end_crc };
    check_written(vfs, dir, &info, table)?;
    Ok(info)
}

/// Reads a file back and compares its rows with those of the table, before the log that has them goes.
fn check_written(vfs: &dyn Vfs, dir: &Path, info: &FileInfo, table: &Table) -> Result<()> {
    let path = dir.join(file_name(info.file));
    let bytes = vfs.map(&path)?;
    let differs = || corrupt(path.clone(), "reads back differently");
    let of_codec = |error: codec::Error| corrupt(path.clone(), error.to_string());
    let reader = Reader::new(bytes.get(START_SIZE..).unwrap_or_default());
    let crc = crc32(bytes.get(..START_SIZE).unwrap_or_default());
    let (mut blocks, mut rows) = (Blocks { reader, crc }, table.rows());
    while !blocks.reader.is_empty() {
        let (kind, body) = blocks.next().map_err(of_codec)?;
        let (mut reader, mut id) = (Reader::new(body), 0);
        while kind == ROWS && !reader.is_empty() {
            id += reader.varint().map_err(of_codec)?;
            let row = read_row(&mut reader).map_err(of_codec)?;
            if !rows.next().is_some_and(|one| one.id.0 == id && one.bytes() == row) {
                return Err(differs());
            }
        }
    }
    match blocks.crc == info.end_crc && rows.next().is_none() && !bytes.has_faulted() {
        true => Ok(()),
        false => Err(differs()),
    }
}

struct Writer {
    file: Box<dyn AppendFile>,
    /// Of the block before.
    crc: u32,
    buffer: Vec<u8>,
}

impl Writer {
    fn block(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        assert!(body.len() < BLOCK_SIZE_MAX, "or nobody reads it");
        self.crc = crc_of(self.crc, kind, body);
        put_u32(&mut self.buffer, body.len() as u32);
        put_u32(&mut self.buffer, self.crc);
        self.buffer.push(kind);
        self.buffer.extend_from_slice(body);
        self.file.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Reads the table of a file that a manifest names.
pub(crate) fn read(vfs: &dyn Vfs, dir: &Path, info: &FileInfo) -> Result<Table> {
    let path = dir.join(file_name(info.file));
    let bytes = vfs.map(&path)?;
    let decoded = decode(&path, &bytes, info);
    if bytes.has_faulted() {
        return Err(corrupt(path, "the disk does not give all of its bytes"));
    }
    decoded
}

/// The table that a file's bytes are of.
pub(crate) fn decode(path: &Path, bytes: &[u8], info: &FileInfo) -> Result<Table> {
    let of_codec = |error: codec::Error| corrupt(path.to_path_buf(), error.to_string());
    let mut reader = Reader::new(bytes);
    if reader.slice(MAGIC.len()).ok() != Some(MAGIC) {
        return Err(corrupt(path.to_path_buf(), "is no file of a table"));
    }
    let format = reader.u32().map_err(of_codec)?;
    let mut blocks = Blocks { reader, crc: crc32(&bytes[..START_SIZE]) };
    // What rotted may name any format: the checksums say first whether it was written so.
    if !(FIRST_FORMAT..=FORMAT).contains(&format) {
        return Err(match blocks.end_crc() {
            Ok(crc) if crc == info.end_crc && FORMAT < format => {
                Error::Newer { path: path.to_path_buf(), found: format, known: FORMAT }
            }
            _ => corrupt(path.to_path_buf(), "an unknown format"),
        });
    }
    let (kind, head) = blocks.next().map_err(of_codec)?;
    if kind != HEAD {
        return Err(corrupt(path.to_path_buf(), "does not begin with a head"));
    }
    let (mut table, row_count) = read_head(path, head, info)?;
    let end = if format == FIRST_FORMAT { &[] } else { head };
    loop {
        match blocks.next().map_err(of_codec)? {
            (ROWS, body) => read_rows(path, &mut table, body, format)?,
            (END, body) if body == end => break,
            _ => return Err(corrupt(path.to_path_buf(), "an unknown block")),
        }
    }
    let is_whole = blocks.reader.is_empty() && bytes.len() as u64 == info.size;
    if !is_whole || blocks.crc != info.end_crc || table.row_count() as u64 != row_count {
        return Err(corrupt(path.to_path_buf(), "is not what the manifest says"));
    }
    Ok(table)
}

/// The table of a file that no manifest tells of, and the number of the last record that it shows.
pub(crate) fn decode_unnamed(path: &Path, bytes: &[u8], file: u64) -> Result<(u64, Table)> {
    let of_codec = |error: codec::Error| corrupt(path.to_path_buf(), error.to_string());
    let mut reader = Reader::new(bytes);
    let start = reader.slice(START_SIZE).map_err(of_codec)?;
    let mut blocks = Blocks { reader, crc: crc32(start) };
    let (_, head) = blocks.clone().next().map_err(of_codec)?;
    let end_crc = blocks.end_crc().map_err(of_codec)?;
    let mut info = FileInfo { table: 0, file, size: bytes.len() as u64, end_crc };
    let format = start.last_chunk::<4>().map_or(0, |format| u32::from_le_bytes(*format));
    if !(FIRST_FORMAT..=FORMAT).contains(&format) {
        // A head of another format may be another one: what it says is not looked at.
        return Err(decode(path, bytes, &info).expect_err("it is of another format"));
    }
    let mut head = Reader::new(head);
    let mut read = || Ok((head.varint()?, head.varint()?, head.varint()?));
    let (_, seq, table) = read().map_err(of_codec)?;
    info.table = table;
    Ok((seq, decode(path, bytes, &info)?))
}

/// Goes over a file's blocks, whose checksums hold.
#[derive(Clone)]
struct Blocks<'a> {
    reader: Reader<'a>,
    crc: u32,
}

impl<'a> Blocks<'a> {
    fn next(&mut self) -> std::result::Result<(u8, &'a [u8]), codec::Error> {
        let size = self.reader.u32()? as usize;
        let crc = self.reader.u32()?;
        let kind = self.reader.u8()?;
        if BLOCK_SIZE_MAX <= size {
            return Err(self.reader.corrupt("size of a block"));
        }
        let body = self.reader.slice(size)?;
        if crc != crc_of(self.crc, kind, body) {
            return Err(self.reader.corrupt("checksum of a block"));
        }
        self.crc = crc;
        Ok((kind, body))
    }

    /// The last checksum.
    fn end_crc(&mut self) -> std::result::Result<u32, codec::Error> {
        while !self.reader.is_empty() {
            self.next()?;
        }
        Ok(self.crc)
    }
}

/// The table without its rows, and how many there are.
pub(crate) fn read_head(path: &Path, head: &[u8], info: &FileInfo) -> Result<(Table, u64)> {
    let corrupt = |reason: String| corrupt(path.to_path_buf(), reason);
    let mut reader = Reader::new(head);
    let mut read = || {
        // The record is there for who has lost the manifest.
        let (file, _seq, id) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let (next_row, row_count) = (reader.varint()?, reader.varint()?);
        let name = read_text(&mut reader, NAME_SIZE_MAX)?;
        let schema = read_schema(&mut reader)?;
        match reader.is_empty() && next_row <= ROW_NUMBER_END {
            true => Ok((file, id, next_row, row_count, name, schema)),
            false => Err(reader.corrupt("head of a table")),
        }
    };
    let head = read().map_err(|error| corrupt(error.to_string()))?;
    let (file, id, next_row, row_count, name, schema) = head;
    if (file, id) != (info.file, info.table) {
        return Err(corrupt(format!("is file {file} of table {id}")));
    }
    schema.check(name).map_err(|error| corrupt(error.to_string()))?;
    let mut table = Table::new(id, name, schema);
    table.keep_row_numbers(next_row);
    Ok((table, row_count))
}

/// Adds the rows of a block.
pub(crate) fn read_rows(path: &Path, table: &mut Table, body: &[u8], format: u32) -> Result<()> {
    let mut reader = Reader::new(body);
    let mut before = table.rows_last();
    let mut base = if format == FIRST_FORMAT { before } else { None };
    let next_row = table.next_row();
    while !reader.is_empty() {
        let read = reader.varint().and_then(|delta| Ok((delta, read_row(&mut reader)?)));
        let (delta, bytes) =
            read.map_err(|error| corrupt(path.to_path_buf(), error.to_string()))?;
        let id = base.unwrap_or(0).saturating_add(delta);
        if next_row <= id || before.is_some_and(|before| id <= before) {
            return Err(corrupt(path.to_path_buf(), "numbers of rows"));
        }
        let added = check_row(table, bytes).and_then(|()| table.add([(id, bytes.into())]));
        added.map_err(|error| corrupt(path.to_path_buf(), error.to_string()))?;
        (before, base) = (Some(id), Some(id));
    }
    Ok(())
}

/// A file's bytes with checksums that hold, as far as there are blocks, and the last one of them: for
/// fuzzers.
pub(crate) fn with_checksums(bytes: &[u8]) -> (Vec<u8>, u32) {
    const HEADER_SIZE: usize = 9;
    let mut out = bytes.to_vec();
    let (mut at, mut crc) = (START_SIZE, crc32(bytes.get(..START_SIZE).unwrap_or_default()));
    while let Some(header) = bytes.get(at..at + HEADER_SIZE) {
        let size = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let Some(body) = bytes.get(at + HEADER_SIZE..at + HEADER_SIZE + size) else { break };
        crc = crc_of(crc, header[8], body);
        out[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
        at += HEADER_SIZE + size;
    }
    (out, crc)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::datum::{ColumnType, Datum, Scalar};
    use crate::row;
    use crate::schema::{Column, Constraint, ConstraintKind, Schema};
    use vfs::SimVfs;

    pub(crate) fn table(row_count: u64, padding: usize) -> Table {
        let schema = Schema {
            columns: vec![
                Column::new("id", ColumnType::One(Scalar::Int8)),
                Column::new("text", ColumnType::One(Scalar::Text)),
            ],
            constraints: vec![Constraint {
                name: "pk".into(),
                kind: ConstraintKind::PrimaryKey,
                columns: vec![0],
            }],
            properties: Vec::new(),
        };
        let mut table = Table::new(5, "t", schema.settled());
        for id in 0..row_count {
            let values = [Datum::Int8(id as i64), Datum::Text("x".repeat(padding))];
            let bytes = row::encode("t", table.schema(), &values).unwrap();
            table.add([(3 * id, bytes.into())]).unwrap();
        }
        table.keep_row_numbers(10_000);
        table
    }

    #[track_caller]
    fn check(row_count: u64, padding: usize) {
        let vfs = SimVfs::new(1);
        let table = table(row_count, padding);
        let info = write(&vfs, Path::new("/"), 7, 1, &table).unwrap();
        let read = read(&vfs, Path::new("/"), &info).unwrap();
        assert_eq!(read.size(), table.size());
        assert_eq!((read.next_row(), read.name()), (10_000, "t"));
        assert!(read.rows().map(|row| row.values()).eq(table.rows().map(|row| row.values())));
        let found = read.find(&[Datum::Int8(2)]).unwrap();
        assert_eq!(found.map(|row| row.id.0), (2 < row_count).then_some(6));
    }

    #[test]
    fn tables_come_back() {
        check(0, 0);
        check(10, 3);
        // Of many blocks, and of large rows.
        check(3000, 300);
        check(3, 600_000);
    }

    /// The file of a table as format 1 has it: numbers go on from block to block, and the end is empty.
    fn in_format_1(bytes: &[u8]) -> (Vec<u8>, u32) {
        let mut out = MAGIC.to_vec();
        put_u32(&mut out, FIRST_FORMAT);
        let mut blocks =
            Blocks { reader: Reader::new(&bytes[START_SIZE..]), crc: crc32(&bytes[..START_SIZE]) };
        let mut last = 0;
        while !blocks.reader.is_empty() {
            let (kind, body) = blocks.next().unwrap();
            let mut old = if kind == HEAD { body.to_vec() } else { Vec::new() };
            let (mut reader, mut id) = (Reader::new(body), 0);
            while kind == ROWS && !reader.is_empty() {
                id += reader.varint().unwrap();
                put_varint(&mut old, id - last);
                put_row(&mut old, read_row(&mut reader).unwrap());
                last = id;
            }
            put_u32(&mut out, old.len() as u32);
            put_u32(&mut out, 0);
            out.push(kind);
            out.extend_from_slice(&old);
        }
        with_checksums(&out)
    }

    #[test]
    fn a_file_of_format_1_is_read() {
        let (vfs, table) = (SimVfs::new(1), table(3000, 300));
        let info = write(&vfs, Path::new("/"), 7, 1, &table).unwrap();
        let path = Path::new("/").join(file_name(7));
        let (bytes, end_crc) = in_format_1(&vfs.read(&path).unwrap());
        let info = FileInfo { size: bytes.len() as u64, end_crc, ..info };
        let read = decode(&path, &bytes, &info).unwrap();
        assert!(read.rows().map(|row| row.values()).eq(table.rows().map(|row| row.values())));
        let (seq, unnamed) = decode_unnamed(&path, &bytes, 7).unwrap();
        assert_eq!((seq, unnamed.row_count()), (1, 3000));
    }

    #[test]
    fn whatever_rots_is_noticed() {
        let vfs = SimVfs::new(1);
        let info = write(&vfs, Path::new("/"), 7, 1, &table(10, 3)).unwrap();
        let path = Path::new("/").join(file_name(7));
        let bytes = vfs.read(&path).unwrap();
        for byte in 0..bytes.len() {
            let mut rotten = bytes.clone();
            rotten[byte] ^= 1 << (byte % 8);
            assert!(decode(&path, &rotten, &info).is_err(), "byte {byte}");
            assert!(decode(&path, &bytes[..byte], &info).is_err(), "cut at {byte}");
        }
        let other = FileInfo { file: 8, ..info };
        let error = decode(&path, &bytes, &other).unwrap_err().to_string();
        assert!(error.contains("is file 7 of table 5"), "{error}");
        let older = FileInfo { end_crc: 3, ..info };
        assert!(decode(&path, &bytes, &older).unwrap_err().to_string().contains("manifest says"));
        assert!(decode(&path, &[&bytes[..], &[0]].concat(), &info).is_err());
    }

    #[test]
    fn a_newer_one_is_told_from_a_broken_one() {
        let vfs = SimVfs::new(1);
        let info = write(&vfs, Path::new("/"), 7, 1, &table(10, 3)).unwrap();
        let path = Path::new("/").join(file_name(7));
        let mut bytes = vfs.read(&path).unwrap();
        bytes[4] = 3;
        assert!(matches!(decode(&path, &bytes, &info), Err(Error::Corrupt { .. })));
        let (bytes, end_crc) = with_checksums(&bytes);
        let read = decode(&path, &bytes, &FileInfo { end_crc, ..info });
        assert!(matches!(read, Err(Error::Newer { found: 3, known: 2, .. })));
    }
}
