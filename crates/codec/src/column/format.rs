//! Every number that a column's bytes are told by; the layout is in `docs/format/column.md`.

/// Low four bits of the first byte of a column of values; the high four are the decimal exponent.
pub mod values {
    /// Every value is the same decimal: its mantissa as a zigzag varint.
    pub const CONSTANT_DECIMAL: u8 = 0;
    /// Every value has the same bits: eight bytes.
    pub const CONSTANT_BITS: u8 = 1;
    /// Decimals: a stream of mantissas.
    pub const DECIMALS: u8 = 2;
    /// Bit patterns: a stream of integers. Floats of one sign are ordered as their bits are.
    pub const BITS: u8 = 3;
    /// Floats in pages of pco's own float modes.
    pub const MODELLED_FLOATS: u8 = 4;
    /// The kinds' bits in the low nibble.
    pub const KIND_MASK: u8 = 0x07;
    /// Added to a stream of decimals: exceptions precede it.
    pub const WITH_EXCEPTIONS: u8 = 0x08;
    /// The largest decimal exponent that has room beside the kind.
    pub const EXPONENT_MAX: u8 = 15;
}

/// The first byte of a column of timestamps.
pub mod timestamps {
    /// Every slot has a list of its own: the slots' lens follow.
    pub const OWN_LISTS: u8 = 0;
    /// Slots share lists: the lists' lens and a list id per slot follow.
    pub const SHARED_LISTS: u8 = 1;
    /// The bits that tell own from shared.
    pub const MAPPING_MASK: u8 = 0x01;
    /// Added when the lists are runs of constant step rather than a stream of integers.
    pub const RUNS: u8 = 0x02;
}

/// The first byte of a stream of integers: an order, a packing, and whether a scale follows.
pub mod integers {
    /// How often neighbours within a slot are subtracted: 0, 1 or 2.
    pub const ORDER_MASK: u8 = 0x03;
    /// The position of the packing.
    pub const PACKING_SHIFT: u8 = 2;
    /// The packing's bits once shifted.
    pub const PACKING_MASK: u8 = 0x07;
    /// Added when the integers are `base + multiplier * k` and the stream holds `k`.
    pub const SCALED: u8 = 0x20;
    /// Blocks of bit-packed residues.
    pub const PACKED: u8 = 0;
    /// Pages of a pco model of 8-bit residues.
    pub const MODELLED_8: u8 = 1;
    /// The same of 16 bits.
    pub const MODELLED_16: u8 = 2;
    /// The same of 32 bits.
    pub const MODELLED_32: u8 = 3;
    /// The same of 64 bits.
    pub const MODELLED_64: u8 = 4;
}

/// The version of pco's wrapped format that every model is written in; never stored.
/// A pco that writes another version needs packings with other numbers.
pub const PCO_VERSION: [u8; 2] = [4, 1];
