//! What fuzzers feed with arbitrary bytes; each function panics when something that must hold
//! does not.

use crate::entity::NewEntity;
use crate::format::Checks;
use crate::jobs::freeze_bytes;
use crate::matcher::{CompiledMatchers, pattern::Pattern};
use crate::memory::MemoryIndex;
use crate::segment::Segment;
use crate::segment::labels::LabelCache;
use crate::segment::piece::Piece;
use crate::segment::writer::write;
use model::{LabelsBuilder, MatchOp, Matcher};
use std::sync::OnceLock;

/// A good segment of a few hundred entities of several groups.
fn good_segment() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let mut memory = MemoryIndex::new(0, 0);
        let mut log = Vec::new();
        for number in 0..400 {
            let host = format!("host_{number}");
            let rack = (number % 7).to_string();
            let names: &[&str] = match number % 3 {
                0 => &["cpu_user", "cpu_system"],
                1 => &["up"],
                _ => &[""],
            };
            let tags = [("host", host.as_str()), ("rack", rack.as_str()), ("zone", "a")];
            let tags = &tags[..2 + number % 2];
            memory.register(&NewEntity::new(names, tags), &mut log).expect("room");
        }
        freeze_bytes(&memory).expect("a segment")
    })
}

/// Takes the bytes for a segment.
pub fn fuzz_segment(data: &[u8]) {
    use_segment(data.to_vec());
}

/// Changes a good segment as the bytes say, four at a time: place, and what to write there.
/// Checksums are skipped, so that what lies behind them is reached.
pub fn fuzz_mutated_segment(data: &[u8]) {
    let mut bytes = good_segment().to_vec();
    for change in data.as_chunks::<4>().0.iter().take(64) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
        let len = bytes.len();
        bytes[place % len] = change[3];
    }
    use_segment(bytes);
}

/// Asks everything that there is to ask.
fn use_segment(bytes: Vec<u8>) {
    let size = bytes.len();
    let Ok(segment) = Segment::open_with("fuzz", vfs::Bytes::from_vec(bytes), Checks::Skipped)
    else {
        return;
    };
    for matchers in matchers() {
        let few = roaring::RoaringBitmap::from_iter([0, 1, 7, 70_000, u32::MAX]);
        let _ = segment.search_among(&matchers, Some(&few));
        let Ok(found) = segment.search(&matchers) else { continue };
        assert!(found.len() <= size, "no more blocks than bytes");
        let (mut cache, mut labels) = (LabelCache::default(), LabelsBuilder::new());
        for one in found.iter().take(50) {
            for (column, slot) in one.columns.iter().zip(&one.slots) {
                labels.clear();
                let _ = segment.labels_cached(&mut cache, &one.block, column, slot, &mut labels);
            }
            let _ = segment.block_of(one.block.entity_start);
            let _ = segment.block_of_ordinal(one.block.series_start);
        }
        let _ = segment.label_names(&found);
        let _ = segment.label_values("host", &found);
        let _ = segment.label_values("__name__", &found);
        let part = crate::cardinality::CountedPart { piece: &segment, matches: &found };
        let bytes = |found: &crate::BlockMatch| vec![7; found.columns.len()];
        let question =
            crate::CardinalityQuestion { top: 3, focus: Some("host"), bytes: Some(&bytes) };
        let _ = crate::cardinality::count(&[part], &question);
        let _ = segment.label_sizes();
    }
    let tags = [("host", "host_3"), ("rack", "3"), ("zone", "a")];
    let _ = segment.find_entity(&NewEntity::new(&["cpu_user", "cpu_system"], &tags));
    let _ = segment.find_column(&NewEntity::new(&["cpu_system"], &tags));
    let _ = segment.verify_content();
    let is_dead = |entity: u32| entity.is_multiple_of(3);
    for is_dead in [None, Some(&is_dead as &dyn Fn(u32) -> bool)] {
        let _ = write(&[&segment as &dyn Piece], is_dead);
    }
}

fn matchers() -> Vec<CompiledMatchers> {
    let lists = [
        vec![],
        vec![Matcher::equal("host", "host_77")],
        vec![Matcher::new("host", MatchOp::Regex, "host_1.+|host_2.*")],
        vec![Matcher::new("host", MatchOp::Regex, ".*3"), Matcher::equal("__name__", "up")],
        vec![Matcher::new("zone", MatchOp::NotEqual, "a"), Matcher::equal("rack", "3")],
        vec![Matcher::new("__name__", MatchOp::NotRegex, "cpu_u.*")],
    ];
    lists.iter().map(|list| CompiledMatchers::compile(list).expect("good matchers")).collect()
}

