//! Collections in one piece of memory, as Redis keeps small ones: listpack, ziplist, zipmap, intset.

use super::input::Failure;
use crate::number::parse_i64;

/// Elements of such a piece, at most: each takes ten times the memory that it may have there, and Redis
/// makes far smaller ones.
const ELEMENTS_MAX: usize = 1 << 22;

/// The listpack's last byte.
const END: u8 = 0xff;

/// An element of such a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// Kept as a number.
    Int(i64),
    /// Kept as bytes.
    Bytes(&'a [u8]),
}

impl Element<'_> {
    /// Its bytes, as text if it is a number.
    pub fn into_vec(self) -> Vec<u8> {
        match self {
            Element::Int(int) => itoa::Buffer::new().format(int).as_bytes().to_vec(),
            Element::Bytes(bytes) => bytes.to_vec(),
        }
    }

    /// Its number.
    pub fn int(&self) -> Option<i64> {
        match self {
            Element::Int(int) => Some(*int),
            Element::Bytes(bytes) => parse_i64(bytes),
        }
    }
}

fn corrupt(what: &'static str) -> Failure {
    Failure::Corrupt { offset: 0, what }
}

fn may_have(count: usize) -> Result<(), Failure> {
    match count <= ELEMENTS_MAX {
        true => Ok(()),
        false => Err(corrupt("more elements than are kept in one piece")),
    }
}

/// Takes bytes off the front.
fn take<'a>(rest: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(size)?;
    *rest = behind;
    Some(taken)
}

fn take_u8(rest: &mut &[u8]) -> Option<u8> {
    take(rest, 1).map(|one| one[0])
}

/// A number of `size` bytes, lowest first.
fn take_int(rest: &mut &[u8], size: usize) -> Option<i64> {
    let bytes = take(rest, size)?;
    let mut wide = [0; 8];
    // Its sign is in the highest byte.
    wide[8 - size..].copy_from_slice(bytes);
    Some(i64::from_le_bytes(wide) >> (64 - 8 * size))
}

/// The elements of a listpack.
pub fn listpack(bytes: &[u8]) -> Result<Vec<Element<'_>>, Failure> {
    let size = bytes.first_chunk::<4>().map(|four| u32::from_le_bytes(*four) as usize);
    let (body, end) = match bytes.get(6..).and_then(|rest| rest.split_last()) {
        Some((end, body)) if size == Some(bytes.len()) => (body, *end),
        _ => return Err(corrupt("a listpack of another size")),
    };
    let count = u16::from_le_bytes([bytes[4], bytes[5]]);
    let mut rest = body;
    let mut elements = Vec::new();
    while !rest.is_empty() {
        let element = listpack_element(&mut rest);
        elements.push(element.ok_or_else(|| corrupt("a listpack cut short"))?);
        may_have(elements.len())?;
    }
    let counts = count == u16::MAX || usize::from(count) == elements.len();
    match end == END && counts {
        true => Ok(elements),
        false => Err(corrupt("a listpack without its end")),
    }
}

fn listpack_element<'a>(rest: &mut &'a [u8]) -> Option<Element<'a>> {
    let before = rest.len();
    let first = take_u8(rest)?;
    let low = usize::from(first);
    let element = match first {
        0..=0x7f => Element::Int(i64::from(first)),
        0x80..=0xbf => Element::Bytes(take(rest, low & 0x3f)?),
        0xc0..=0xdf => {
            let bits = i64::from(first & 0x1f) << 8 | i64::from(take_u8(rest)?);
            Element::Int(if bits < 1 << 12 { bits } else { bits - (1 << 13) })
        }
        0xe0..=0xef => {
            let size = (low & 0x0f) << 8 | usize::from(take_u8(rest)?);
            Element::Bytes(take(rest, size)?)
        }
        0xf0 => {
            let size = u32::from_le_bytes(*take(rest, 4)?.first_chunk()?);
            Element::Bytes(take(rest, size as usize)?)
        }
        0xf1 => Element::Int(take_int(rest, 2)?),
        0xf2 => Element::Int(take_int(rest, 3)?),
        0xf3 => Element::Int(take_int(rest, 4)?),
        0xf4 => Element::Int(take_int(rest, 8)?),
        _ => return None,
    };
    take(rest, back_size(before - rest.len()))?;
    Some(element)
}

