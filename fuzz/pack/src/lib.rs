//! Packs of fuzz inputs: `fuzz/corpus/TARGET.pack` holds the inputs that libFuzzer found for a target.
//!
//! ```text
//! pack    = "quipu fuzz pack 1\n" input*      sorted by name, names are unique
//! input   = size name size bytes
//! size    = u32, little endian
//! ```
//!
//! The same inputs give the same bytes, and [`write_if_changed`] leaves an equal file alone, so a run
//! that learns nothing changes nothing in the checkout.

#![allow(clippy::disallowed_methods, reason = "tools on a real machine")]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// First bytes of a pack: format and version.
const MAGIC: &[u8] = b"quipu fuzz pack 1\n";

/// An input and its name, which is libFuzzer's checksum of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// File name of the input when it is unpacked.
    pub name: String,
    /// The bytes that the target gets.
    pub bytes: Vec<u8>,
}

/// Reads all inputs of a pack, sorted by name. A missing file is an empty pack.
///
/// # Errors
/// When the file cannot be read, or is not a pack. The error names the file.
pub fn read(path: &Path) -> io::Result<Vec<Input>> {
    match fs::read(path) {
        Ok(bytes) => decode(&bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
    .map_err(|error| with_path(path, &error))
}

/// Writes a pack, unless the file holds these inputs already. Returns whether it wrote. Without
/// inputs there is no file.
///
/// # Errors
/// When the file cannot be written or removed. The error names the file.
pub fn write_if_changed(path: &Path, inputs: &[Input]) -> io::Result<bool> {
    let old = fs::read(path).unwrap_or_default();
    let new = if inputs.is_empty() { Vec::new() } else { encode(inputs) };
    if old == new {
        return Ok(false);
    }
    let written = if new.is_empty() { fs::remove_file(path) } else { fs::write(path, new) };
    written.map_err(|error| with_path(path, &error))?;
    Ok(true)
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn encode(inputs: &[Input]) -> Vec<u8> {
    let mut sorted: Vec<&Input> = inputs.iter().collect();
    sorted.sort();
    sorted.dedup();
    let mut pack = MAGIC.to_vec();
    for input in sorted {
        for piece in [input.name.as_bytes(), &input.bytes] {
            let size = u32::try_from(piece.len()).expect("fuzz inputs are below 4 GiB");
            pack.extend_from_slice(&size.to_le_bytes());
            pack.extend_from_slice(piece);
        }
    }
    pack
}

fn decode(pack: &[u8]) -> io::Result<Vec<Input>> {
    let mut rest = pack.strip_prefix(MAGIC).ok_or_else(|| invalid("not a pack of fuzz inputs"))?;
    let mut inputs = Vec::new();
    while !rest.is_empty() {
        let name = take_piece(&mut rest)?.to_vec();
        let name = String::from_utf8(name).map_err(|_| invalid("a name is not UTF-8"))?;
        let is_plain = !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
        if !is_plain {
            return Err(invalid("a name is not a plain file name"));
        }
        inputs.push(Input { name, bytes: take_piece(&mut rest)?.to_vec() });
    }
    if !inputs.is_sorted_by(|one, next| one.name < next.name) {
        return Err(invalid("names are not sorted"));
    }
    Ok(inputs)
}

fn take_piece<'a>(rest: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let truncated = || invalid("the pack is truncated");
    let (size, after) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
    let size = u32::from_le_bytes(*size) as usize;
    let (piece, after) = after.split_at_checked(size).ok_or_else(truncated)?;
    *rest = after;
    Ok(piece)
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, bytes: &[u8]) -> Input {
        Input { name: name.to_string(), bytes: bytes.to_vec() }
    }

    #[test]
    fn a_pack_gives_back_its_inputs_sorted() {
        let (a, b) = (input("a", b""), input("b", &[0, 255, 10]));
        let pack = encode(&[b.clone(), a.clone(), a.clone()]);
        assert_eq!(pack, encode(&[a.clone(), b.clone()]));
        assert_eq!(decode(&pack).unwrap(), [a, b]);
        assert_eq!(decode(MAGIC).unwrap(), []);
    }

    #[test]
    fn a_malformed_pack_is_refused() {
        let pack = encode(&[input("a", b"1"), input("b", b"22")]);
        let starts = 0..pack.len();
        let whole = starts.filter(|end| decode(&pack[..*end]).is_ok()).collect::<Vec<_>>();
        // The pack without inputs, and the one with the first input.
        assert_eq!(whole, [MAGIC.len(), MAGIC.len() + 4 + 1 + 4 + 1]);
        let mut unsorted = pack.clone();
        unsorted.extend_from_slice(&encode(&[input("a", b"1")])[MAGIC.len()..]);
        assert!(decode(&unsorted).is_err());
        for name in ["", "../a", "a/b", ".a"] {
            assert!(decode(&encode(&[input(name, b"1")])).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_is_written_only_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("target.pack");
        assert_eq!(read(&path).unwrap(), []);
        assert!(!write_if_changed(&path, &[]).unwrap());
        let inputs = [input("a", b"1")];
        assert!(write_if_changed(&path, &inputs).unwrap());
        assert!(!write_if_changed(&path, &inputs).unwrap());
        assert_eq!(read(&path).unwrap(), inputs);
        assert!(write_if_changed(&path, &[]).unwrap());
        assert!(!path.exists());
        fs::write(&path, b"other").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("target.pack"));
    }
}
