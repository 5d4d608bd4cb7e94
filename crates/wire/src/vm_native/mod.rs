//! The native format of VictoriaMetrics, as `/api/v1/export/native` writes it and
//! `/api/v1/import/native` reads it: from series, and to rows.
//!
//! ```text
//! stream  first and last time, each a zigzag number of 8 bytes, big endian; then blocks
//! block   u32 size, name of the metric | u32 size, content                   sizes big endian
//! name    metric 1 { label 1 value 1 }*        the bytes 0, 1, 2 within are 0 and the digit '0', '1', '2'
//! content first time, last time, first value | rows | scale | kind of times, kind of values, bits 64
//!         | sized times | sized values                                     varints, with zigzag but rows
//! ```
//! Before VictoriaMetrics 1.82 the last time and the bits were not there.
//!
//! Numbers of a column are all one (3), rise by one step (2), or are differences (6) or differences of
//! differences (5), as varints with zigzag; 4 and 1 are the same, compressed by zstd.
//! A value is its whole number times ten to the power of the block's scale; three whole numbers stand for
//! the infinities and the marker of a series' end.

mod columns;
mod content;
mod decimal;
pub mod decode;
pub mod encode;
pub mod stream;
#[cfg(test)]
mod tests;

pub use decode::{NativeKeys, decode};

/// Rows of a block, as VictoriaMetrics cuts them.
pub const BLOCK_ROWS_MAX: usize = 8 * 1024;
/// Bytes of a metric's name and labels that VictoriaMetrics takes, and of a block's content.
pub const PIECE_SIZE_MAX: usize = 1 << 20;
/// Bytes before the first block: two times.
const HEAD_SIZE: usize = 16;