/// Takes the bytes for registrations. What was applied once is skipped when applied again.
pub fn fuzz_replay(data: &[u8]) {
    let mut memory = MemoryIndex::new(2, 5);
    let is_whole = memory.replay(data).is_ok();
    let counts = |memory: &MemoryIndex| {
        (memory.entity_count(), memory.next_entity(), memory.next_series(), memory.blocks().count())
    };
    let before = counts(&memory);
    assert_eq!(memory.replay(data).is_ok(), is_whole, "the same end");
    assert_eq!(counts(&memory), before, "nothing new");
    let mut labels = LabelsBuilder::new();
    let everything = CompiledMatchers::compile(&[]).expect("none");
    for block in memory.search(&everything).expect("no deadline") {
        for (column, slot) in block.columns.iter().zip(&block.slots) {
            memory.labels(&block.block, column, slot, &mut labels).expect("memory");
        }
    }
    let bytes = freeze_bytes(&memory).expect("a segment");
    let segment = Segment::open("fuzz", vfs::Bytes::from_vec(bytes)).expect("just written");
    segment.verify().expect("just written");
    assert_eq!(segment.entity_count(), memory.entity_count());
}

/// Takes the bytes for a regular expression, a zero byte, and a string to match: short cuts must
/// mean what the automaton means.
pub fn fuzz_pattern(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (expression, value) = text.split_once('\0').unwrap_or((text, "host_1"));
    let Ok(pattern) = Pattern::from_regex(expression) else { return };
    let limits = re2::Limits::new(10 << 20);
    let parsed = re2::Expression::parse(expression, true).expect("a pattern was made of it");
    let Ok(regexp) = parsed.compile_anchored(limits) else { return };
    assert_eq!(pattern.matches(value), regexp.is_match(value), "{expression:?} on {value:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;

    fn random_bytes(prng: &mut Random, len: usize) -> Vec<u8> {
        (0..len).map(|_| prng.next() as u8).collect()
    }

    #[test]
    fn segments_of_rotten_bytes_give_errors() {
        let mut prng = Random::seeded(5);
        use_segment(good_segment().to_vec());
        for _ in 0..300 {
            let len = prng.index(2000);
            fuzz_segment(&random_bytes(&mut prng, len));
            let changes = 1 + prng.index(20);
            fuzz_mutated_segment(&random_bytes(&mut prng, 4 * changes));
            let mut cut = good_segment().to_vec();
            cut.truncate(prng.index(cut.len()));
            fuzz_segment(&cut);
        }
        // The records that everything hangs on are all near the end.
        for _ in 0..2000 {
            let mut bytes = good_segment().to_vec();
            for _ in 0..1 + prng.index(4) {
                let at = bytes.len() - 1 - prng.index(bytes.len().min(400));
                bytes[at] = *prng.pick(&[0, 1, 0x7f, 0x80, 0xff]);
            }
            fuzz_segment(&bytes);
        }
    }

    /// A released version opens for ever: new bytes for the same labels need a new version.
    #[test]
    fn the_format_does_not_change() {
        let bytes = good_segment();
        assert_eq!((bytes.len(), codec::crc32(bytes)), (10_124, 72_806_433));
    }

    #[test]
    fn every_flipped_bit_is_found_by_verify() {
        let mut bytes = good_segment().to_vec();
        let mut prng = Random::seeded(6);
        for _ in 0..500 {
            let (at, bit) = (prng.index(bytes.len()), prng.index(8));
            bytes[at] ^= 1 << bit;
            let opened = Segment::open("fuzz", vfs::Bytes::from_vec(bytes.clone()));
            assert!(opened.and_then(|segment| segment.verify()).is_err(), "byte {at}");
            bytes[at] ^= 1 << bit;
        }
    }

    #[test]
    fn registrations_of_rotten_bytes_give_errors() {
        let mut prng = Random::seeded(7);
        let mut memory = MemoryIndex::new(2, 5);
        let mut log = Vec::new();
        for number in 0..60 {
            let host = (number * number % 61).to_string();
            let tags: &[(&str, &str)] = &[("host", &host), ("zone", "a")];
            let names: &[&str] = if number % 3 == 0 { &["a", "b"] } else { &["c"] };
            let entity = NewEntity::new(names, &tags[..1 + number % 2]);
            if memory.find_entity(&entity).is_none() {
                memory.register(&entity, &mut log).unwrap();
            }
        }
        fuzz_replay(&log);
        for _ in 0..1500 {
            let mut bytes = log.clone();
            for _ in 0..1 + prng.index(3) {
                let at = prng.index(bytes.len());
                bytes[at] = prng.next() as u8;
            }
            bytes.truncate(prng.index(bytes.len() * 2));
            fuzz_replay(&bytes);
            let len = prng.index(60);
            fuzz_replay(&random_bytes(&mut prng, len));
        }
    }

    #[test]
    fn patterns_mean_what_automata_mean() {
        let mut prng = Random::seeded(8);
        let pieces = [
            "a", "b", "ab", ".", ".*", ".+", "|", "(", ")", "[ab]", "[^a]", "?", "*", "+", "{2}",
            "{", "é", "(?i)", "\\d", "\\b", "^", "$", "1", "\0", "a", "b", "1", "é",
        ];
        for _ in 0..20_000 {
            let count = prng.index(8);
            let mut text: String = (0..count).map(|_| *prng.pick(&pieces)).collect();
            text.push('\0');
            (0..prng.index(4)).for_each(|_| text.push(*prng.pick(&['a', 'b', '1', 'é', '\n'])));
            fuzz_pattern(text.as_bytes());
        }
    }
}
