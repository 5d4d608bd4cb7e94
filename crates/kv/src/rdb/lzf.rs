//! LZF, read: runs of bytes as they are, and repetitions of what came before.

/// The bytes that `packed` stands for, if they are `size` many.
pub fn unpack(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    /// A repetition of three bytes gives at most so many.
    const RATIO_MAX: usize = 264 / 3 + 1;
    if packed.len().saturating_mul(RATIO_MAX) < size {
        return None;
    }
    let mut out: Vec<u8> = Vec::with_capacity(size);
    let mut rest = packed;
    while let Some((control, behind)) = rest.split_first() {
        let control = usize::from(*control);
        if control < 32 {
            let (run, behind) = behind.split_at_checked(control + 1)?;
            out.extend_from_slice(run);
            rest = behind;
        } else {
            let mut bytes = behind.iter();
            let mut len = control >> 5;
            if len == 7 {
                len += usize::from(*bytes.next()?);
            }
            let back = (control & 0x1f) << 8 | usize::from(*bytes.next()?);
            rest = bytes.as_slice();
            let from = out.len().checked_sub(back + 1)?;
            for at in from..from + len + 2 {
                let byte = *out.get(at)?;
                out.push(byte);
            }
        }
        if size < out.len() {
            return None;
        }
    }
    (out.len() == size).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_may_overlap() {
        // "aaaaaaaaaaa": one as it is, ten of it.
        assert_eq!(unpack(&[0, b'a', 0xe0, 1, 0], 11).as_deref(), Some(&[b'a'; 11][..]));
        for broken in [&[0xe0_u8, 1, 0][..], &[5, b'a'], &[0, b'a', 0x20], &[0, b'a', 0x20, 1]] {
            assert_eq!(unpack(broken, 4), None);
        }
        assert_eq!(unpack(&[0, b'a'], usize::MAX), None);
    }
}
