//! JSON strings and label maps.

use model::labels::Pair;
use model::{Labels, METRIC_NAME};

/// Appends a quoted JSON string; only what JSON demands is escaped.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    push_quoted(out, text.as_bytes());
}

fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    push_escaped_bytes(out, text);
    out.push(b'"');
}

/// Appends what stands between the quotes, so that a long text can be put together.
pub fn push_escaped(out: &mut Vec<u8>, text: &str) {
    push_escaped_bytes(out, text.as_bytes());
}

fn push_escaped_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // Without a branch a byte; nearly all names and values end here.
    if !bytes.iter().fold(false, |any, byte| any | is_escaped(*byte)) {
        out.extend_from_slice(bytes);
        return;
    }
    let mut copied = 0;
    for (idx, &byte) in bytes.iter().enumerate() {
        if !is_escaped(byte) {
            continue;
        }
        out.extend_from_slice(bytes.get(copied..idx).unwrap_or_default());
        copied = idx + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[digit(byte >> 4), digit(byte)]);
            }
        }
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Appends `{"__name__":"up","job":"x"}`: the metric's name first, as people expect it.
pub fn push_labels(out: &mut Vec<u8>, labels: &Labels) {
    out.push(b'{');
    // Labels are sorted, but capital letters come before the metric's name.
    let is_name = |pair: &Pair<'_>| pair.name == METRIC_NAME.as_bytes();
    let is_first = labels.pairs().next().is_none_or(|first| is_name(&first));
    let name = if is_first { None } else { labels.pairs().find(is_name) };
    let others = labels.pairs().filter(|pair| is_first || !is_name(pair));
    for (idx, pair) in name.into_iter().chain(others).enumerate() {
        if 0 < idx {
            out.push(b',');
        }
        push_quoted(out, pair.name);
        out.push(b':');
        push_quoted(out, pair.value);
    }
    out.push(b'}');
}
