//! Compressed bodies, bounded: a bomb stops at the limit, whatever it promises.
//!
//! ```text
//! gzip (several members), deflate (zlib or raw), zstd, snappy (block, or framed by its magic)
//! ```
//!
//! The caller brings the buffer, so that a connection can use one for all its requests.

use crate::{Error, Limit};
use flate2::Compression;
use std::io::{Read, Write};

/// The `Content-Encoding`s that are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Identity,
    /// RFC 1952, any number of members.
    Gzip,
    /// RFC 1950, or RFC 1951 as some senders have it.
    Deflate,
    /// RFC 8878.
    Zstd,
    /// Snappy's block format as remote write has it; the framing format is told by its magic.
    Snappy,
}

impl Encoding {
    /// The encoding that a header's value names, in any case.
    pub fn parse(name: &str) -> Option<Encoding> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Encoding::Identity,
            "gzip" | "x-gzip" => Encoding::Gzip,
            "deflate" => Encoding::Deflate,
            "zstd" => Encoding::Zstd,
            "snappy" | "x-snappy-framed" => Encoding::Snappy,
            _ => return None,
        })
    }
}

/// First bytes of snappy's framing format.
const SNAPPY_MAGIC: &[u8] = b"\xff\x06\x00\x00sNaPpY";
/// Largest zstd window: as large as a body may be.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

const _: () = assert!(model::limits::BODY_SIZE_MAX <= 1 << ZSTD_WINDOW_LOG_MAX);

/// The body's bytes: itself, or what is now in `buffer`, whose old content is gone.
///
/// # Errors
/// [`Error::LimitExceeded`] when there would be more than `size_max` bytes,
/// [`Error::Malformed`] when the bytes do not decompress to their end.
pub fn decompress<'a>(
    encoding: Encoding,
    body: &'a [u8],
    size_max: usize,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    match encoding {
        // Some clients declare an encoding and send nothing. An empty block of snappy has a byte.
        _ if body.is_empty() && encoding != Encoding::Snappy => return Ok(body),
        Encoding::Identity if size_max < body.len() => return Err(too_large(body.len(), size_max)),
        Encoding::Identity => return Ok(body),
        Encoding::Gzip => {
            read_all("gzip", flate2::bufread::MultiGzDecoder::new(body), size_max, buffer)?;
        }
        Encoding::Deflate if is_zlib(body) => {
            read_all("zlib", flate2::bufread::ZlibDecoder::new(body), size_max, buffer)?;
        }
        Encoding::Deflate => {
            read_all("deflate", flate2::bufread::DeflateDecoder::new(body), size_max, buffer)?;
        }
        Encoding::Zstd => zstd_body(body, size_max, buffer)?,
        Encoding::Snappy if body.starts_with(SNAPPY_MAGIC) => {
            read_all("snappy", snap::read::FrameDecoder::new(body), size_max, buffer)?;
        }
        Encoding::Snappy => snappy_block(body, size_max, buffer)?,
    }
    Ok(buffer)
}

fn too_large(size: usize, size_max: usize) -> Error {
    Error::LimitExceeded {
        limit: Limit::DecompressedSize,
        value: size as u64,
        max: size_max as u64,
    }
}

/// Whether the two bytes of a zlib header are there.
fn is_zlib(body: &[u8]) -> bool {
    match body {
        [first, second, ..] => {
            first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31)
        }
        _ => false,
    }
}

/// Reads to the end, but never more than one byte above the limit.
fn read_all(
    what: &'static str,
    reader: impl Read,
    size_max: usize,
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    buffer.clear();
    let read = reader.take(size_max as u64 + 1).read_to_end(buffer);
    if size_max < buffer.len() {
        return Err(too_large(buffer.len(), size_max));
    }
    match read {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::malformed(what, buffer.len(), "a complete, undamaged stream")),
    }
}

