//! Pieces of files, which are blobs: their names, and what a place has of them.

use super::place::Place;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::fmt::Write as _;
use store::{BackupManifest, BlobHash, HASH_SIZE};

/// Bytes of a piece. As many as are in flight are in memory, and as much is sent again after a failure.
pub const PIECE_SIZE: u64 = 8 << 20;
/// The folder of blobs in a place.
pub const BLOBS: &str = "blobs";

/// The hash of a blob's bytes.
pub fn hash_of(bytes: &[u8]) -> BlobHash {
    let mut hash = [0; HASH_SIZE];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

/// A hash in hexadecimal digits.
pub fn hex(hash: &BlobHash) -> String {
    hash.iter().fold(String::with_capacity(2 * HASH_SIZE), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Where a blob is: `blobs/` its first two digits `/` all of them.
pub fn key_of(hash: &BlobHash) -> String {
    let hex = hex(hash);
    format!("{BLOBS}/{}/{hex}", &hex[..2])
}

/// The hash in the name of a blob; none if it is another's name.
pub fn hash_in(key: &str) -> Option<BlobHash> {
    let (_, name) = key.rsplit_once('/')?;
    let digits: Vec<u32> = name.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8))
        .collect();
    let hash: BlobHash = bytes.try_into().ok()?;
    (key == key_of(&hash)).then_some(hash)
}

/// The blobs of a place, with their sizes.
///
/// # Errors
/// When they cannot be listed.
pub fn listed(place: &dyn Place) -> anyhow::Result<HashMap<BlobHash, u64>> {
    let entries = place.list(BLOBS)?;
    Ok(entries.iter().filter_map(|entry| Some((hash_in(&entry.key)?, entry.size))).collect())
}

/// Every piece of a backup: the number of its file, its own number in it, its hash, its size.
pub fn all_of(
    manifest: &BackupManifest,
) -> impl Iterator<Item = (usize, usize, &BlobHash, u64)> + '_ {
    manifest.files.iter().enumerate().flat_map(move |(file_number, file)| {
        let pieces = file.pieces.iter().enumerate();
        pieces.map(move |(number, hash)| {
            (file_number, number, hash, manifest.size_of_piece(file, number))
        })
    })
}

/// A blob's bytes, believed only once they are what its name says.
///
/// # Errors
/// When it is missing or rotten, with its name; when the place fails.
pub fn fetch(place: &dyn Place, hash: &BlobHash, size: u64) -> anyhow::Result<Vec<u8>> {
    let key = key_of(hash);
    let Some(bytes) = place.get(&key, size)? else {
        anyhow::bail!("{key} is missing in {}", place.name());
    };
    if bytes.len() as u64 != size {
        anyhow::bail!("{key} in {} is rotten: it has not the {size} bytes it had", place.name());
    }
    if hash_of(&bytes) != *hash {
        anyhow::bail!("{key} in {} is rotten: its bytes have another hash", place.name());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hashes() {
        let hash = hash_of(b"abc");
        let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&hash), digits);
        assert_eq!(key_of(&hash), format!("blobs/ba/{digits}"));
        assert_eq!(hash_in(&key_of(&hash)), Some(hash));
        let capital = format!("blobs/BA/{}", digits.to_uppercase());
        for other in ["", "blobs/ba", "blobs/ba/ba78", &capital, &format!("blobs/bb/{digits}")] {
            assert_eq!(hash_in(other), None, "{other}");
        }
        assert_eq!(hash_in(&format!("blobs/ba/{digits}.new-0123456789abcdef")), None);
    }
}
