//! A record of the log that is too large for one, in pieces.
//!
//! ```text
//! piece   0 varint, which is no record's number │ 4 u8 │ record's number varint │ place varint
//!         │ pieces varint │ CRC-32 u32 of the whole record │ bytes of the record
//! before  0 varint │ place u8: 1 first, 2 last │ bytes of the record            read, not written
//! ```
//!
//! A record is replayed whole or not at all. One without its last piece was never acknowledged. One
//! without another piece, or with another checksum, is damaged: it is left out and reported. No
//! checkpoint begins between two pieces, for both hold the keyspace's lock.

use codec::bytes::{Reader, put_u32, put_varint};
use codec::checksum::Crc32;

const FIRST: u8 = 1;
const LAST: u8 = 2;
const NUMBERED: u8 = 4;

/// The record that a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceOwner {
    /// The record's number.
    seq: u64,
    /// Number of pieces.
    count: u64,
    /// Checksum of all bytes of the record.
    crc: u32,
}

impl PieceOwner {
    /// Describes a record of these parts that is split into `count` pieces.
    pub fn new(seq: u64, parts: &[&[u8]], count: usize) -> PieceOwner {
        PieceOwner { seq, count: count as u64, crc: crc_of(parts) }
    }

    /// The bytes before those of piece `at`.
    pub fn head(&self, at: usize) -> Vec<u8> {
        let mut head = vec![0, NUMBERED];
        put_varint(&mut head, self.seq);
        put_varint(&mut head, at as u64);
        put_varint(&mut head, self.count);
        put_u32(&mut head, self.crc);
        head
    }
}

fn crc_of(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc32::default();
    parts.iter().for_each(|part| crc.update(part));
    crc.finish()
}

/// A record whose pieces are being read.
#[derive(Debug)]
struct Open {
    /// None of a record whose pieces have no numbers.
    owner: Option<PieceOwner>,
    /// The place of the next piece.
    next: u64,
    bytes: Vec<u8>,
}

/// Pieces that were read of a record.
#[derive(Debug, Default)]
pub struct Pieces {
    open: Option<Open>,
    /// The number of the last record that was reported as incomplete.
    reported: Option<u64>,
}

/// The outcome of one payload of the log.
#[derive(Debug, Default)]
pub struct Taken<'a> {
    /// A record, once it is whole.
    pub whole: Option<Whole<'a>>,
    /// A record that cannot become whole any more, in words.
    pub lost: Option<String>,
}

/// A whole record.
#[derive(Debug)]
pub enum Whole<'a> {
    /// It was one of the log.
    AsItCame(&'a [u8]),
    /// It was several, and a checksum covers them.
    Joined(Vec<u8>),
    /// It was several without a checksum of them all.
    Unproven(Vec<u8>),
}

impl Whole<'_> {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Whole::AsItCame(bytes) => bytes,
            Whole::Joined(bytes) | Whole::Unproven(bytes) => bytes,
        }
    }

    /// Whether its bytes are known to be those that were logged.
    pub fn is_proven(&self) -> bool {
        !matches!(self, Whole::Unproven(_))
    }
}

impl Pieces {
    /// Takes what the log has next.
    pub fn take<'a>(&mut self, payload: &'a [u8]) -> Taken<'a> {
        match payload {
            [0, place, bytes @ ..] if place & NUMBERED != 0 => self.take_numbered(bytes),
            [0, place, bytes @ ..] => self.take_unnumbered(*place, bytes),
            _ => Taken { whole: Some(Whole::AsItCame(payload)), lost: self.give_up() },
        }
    }

    fn take_numbered<'a>(&mut self, payload: &[u8]) -> Taken<'a> {
        let Ok((owner, at, bytes)) = read_head(payload) else {
            let lost = self.give_up();
            let lost = lost.or_else(|| Some("a piece of a record that cannot be read".to_owned()));
            return Taken { whole: None, lost };
        };
        let goes_on = |open: &Open| open.owner == Some(owner) && open.next == at;
        let mut lost = None;
        if !self.open.as_ref().is_some_and(goes_on) {
            lost = self.give_up();
            if at != 0 {
                return Taken { whole: None, lost: lost.or_else(|| self.report(owner, at)) };
            }
            self.open = Some(Open { owner: Some(owner), next: 0, bytes: Vec::new() });
        }
        let Some(open) = &mut self.open else { return Taken { whole: None, lost } };
        open.bytes.extend_from_slice(bytes);
        open.next += 1;
        if open.next < owner.count {
            return Taken { whole: None, lost };
        }
        let bytes = std::mem::take(&mut open.bytes);
        self.open = None;
        if crc_of(&[&bytes]) != owner.crc {
            let what = format!("record {} of keys: the checksum does not hold", owner.seq);
            return Taken { whole: None, lost: Some(what) };
        }
        Taken { whole: Some(Whole::Joined(bytes)), lost }
    }

    fn take_unnumbered<'a>(&mut self, place: u8, bytes: &[u8]) -> Taken<'a> {
        let mut lost = None;
        if place & FIRST != 0 {
            lost = self.give_up();
            self.open = Some(Open { owner: None, next: 0, bytes: Vec::new() });
        }
        match &mut self.open {
            Some(open) if open.owner.is_none() => open.bytes.extend_from_slice(bytes),
            _ => return Taken { whole: None, lost: lost.or_else(|| self.give_up()) },
        }
        if place & LAST == 0 {
            return Taken { whole: None, lost };
        }
        let whole = self.open.take().map(|open| Whole::Unproven(open.bytes));
        Taken { whole, lost }
    }

    /// Gives up a record whose next piece is missing.
    fn give_up(&mut self) -> Option<String> {
        let open = self.open.take()?;
        self.report(open.owner?, open.next)
    }

    /// Reports a record that lacks the piece `at`, once.
    fn report(&mut self, owner: PieceOwner, at: u64) -> Option<String> {
        let PieceOwner { seq, count, .. } = owner;
        let is_new = self.reported.replace(seq) != Some(seq);
        is_new.then(|| {
            let missing = if at < count { "is missing" } else { "is out of place" };
            format!(
                "record {seq} of keys: piece {} of {count} {missing}. Unless the process ended while it \
                 wrote the record, its changes are lost; none of them is made",
                (at + 1).min(count)
            )
        })
    }
}