fn zstd_body(body: &[u8], size_max: usize, buffer: &mut Vec<u8>) -> Result<(), Error> {
    let broken = |_| Error::malformed("zstd", 0, "a complete, undamaged stream");
    if let Ok(Some(promised)) = zstd::zstd_safe::get_frame_content_size(body)
        && (size_max as u64) < promised
    {
        return Err(Error::LimitExceeded {
            limit: Limit::DecompressedSize,
            value: promised,
            max: size_max as u64,
        });
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(broken)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(broken)?;
    read_all("zstd", decoder, size_max, buffer)
}

fn snappy_block(body: &[u8], size_max: usize, buffer: &mut Vec<u8>) -> Result<(), Error> {
    let broken = |_| Error::malformed("snappy", 0, "a complete, undamaged block");
    if body.is_empty() {
        // The library takes it for a block of no bytes.
        return Err(Error::malformed("snappy", 0, "the size of the block"));
    }
    let size = snap::raw::decompress_len(body).map_err(broken)?;
    if size_max < size {
        return Err(too_large(size, size_max));
    }
    // Bytes of an earlier request need not be cleared: all are overwritten, or it is an error.
    buffer.resize(size, 0);
    let written = snap::raw::Decoder::new().decompress(body, buffer).map_err(broken)?;
    buffer.truncate(written);
    Ok(())
}

/// Compresses an answer piece by piece.
pub struct GzipWriter {
    encoder: flate2::write::GzEncoder<Vec<u8>>,
}

/// Effort for answers: above 3 time grows faster than size shrinks.
const GZIP_LEVEL: u32 = 1;

impl Default for GzipWriter {
    fn default() -> GzipWriter {
        GzipWriter::new()
    }
}

impl GzipWriter {
    /// A new stream.
    pub fn new() -> GzipWriter {
        let encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
        GzipWriter { encoder }
    }

    /// Takes a piece; returns the compressed bytes that are ready, which may be none.
    pub fn write(&mut self, piece: &[u8]) -> Vec<u8> {
        // Writing to memory cannot fail.
        let _ = self.encoder.write_all(piece);
        std::mem::take(self.encoder.get_mut())
    }

    /// Makes all bytes ready that were taken so far, for answers that come slowly.
    pub fn flush(&mut self) -> Vec<u8> {
        let _ = self.encoder.flush();
        std::mem::take(self.encoder.get_mut())
    }

    /// Ends the stream; returns its last bytes.
    pub fn finish(self) -> Vec<u8> {
        self.encoder.finish().unwrap_or_default()
    }
}

/// Compresses a whole answer.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzipWriter::new();
    let mut out = writer.write(bytes);
    out.extend_from_slice(&writer.finish());
    out
}

/// Compresses a remote-write body, for clients and tests.
pub fn snappy(bytes: &[u8]) -> Vec<u8> {
    // Fails only for more than 4 GiB, which no body has.
    snap::raw::Encoder::new().compress_vec(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn snappy_frames(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = snap::write::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.into_inner().unwrap()
    }

    fn all(bytes: &[u8]) -> Vec<(Encoding, Vec<u8>)> {
        vec![
            (Encoding::Identity, bytes.to_vec()),
            (Encoding::Gzip, gzip(bytes)),
            (
                Encoding::Gzip,
                [gzip(&bytes[..bytes.len() / 2]), gzip(&bytes[bytes.len() / 2..])].concat(),
            ),
            (Encoding::Deflate, zlib(bytes)),
            (Encoding::Deflate, deflate(bytes)),
            (Encoding::Zstd, zstd::encode_all(bytes, 1).unwrap()),
            (Encoding::Zstd, zstd::bulk::compress(bytes, 1).unwrap()),
            (Encoding::Snappy, snappy(bytes)),
            (Encoding::Snappy, snappy_frames(bytes)),
        ]
    }

    #[test]
    fn everything_comes_back_and_the_limit_holds() {
        let mut buffer = b"old".to_vec();
        for size in [0, 1, 1000, 300_000] {
            let text: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            // An empty text compresses to an empty body, which the decoder refuses: a block may have been lost.
            let is_kept = |packed: &(Encoding, Vec<u8>)| {
                packed.0 == Encoding::Identity || !packed.1.is_empty()
            };
            for (encoding, packed) in all(&text).into_iter().filter(is_kept) {
                let got = decompress(encoding, &packed, size, &mut buffer).unwrap();
                assert_eq!(got, text, "{encoding:?}");
                if 0 < size {
                    let error = decompress(encoding, &packed, size - 1, &mut buffer).unwrap_err();
                    assert!(matches!(error, Error::LimitExceeded { .. }), "{encoding:?} {error}");
                }
            }
        }
    }

    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0u8; 50 << 20];
        for (encoding, packed) in all(&zeros).split_off(1) {
            let mut buffer = Vec::new();
            let error = decompress(encoding, &packed, 1 << 20, &mut buffer).unwrap_err();
            assert!(
                error.to_string().contains("1.0 MiB; send less at once"),
                "{encoding:?} {error}"
            );
            assert!(buffer.capacity() <= 4 << 20, "{encoding:?} {}", buffer.capacity());
        }
    }

    #[test]
    fn damage_is_an_error() {
        let text: Vec<u8> = (0..5000u32).flat_map(u32::to_le_bytes).collect();
        for (encoding, packed) in all(&text).split_off(1) {
            let mut buffer = Vec::new();
            let cut = &packed[..packed.len() / 2];
            assert!(decompress(encoding, cut, 1 << 20, &mut buffer).is_err(), "{encoding:?}");
        }
        for encoding in [Encoding::Gzip, Encoding::Zstd, Encoding::Snappy, Encoding::Deflate] {
            let garbage = [0x5au8; 100];
            assert!(decompress(encoding, &garbage, 1 << 20, &mut Vec::new()).is_err());
            let is_refused = decompress(encoding, &[], 1 << 20, &mut Vec::new()).is_err();
            assert_eq!(is_refused, encoding == Encoding::Snappy, "{encoding:?}");
        }
    }

    #[test]
    fn names_are_those_of_http() {
        assert_eq!(Encoding::parse("GZIP"), Some(Encoding::Gzip));
        assert_eq!(Encoding::parse(""), Some(Encoding::Identity));
        assert_eq!(Encoding::parse("br"), None);
    }
}
