//! The four protobuf encodings that remote write needs, and a reader for tests.

/// Appends `value` in base 128, low groups first.
#[inline]
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`put_varint`] appends.
#[inline]
pub fn varint_size(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Appends a field of bytes or a string: tag, size, bytes.
#[inline]
pub fn put_bytes(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_head(field, bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Appends the tag and size of a field whose `size` bytes follow.
#[inline]
pub fn put_head(field: u32, size: usize, out: &mut Vec<u8>) {
    put_varint(u64::from(field << 3 | 2), out);
    put_varint(size as u64, out);
}

/// How many bytes [`put_bytes`] appends, for fields below 16.
#[inline]
pub fn bytes_size(size: usize) -> usize {
    1 + varint_size(size as u64) + size
}

/// Size of what [`put_sample`] appends.
#[inline]
pub fn sample_size(timestamp_ms: i64) -> usize {
    10 + varint_size(timestamp_ms as u64)
}

/// Appends a sample's fields (`double value = 1; int64 timestamp = 2`): the same in both versions.
#[inline]
pub fn put_sample(value: f64, timestamp_ms: i64, out: &mut Vec<u8>) {
    out.push(1 << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
    // The tag and the varint (a positive time has at most 9 bytes of it) go out in one piece.
    out.push(2 << 3);
    put_varint_after_tag(timestamp_ms as u64, out);
}

#[inline]
fn put_varint_after_tag(value: u64, out: &mut Vec<u8>) {
    let mut bytes = [0u8; 10];
    let size = varint_size(value);
    let mut rest = value;
    for byte in &mut bytes[..size] {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    bytes[size - 1] &= 0x7f;
    out.extend_from_slice(&bytes[..size]);
}

/// A field as [`fields`] finds it.
#[cfg(test)]
#[derive(Debug, PartialEq)]
pub enum Field<'a> {
    /// A varint.
    Varint(u64),
    /// Eight bytes.
    Fixed(u64),
    /// Bytes, a string or a message.
    Bytes(&'a [u8]),
}

/// All fields of a message, panicking on malformed ones: tests only.
#[cfg(test)]
pub fn fields(mut message: &[u8]) -> Vec<(u32, Field<'_>)> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = take_varint(&mut message);
        let field = match tag & 7 {
            0 => Field::Varint(take_varint(&mut message)),
            1 => {
                let (bytes, rest) = message.split_at(8);
                message = rest;
                Field::Fixed(u64::from_le_bytes(bytes.try_into().unwrap()))
            }
            2 => {
                let size = take_varint(&mut message) as usize;
                let (bytes, rest) = message.split_at(size);
                message = rest;
                Field::Bytes(bytes)
            }
            other => panic!("wire type {other}"),
        };
        found.push(((tag >> 3) as u32, field));
    }
    found
}

/// Removes a varint from the front, for tests.
#[cfg(test)]
pub fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: u64) {
        let mut bytes = Vec::new();
        put_varint(value, &mut bytes);
        assert_eq!(bytes.len(), varint_size(value), "{value}");
        let mut again = Vec::new();
        put_varint_after_tag(value, &mut again);
        assert_eq!(bytes, again, "{value}");
        assert_eq!(take_varint(&mut &bytes[..]), value);
    }

    #[test]
    fn varints_come_back() {
        check(0);
        for shift in 0..64 {
            check(1 << shift);
            check((1 << shift) - 1);
        }
        check(u64::MAX);
    }

    #[test]
    fn samples_have_the_announced_size() {
        for timestamp in [0, 1, 1_451_606_400_000, i64::MAX, -1] {
            let mut bytes = Vec::new();
            put_sample(1.5, timestamp, &mut bytes);
            assert_eq!(bytes.len(), sample_size(timestamp));
            let expected =
                [(1, Field::Fixed(1.5f64.to_bits())), (2, Field::Varint(timestamp as u64))];
            assert_eq!(fields(&bytes), expected);
        }
    }
}
