//! Protobuf by hand, for messages that no encoder of ours would make.

/// A field that holds bytes.
pub fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    push_varint(&mut out, content.len() as u64);
    out.extend_from_slice(content);
    out
}

/// A field that holds a number.
pub fn number(number: u8, value: u64) -> Vec<u8> {
    let mut out = vec![number << 3];
    push_varint(&mut out, value);
    out
}

/// A field that holds a float64.
pub fn double(number: u8, value: f64) -> Vec<u8> {
    let mut out = vec![number << 3 | 1];
    out.extend_from_slice(&value.to_bits().to_le_bytes());
    out
}

/// A label of remote write 1.0, as a series' field.
pub fn label(name: &[u8], value: &[u8]) -> Vec<u8> {
    bytes(1, &[bytes(1, name), bytes(2, value)].concat())
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while 0x80 <= value {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
