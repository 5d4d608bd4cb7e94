//! The fixed bytes of a part file: magic numbers, version, sizes, limits.
//!
//! The layout as a whole is in `docs/format/part.md`.

use codec::Effort;

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

/// Bytes of one column of a slice, so that the size and the kind share 32 bits.
pub const COLUMN_SIZE_MAX: usize = (1 << 30) - 1;
/// Columns of a block; a shape has at most so many fields.
pub const COLUMNS_MAX: usize = 1 << 16;
/// Slots of a block, as the codec has it.
pub const SLOTS_MAX: usize = 1 << 16;

/// The flags of a part whose columns are encoded with `effort`.
pub fn flags_of(effort: Effort) -> u32 {
    match effort {
        Effort::Fast => 0,
        Effort::Dense => FLAG_DENSE,
    }
}

/// The effort that flags stand for; `None` for flags this version does not know.
pub fn effort_of(flags: u32) -> Option<Effort> {
    match flags {
        0 => Some(Effort::Fast),
        FLAG_DENSE => Some(Effort::Dense),
        _ => None,
    }
}

/// The header of a part.
pub fn header(effort: Effort) -> [u8; HEADER_SIZE] {
    let mut header = [0; HEADER_SIZE];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..].copy_from_slice(&flags_of(effort).to_le_bytes());
    header
}