/// Bytes of the size behind an element, by which it is found from behind.
fn back_size(size: usize) -> usize {
    match size {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}

/// The elements of a ziplist.
pub fn ziplist(bytes: &[u8]) -> Result<Vec<Element<'_>>, Failure> {
    let size = bytes.first_chunk::<4>().map(|four| u32::from_le_bytes(*four) as usize);
    let (body, end) = match bytes.get(10..).and_then(|rest| rest.split_last()) {
        Some((end, body)) if size == Some(bytes.len()) => (body, *end),
        _ => return Err(corrupt("a ziplist of another size")),
    };
    let count = u16::from_le_bytes([bytes[8], bytes[9]]);
    let mut rest = body;
    let mut elements = Vec::new();
    while !rest.is_empty() {
        let element = ziplist_element(&mut rest);
        elements.push(element.ok_or_else(|| corrupt("a ziplist cut short"))?);
        may_have(elements.len())?;
    }
    let counts = count == u16::MAX || usize::from(count) == elements.len();
    match end == END && counts {
        true => Ok(elements),
        false => Err(corrupt("a ziplist without its end")),
    }
}

fn ziplist_element<'a>(rest: &mut &'a [u8]) -> Option<Element<'a>> {
    // The size of the element before, in one byte or five.
    match take_u8(rest)? {
        254 => take(rest, 4)?,
        255 => return None,
        _ => &[],
    };
    let first = take_u8(rest)?;
    let low = usize::from(first & 0x3f);
    Some(match first {
        0..=0x3f => Element::Bytes(take(rest, low)?),
        0x40..=0x7f => {
            let size = low << 8 | usize::from(take_u8(rest)?);
            Element::Bytes(take(rest, size)?)
        }
        0x80..=0xbf => {
            let size = u32::from_be_bytes(*take(rest, 4)?.first_chunk()?);
            Element::Bytes(take(rest, size as usize)?)
        }
        0xc0 => Element::Int(take_int(rest, 2)?),
        0xd0 => Element::Int(take_int(rest, 4)?),
        0xe0 => Element::Int(take_int(rest, 8)?),
        0xf0 => Element::Int(take_int(rest, 3)?),
        0xfe => Element::Int(take_int(rest, 1)?),
        0xf1..=0xfd => Element::Int(i64::from(first & 0x0f) - 1),
        _ => return None,
    })
}

/// The fields and values of a zipmap, one after the other.
pub fn zipmap(bytes: &[u8]) -> Result<Vec<Element<'_>>, Failure> {
    let cut = || corrupt("a zipmap cut short");
    let mut rest = bytes.get(1..).ok_or_else(cut)?;
    let mut elements = Vec::new();
    loop {
        if rest == [END] {
            break;
        }
        let field = zipmap_size(&mut rest).and_then(|size| take(&mut rest, size));
        elements.push(Element::Bytes(field.ok_or_else(cut)?));
        let size = zipmap_size(&mut rest).ok_or_else(cut)?;
        let free = usize::from(take_u8(&mut rest).ok_or_else(cut)?);
        elements.push(Element::Bytes(take(&mut rest, size).ok_or_else(cut)?));
        take(&mut rest, free).ok_or_else(cut)?;
        may_have(elements.len())?;
    }
    Ok(elements)
}

fn zipmap_size(rest: &mut &[u8]) -> Option<usize> {
    match take_u8(rest)? {
        254 => Some(u32::from_le_bytes(*take(rest, 4)?.first_chunk()?) as usize),
        255 => None,
        size => Some(usize::from(size)),
    }
}

