//! Merges sorted dictionaries into one and tells how each piece's ids translate.

use super::piece::{Piece, PieceCursor, Space};
use super::strings::StringsWriter;
use crate::error::Result;
use crate::narrow::to_u32;

/// The id of a string that is left out.
pub(crate) const NO_ID: u32 = u32::MAX;

/// A written dictionary.
pub(crate) struct Merged {
    /// Per piece: from its ids to those of the new dictionary, or [`NO_ID`].
    pub ids: Vec<Vec<u32>>,
    /// Where the dictionary is in its section.
    pub offset: u64,
    /// How many strings it has.
    pub count: u32,
}

impl Merged {
    /// Per piece: from new ids to the piece's, or [`NO_ID`].
    pub(crate) fn inverse(&self) -> Vec<Vec<u32>> {
        let invert = |ids: &Vec<u32>| {
            let mut out = vec![NO_ID; self.count as usize];
            for (old, new) in ids.iter().enumerate().filter(|(_, new)| **new != NO_ID) {
                out[*new as usize] = to_u32(old);
            }
            out
        };
        self.ids.iter().map(invert).collect()
    }
}

/// Writes the union of the pieces' strings to a section; `spaces` has the piece's space or
/// nothing, `is_used` (per piece, by id) leaves strings out.
pub(crate) fn merge_dictionaries(
    pieces: &[&dyn Piece],
    spaces: &[Option<Space>],
    is_used: Option<&[Vec<bool>]>,
    section: &mut Vec<u8>,
) -> Result<Merged> {
    let mut inputs = Vec::with_capacity(pieces.len());
    let mut ids = vec![Vec::new(); pieces.len()];
    for (piece_idx, (piece, space)) in pieces.iter().zip(spaces).enumerate() {
        if let Some(space) = space {
            ids[piece_idx] = vec![NO_ID; piece.id_count(*space)? as usize];
            let used = is_used.map(|is_used| is_used[piece_idx].as_slice());
            let mut input = Input { piece_idx, cursor: piece.cursor(*space)?, is_used: used };
            input.skip_unused()?;
            inputs.push(input);
        }
    }
    let mut writer = StringsWriter::default();
    let mut string = Vec::new();
    while let Some(least) = least_of(&inputs) {
        string.clear();
        string.extend_from_slice(least);
        let new_id = writer.push(&string)?;
        for input in &mut inputs {
            while let Some((_, old_id)) = input.cursor.current().filter(|(s, _)| *s == string) {
                ids[input.piece_idx][old_id as usize] = new_id;
                input.cursor.advance()?;
                input.skip_unused()?;
            }
        }
    }
    let (offset, count) = writer.finish(section);
    Ok(Merged { ids, offset, count })
}

struct Input<'a> {
    piece_idx: usize,
    cursor: PieceCursor<'a>,
    is_used: Option<&'a [bool]>,
}

impl Input<'_> {
    fn skip_unused(&mut self) -> Result<()> {
        if let Some(is_used) = self.is_used {
            while self.cursor.current().is_some_and(|(_, id)| !is_used[id as usize]) {
                self.cursor.advance()?;
            }
        }
        Ok(())
    }
}

/// The least string under the cursors.
fn least_of<'a>(inputs: &'a [Input<'_>]) -> Option<&'a [u8]> {
    inputs.iter().filter_map(|input| input.cursor.current()).map(|(string, _)| string).min()
}