fn read_head(payload: &[u8]) -> Result<(PieceOwner, u64, &[u8]), codec::Error> {
    let mut reader = Reader::new(payload);
    let (seq, at, count) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let owner = PieceOwner { seq, count, crc: reader.u32()? };
    if count <= at {
        return Err(reader.corrupt("a piece behind the last one"));
    }
    Ok((owner, at, payload.get(reader.offset()..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a record.
    fn pieces(seq: u64, chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let owner = PieceOwner::new(seq, chunks, chunks.len());
        let piece = |(at, chunk): (usize, &&[u8])| [&owner.head(at), *chunk].concat();
        chunks.iter().enumerate().map(piece).collect()
    }

    /// The whole records among payloads, and how many were lost.
    fn read(payloads: &[&[u8]]) -> (Vec<Vec<u8>>, usize) {
        let (mut reading, mut whole, mut lost) = (Pieces::default(), Vec::new(), 0);
        for payload in payloads {
            let taken = reading.take(payload);
            lost += usize::from(taken.lost.is_some());
            whole.extend(taken.whole.map(|one| one.bytes().to_vec()));
        }
        (whole, lost)
    }

    fn only(bytes: &[u8]) -> Vec<Vec<u8>> {
        vec![bytes.to_vec()]
    }

    #[test]
    fn a_record_without_one_of_its_pieces_is_left_out() {
        let big = pieces(7, &[b"ab", b"cd", b"e"]);
        let all: Vec<&[u8]> = big.iter().map(Vec::as_slice).collect();
        assert_eq!(read(&all), (only(b"abcde"), 0));
        for missing in 0..3 {
            let mut some = all.clone();
            some.remove(missing);
            some.push(b"\x08next");
            assert_eq!(read(&some), (only(b"\x08next"), 1), "without piece {missing}");
        }
        assert_eq!(read(&[all[0], all[2], all[1]]), (Vec::new(), 1), "in another order");
        assert_eq!(read(&all[..2]), (Vec::new(), 0), "the log ends: it was not acknowledged");
        let mut damaged = big[1].clone();
        *damaged.last_mut().expect("a byte") ^= 1;
        assert_eq!(read(&[all[0], &damaged, all[2]]), (Vec::new(), 1), "another byte");
        let other = pieces(8, &[b"x", b"y"]);
        let mixed = [all[0], &other[0], &other[1], all[1], all[2]];
        assert_eq!(read(&mixed), (only(b"xy"), 1), "another record comes between");
    }

    #[test]
    fn pieces_of_earlier_versions_are_read() {
        let piece = |at: usize, count: usize, bytes: &[u8]| {
            let first = if at == 0 { FIRST } else { 0 };
            let last = if at + 1 == count { LAST } else { 0 };
            [&[0, first | last], bytes].concat()
        };
        let (a, b, c) = (piece(0, 3, b"ab"), piece(1, 3, b"cd"), piece(2, 3, b"e"));
        assert_eq!(read(&[&a, &b, &c]).0, only(b"abcde"));
        assert_eq!(read(&[&c, b"\x07record", &b, &a]).0, only(b"\x07record"));
        assert_eq!(read(&[&a, &piece(0, 1, b"whole")]).0, only(b"whole"));
    }
}
