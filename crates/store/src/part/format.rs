//! The fixed bytes of a part file: magic numbers, version, sizes, limits.
//!
//! The layout as a whole is in `docs/format/part.md`.

use codec::{Effort, Paging};

/// First bytes of a part.
pub const MAGIC: [u8; 8] = *b"QuipuPrt";
/// Last bytes of a part: a file without them was not finished.
pub const END_MAGIC: [u8; 8] = *b"QuipuEnd";
/// The version this code writes, and the newest it reads.
pub const VERSION: u32 = 1;
/// Bytes of the header: magic, version, flags.
pub const HEADER_SIZE: usize = 16;
/// Bytes of the trailer: directory's offset, size and checksum, magic.
pub const TRAILER_SIZE: usize = 28;
/// Bytes of the checksum in front of each page.
pub const CHECKSUM_SIZE: usize = 4;

/// Flag: columns were encoded with [`Effort::Dense`].
pub const FLAG_DENSE: u32 = 1;
/// Flag: columns have pages of [`Paging::Narrow`], else of [`Paging::Wide`].
pub const FLAG_NARROW: u32 = 2;

/// Bytes of one column of a slice, so that the size and the kind share 32 bits.
pub const COLUMN_SIZE_MAX: usize = (1 << 30) - 1;
/// Columns of a block; a shape has at most so many fields.
pub const COLUMNS_MAX: usize = 1 << 16;
/// Slots of a block, as the codec has it.
pub const SLOTS_MAX: usize = 1 << 16;

/// How the columns of a part are encoded, all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// What the encoder aimed at.
    pub effort: Effort,
    /// How large pages are.
    pub paging: Paging,
}

impl Encoding {
    /// That of parts that are written today.
    pub fn newest(effort: Effort) -> Encoding {
        Encoding { effort, paging: Paging::NEWEST }
    }

    /// What flags stand for; `None` for flags this version does not know.
    pub fn from_flags(flags: u32) -> Option<Encoding> {
        let effort = if flags & FLAG_DENSE == 0 { Effort::Fast } else { Effort::Dense };
        let paging = if flags & FLAG_NARROW == 0 { Paging::Wide } else { Paging::Narrow };
        (flags & !Encoding::KNOWN_FLAGS == 0).then_some(Encoding { effort, paging })
    }

    /// The flags that this version knows, for people.
    pub const KNOWN_FLAGS: u32 = FLAG_DENSE | FLAG_NARROW;

    /// The flags.
    pub fn flags(self) -> u32 {
        let effort = if self.effort == Effort::Dense { FLAG_DENSE } else { 0 };
        let paging = if self.paging == Paging::Narrow { FLAG_NARROW } else { 0 };
        effort | paging
    }
}

/// The header of a part.
pub fn header(encoding: Encoding) -> [u8; HEADER_SIZE] {
    let mut header = [0; HEADER_SIZE];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..].copy_from_slice(&encoding.flags().to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_back() {
        for effort in [Effort::Fast, Effort::Dense] {
            for paging in [Paging::Wide, Paging::Narrow] {
                let encoding = Encoding { effort, paging };
                assert_eq!(Encoding::from_flags(encoding.flags()), Some(encoding));
            }
        }
        let first = Encoding { effort: Effort::Dense, paging: Paging::Wide };
        assert_eq!(Encoding::from_flags(1), Some(first), "parts as they were at first");
        assert_eq!(Encoding::from_flags(4), None);
    }
}
