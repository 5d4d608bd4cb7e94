//! Libraries as bytes, as `FUNCTION DUMP` of Redis 7.0 writes them: a piece of an RDB file.
//!
//! ```text
//! (245, length, code)*  version (2 bytes)  CRC-64 of all before (8 bytes)
//! ```

/// What comes before a library.
const FUNCTION: u8 = 245;
/// The version of the format that Redis 7.0 has.
const VERSION: u16 = 10;
/// Bytes behind the libraries.
const FOOTER_SIZE: usize = 10;
/// The polynomial of the checksum, its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
/// Bytes that a compressed library may have.
const CODE_SIZE_MAX: usize = 64 << 20;

/// The libraries' codes as bytes.
pub fn dump<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for code in codes {
        out.push(FUNCTION);
        match code.len() {
            size @ 0..64 => out.push(size as u8),
            size @ 0..=0x3fff => out.extend_from_slice(&(size as u16 | 0x4000).to_be_bytes()),
            size => {
                out.push(0x80);
                out.extend_from_slice(&(size as u32).to_be_bytes());
            }
        }
        out.extend_from_slice(code);
    }
    out.extend_from_slice(&VERSION.to_le_bytes());
    let sum = checksum(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// The libraries' codes in bytes.
///
/// # Errors
/// In Redis' words, when the bytes are something else.
pub fn parse(payload: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    const WRONG: &str = "DUMP payload version or checksum are wrong";
    let size = payload.len().checked_sub(FOOTER_SIZE).ok_or(WRONG)?;
    let (mut body, footer) = payload.split_at_checked(size).ok_or(WRONG)?;
    let (version, sum) = footer.split_first_chunk::<2>().ok_or(WRONG)?;
    let (sum, _) = sum.split_first_chunk::<8>().ok_or(WRONG)?;
    let sum = u64::from_le_bytes(*sum);
    let summed = payload.get(..size + 2).ok_or(WRONG)?;
    // A sum of zero is that of who does not sum.
    if VERSION < u16::from_le_bytes(*version) || sum != 0 && sum != checksum(summed) {
        return Err(WRONG);
    }
    let mut codes = Vec::new();
    while let Some((kind, rest)) = body.split_first() {
        if *kind != FUNCTION {
            return Err("given type is not a function");
        }
        let (code, rest) = string(rest).ok_or("failed loading the given functions payload")?;
        codes.push(code);
        body = rest;
    }
    Ok(codes)
}

/// Checks that bytes can be parsed.
///
/// # Errors
/// As [`parse`].
pub fn check(payload: &[u8]) -> Result<(), &'static str> {
    parse(payload).map(drop)
}

/// A length, or the number of a coding.
enum Length {
    Plain(usize),
    Coded(u8),
}

fn length(bytes: &[u8]) -> Option<(Length, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    match first >> 6 {
        0 => Some((Length::Plain(usize::from(first & 0x3f)), rest)),
        1 => {
            let (second, rest) = rest.split_first()?;
            let size = (usize::from(first & 0x3f) << 8) | usize::from(*second);
            Some((Length::Plain(size), rest))
        }
        2 if *first == 0x80 => {
            let (size, rest) = rest.split_first_chunk::<4>()?;
            Some((Length::Plain(u32::from_be_bytes(*size) as usize), rest))
        }
        2 if *first == 0x81 => {
            let (size, rest) = rest.split_first_chunk::<8>()?;
            Some((Length::Plain(usize::try_from(u64::from_be_bytes(*size)).ok()?), rest))
        }
        3 => Some((Length::Coded(first & 0x3f), rest)),
        _ => None,
    }
}

/// The coding of compressed text.
const COMPRESSED: u8 = 3;

fn string(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    match length(bytes)? {
        (Length::Plain(size), rest) => {
            let (text, rest) = rest.split_at_checked(size)?;
            Some((text.to_vec(), rest))
        }
        (Length::Coded(COMPRESSED), rest) => {
            let (Length::Plain(packed), rest) = length(rest)? else { return None };
            let (Length::Plain(size), rest) = length(rest)? else { return None };
            let (packed, rest) = rest.split_at_checked(packed)?;
            Some((decompress(packed, size)?, rest))
        }
        _ => None,
    }
}

/// LZF: runs of bytes as they are, and copies of what came before.
fn decompress(mut packed: &[u8], size: usize) -> Option<Vec<u8>> {
    if CODE_SIZE_MAX < size {
        return None;
    }
    let mut out = Vec::new();
    while let Some((control, rest)) = packed.split_first() {
        let control = usize::from(*control);
        if control < 32 {
            let (run, rest) = rest.split_at_checked(control + 1)?;
            out.extend_from_slice(run);
            packed = rest;
        } else {
            let (mut len, mut rest) = (control >> 5, rest);
            if len == 7 {
                let (more, behind) = rest.split_first()?;
                len += usize::from(*more);
                rest = behind;
            }
            let (low, behind) = rest.split_first()?;
            let back = ((control & 0x1f) << 8) + usize::from(*low) + 1;
            let start = out.len().checked_sub(back)?;
            for at in start..start + len + 2 {
                out.push(*out.get(at)?);
            }
            packed = behind;
        }
        if size < out.len() {
            return None;
        }
    }
    (out.len() == size).then_some(out)
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| {
        let mut sum = sum ^ u64::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_known_value() {
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn what_was_dumped_is_parsed() {
        let codes: Vec<Vec<u8>> = [0, 1, 63, 64, 0x3fff, 0x4000].map(|n| vec![b'x'; n]).to_vec();
        let dumped = dump(codes.iter().map(Vec::as_slice));
        assert_eq!(parse(&dumped), Ok(codes));
        for at in 0..dumped.len().min(200) {
            let mut broken = dumped.clone();
            broken[at] ^= 1;
            assert!(parse(&broken).is_err());
            assert!(parse(&dumped[..at]).is_err());
        }
    }

    #[test]
    fn byte_behind_the_footer_is_refused_though_the_checksum_holds() {
        let mut dumped = dump([b"code".as_slice()].into_iter());
        assert_eq!(check(&dumped), Ok(()));
        dumped.push(0);
        let (body, sum) = dumped.split_at(dumped.len() - 8);
        assert_eq!(checksum(body).to_le_bytes(), sum);
        assert!(check(&dumped).is_err());
    }

    #[test]
    fn copies_overlap() {
        assert_eq!(decompress(&[0, b'a', 0xe0, 1, 0], 11), Some(vec![b'a'; 11]));
        assert_eq!(decompress(&[0, b'a', 0xe0, 1, 9], 11), None);
    }
}
