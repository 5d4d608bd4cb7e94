//! Postings: for each id of a dictionary, the increasing numbers of the blocks (or groups) that
//! it occurs in.
//!
//! ```text
//! table = word u32 per id │ list │ list ...
//! word  = ffffffff             in most blocks: no list, look at all
//!       | 80000000 + number    in this one alone
//!       | offset of a list     from the end of the words
//! list  = count, first, { difference to the one before - 1 }*          varints
//! ```
//!
//! A posting names blocks, not slots: bit-sliced columns tell the slots of a block in some ten
//! nanoseconds, so finer lists would cost disk and win nothing.

use crate::error::{Result, corrupt};
use crate::narrow::to_u32;
use codec::{Reader, put_varint};

const DENSE: u32 = u32::MAX;
const SINGLE: u32 = 1 << 31;

/// Postings of fewer blocks than this always have their list.
const DENSE_LEN_MIN: u32 = 8;

/// Collects pairs and writes one table.
#[derive(Default)]
pub(crate) struct PostingsWriter {
    /// Id and number; of one id the numbers arrive increasing.
    pairs: Vec<(u32, u32)>,
}

impl PostingsWriter {
    /// Notes that an id occurs in a block.
    #[inline]
    pub(crate) fn push(&mut self, id: u32, number: u32) {
        self.pairs.push((id, number));
    }

    /// Appends the table of `id_count` ids to a section and returns its offset there.
    /// `number_count` is how many blocks there are.
    pub(crate) fn finish(self, id_count: u32, number_count: u32, section: &mut Vec<u8>) -> u64 {
        let table_start = section.len();
        let (starts, numbers) = self.sorted(id_count);
        let lists_start = table_start + 4 * id_count as usize;
        section.resize(lists_start, 0);
        for id in 0..id_count as usize {
            let list = &numbers[starts[id] as usize..starts[id + 1] as usize];
            let word = put_list(list, number_count, lists_start, section);
            section[table_start + 4 * id..][..4].copy_from_slice(&word.to_le_bytes());
        }
        table_start as u64
    }

    /// The numbers by id, and where each id's start: a counting sort, so stable.
    fn sorted(self, id_count: u32) -> (Vec<u32>, Vec<u32>) {
        let mut starts = vec![0u32; id_count as usize + 1];
        for (id, _) in &self.pairs {
            starts[*id as usize + 1] += 1;
        }
        for id in 0..id_count as usize {
            starts[id + 1] += starts[id];
        }
        let mut cursors = starts.clone();
        let mut numbers = vec![0u32; self.pairs.len()];
        for (id, number) in &self.pairs {
            let cursor = &mut cursors[*id as usize];
            numbers[*cursor as usize] = *number;
            *cursor += 1;
        }
        (starts, numbers)
    }
}

/// Appends a list where one is needed; returns its word.
fn put_list(list: &[u32], number_count: u32, lists_start: usize, section: &mut Vec<u8>) -> u32 {
    let count = to_u32(list.len());
    if let [single] = list
        && single | SINGLE != DENSE
    {
        return single | SINGLE;
    }
    let offset = section.len() - lists_start;
    let is_dense = DENSE_LEN_MIN <= count && number_count < 2 * count;
    if is_dense || (SINGLE as usize) <= offset {
        return DENSE;
    }
    put_varint(section, u64::from(count));
    let mut next = 0;
    for number in list {
        assert!(next <= *number, "numbers increase");
        put_varint(section, u64::from(number - next));
        next = number + 1;
    }
    to_u32(offset)
}

/// Reads one table in place.
#[derive(Clone, Copy)]
pub(crate) struct Postings<'a> {
    words: &'a [[u8; 4]],
    lists: &'a [u8],
}

/// What is known of one id.
pub(crate) enum Posting<'a> {
    /// Nothing: it may be in every block.
    Dense,
    /// One block.
    Single(u32),
    /// How many, and the rest of the list.
    List(u32, Reader<'a>),
}

impl<'a> Postings<'a> {
    /// The table of `id_count` ids at `offset` of a section.
    pub(crate) fn open(section: &'a [u8], offset: u64, id_count: u32) -> Result<Postings<'a>> {
        let rest = usize::try_from(offset).ok().and_then(|offset| section.get(offset..));
        let rest = rest.ok_or_else(|| corrupt("offset of postings"))?;
        let words_size = id_count as usize * 4;
        if rest.len() < words_size {
            return Err(corrupt("postings past their section"));
        }
        let (words, lists) = rest.split_at(words_size);
        Ok(Postings { words: words.as_chunks().0, lists })
    }

    /// The posting of an id.
    pub(crate) fn get(&self, id: u32) -> Result<Posting<'a>> {
        let word = self.words.get(id as usize).ok_or_else(|| corrupt("id past its postings"))?;
        let word = u32::from_le_bytes(*word);
        if word == DENSE {
            return Ok(Posting::Dense);
        }
        if word & SINGLE != 0 {
            return Ok(Posting::Single(word & !SINGLE));
        }
        let rest = self.lists.get(word as usize..).ok_or_else(|| corrupt("offset of a list"))?;
        let mut reader = Reader::new(rest);
        // Each number takes a byte at least, so a count that lies is found here.
        let count = reader.varint_size(rest.len())?;
        Ok(Posting::List(to_u32(count), reader))
    }

    /// How many numbers an id has, `None` when it has no list.
    pub(crate) fn count(&self, id: u32) -> Result<Option<u32>> {
        Ok(match self.get(id)? {
            Posting::Dense => None,
            Posting::Single(_) => Some(1),
            Posting::List(count, _) => Some(count),
        })
    }

    /// Appends the numbers of an id that has a list; they are below `end`.
    pub(crate) fn append(&self, id: u32, end: u32, out: &mut Vec<u32>) -> Result<()> {
        let (count, mut reader) = match self.get(id)? {
            Posting::Dense => return Err(corrupt("a list")),
            Posting::Single(number) if number < end => {
                out.push(number);
                return Ok(());
            }
            Posting::Single(_) => return Err(corrupt("number in a posting")),
            Posting::List(count, reader) => (count, reader),
        };
        let mut next = 0u32;
        for _ in 0..count {
            let number = next.checked_add(reader.varint_u32()?).filter(|number| *number < end);
            let number = number.ok_or_else(|| corrupt("number in a posting"))?;
            out.push(number);
            next = number + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_every_kind_come_back() {
        let lists: Vec<Vec<u32>> = vec![
            vec![0],
            vec![7],
            (0..1000).collect(),
            (0..400).map(|i| i * 2).collect(),
            vec![0, 1, 2, 999],
            (300..500).collect(),
        ];
        let mut writer = PostingsWriter::default();
        for number in 0..1000 {
            for (id, list) in lists.iter().enumerate() {
                if list.binary_search(&number).is_ok() {
                    writer.push(id as u32, number);
                }
            }
        }
        let mut section = b"before".to_vec();
        let offset = writer.finish(lists.len() as u32, 1000, &mut section);
        let table = Postings::open(&section, offset, lists.len() as u32).unwrap();
        for (id, list) in lists.iter().enumerate() {
            let count = table.count(id as u32).unwrap();
            assert_eq!(count.is_none(), list.len() == 1000);
            if let Some(count) = count {
                let mut out = Vec::new();
                table.append(id as u32, 1000, &mut out).unwrap();
                assert_eq!(&out, list);
                assert_eq!(count as usize, list.len());
                assert!(table.append(id as u32, *list.last().unwrap(), &mut out).is_err());
            }
        }
        assert!(table.get(lists.len() as u32).is_err());
    }
}