/// The members of an intset.
pub fn intset(bytes: &[u8]) -> Result<Vec<i64>, Failure> {
    let (header, body) = bytes.split_at_checked(8).ok_or_else(|| corrupt("an intset cut short"))?;
    let width = usize::from(header[0]);
    let count = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    if !matches!(header[..4], [2 | 4 | 8, 0, 0, 0]) || count.checked_mul(width) != Some(body.len())
    {
        return Err(corrupt("an intset of another size"));
    }
    may_have(count)?;
    let ints = body.chunks_exact(width);
    Ok(ints.filter_map(|mut chunk| take_int(&mut chunk, width)).collect())
}

/// A listpack under construction.
pub struct Listpack {
    bytes: Vec<u8>,
    count: usize,
}

impl Default for Listpack {
    fn default() -> Listpack {
        Listpack { bytes: vec![0; 6], count: 0 }
    }
}

impl Listpack {
    /// Bytes so far.
    pub fn size(&self) -> usize {
        self.bytes.len() + 1
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds bytes, as a number if they spell one.
    pub fn push(&mut self, bytes: &[u8]) {
        if let Some(int) = parse_i64(bytes) {
            return self.push_int(int);
        }
        let start = self.bytes.len();
        let size = bytes.len();
        match size {
            0..=63 => self.bytes.push(0x80 | size as u8),
            64..=4095 => self.bytes.extend([0xe0 | (size >> 8) as u8, size as u8]),
            _ => {
                self.bytes.push(0xf0);
                let size = u32::try_from(size).expect("strings are bounded");
                self.bytes.extend(size.to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(bytes);
        self.end(start);
    }

    /// Adds a number.
    pub fn push_int(&mut self, int: i64) {
        let start = self.bytes.len();
        let bytes = int.to_le_bytes();
        match int {
            0..=127 => self.bytes.push(bytes[0]),
            -4096..=4095 => self.bytes.extend([0xc0 | bytes[1] & 0x1f, bytes[0]]),
            -32768..=32767 => {
                self.bytes.push(0xf1);
                self.bytes.extend(&bytes[..2]);
            }
            -8_388_608..=8_388_607 => {
                self.bytes.push(0xf2);
                self.bytes.extend(&bytes[..3]);
            }
            -2_147_483_648..=2_147_483_647 => {
                self.bytes.push(0xf3);
                self.bytes.extend(&bytes[..4]);
            }
            _ => {
                self.bytes.push(0xf4);
                self.bytes.extend(bytes);
            }
        }
        self.end(start);
    }

    /// Writes the size of an element behind it, highest bits first, seven to a byte.
    fn end(&mut self, start: usize) {
        let size = self.bytes.len() - start;
        let back = back_size(size);
        for at in (0..back).rev() {
            let more = if at + 1 == back { 0 } else { 0x80 };
            self.bytes.push((size >> (7 * at)) as u8 & 0x7f | more);
        }
        self.count += 1;
    }

    /// The whole of it.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let size = u32::try_from(self.bytes.len()).expect("the writer bounds it");
        self.bytes[..4].copy_from_slice(&size.to_le_bytes());
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        self.bytes[4..6].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listpack_is_read_as_written() {
        let long = vec![b'x'; 70_000];
        let texts: Vec<&[u8]> = vec![
            b"",
            b"a",
            &long[..63],
            &long[..64],
            &long[..4095],
            &long[..4096],
            &long,
            b"0",
            b"127",
            b"128",
            b"-1",
            b"-4096",
            b"4095",
            b"-4097",
            b"32767",
            b"-32768",
            b"8388607",
            b"-8388608",
            b"2147483647",
            b"-2147483649",
            b"9223372036854775807",
            b"-9223372036854775808",
            b"007",
        ];
        let mut pack = Listpack::default();
        texts.iter().for_each(|text| pack.push(text));
        let bytes = pack.finish();
        let read = listpack(&bytes).expect("own listpack");
        let read: Vec<Vec<u8>> = read.into_iter().map(Element::into_vec).collect();
        assert!(read == texts);
        assert!(listpack(&bytes[..bytes.len() - 1]).is_err());
    }
}
