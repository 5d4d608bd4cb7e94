//! Seeded random label sets and matchers, and the naive index that all answers are compared with.

use crate::cardinality::{Cardinality, CardinalityQuestion, Counted};
use crate::entity::{EntityId, NewEntity};
use crate::index::Index;
use crate::matcher::CompiledMatchers;
use crate::subset::BlockMatch;
use model::{Labels, LabelsBuilder, METRIC_NAME, MatchOp, Matcher};
use rng::Random;
use roaring::RoaringBitmap;
use std::collections::{BTreeMap, BTreeSet};

/// An entity that owns its strings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnedEntity {
    pub names: Vec<String>,
    pub tags: BTreeMap<String, String>,
}

impl OwnedEntity {
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&NewEntity<'_>) -> T) -> T {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let tags: Vec<(&str, &str)> =
            self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        use_it(&NewEntity::new(&names, &tags))
    }

    pub(crate) fn labels(&self, column: usize) -> Labels {
        let mut builder = LabelsBuilder::new();
        builder.push(METRIC_NAME, &self.names[column]);
        self.tags.iter().for_each(|(name, value)| builder.push(name, value));
        builder.finish()
    }
}

const TAG_NAMES: [&str; 8] = ["a", "b", "env", "host", "i", "n", "ünï", "_z"];
const METRICS: [&str; 7] = ["", "cpu", "cpu_user", "cpu_system", "mem", "up", "ключ"];

/// A label set from few enough strings that matchers hit and miss.
pub(crate) fn random_entity(prng: &mut Random) -> OwnedEntity {
    let names = match prng.index(4) {
        0 => ["cpu_user", "cpu_system", "cpu_idle"].map(String::from).to_vec(),
        1 if prng.index(4) == 0 => {
            let first = prng.index(METRICS.len());
            let count = 1 + prng.index(METRICS.len() - 1);
            (0..count).map(|i| METRICS[(first + i) % METRICS.len()].to_string()).collect()
        }
        _ => vec![prng.pick(&METRICS).to_string()],
    };
    let mut tags = BTreeMap::new();
    let is_common = prng.index(2) == 0;
    for name in if is_common { &TAG_NAMES[3..6] } else { &TAG_NAMES[..] } {
        if is_common || prng.index(3) == 0 {
            tags.insert(name.to_string(), random_value(prng, name));
        }
    }
    OwnedEntity { names, tags }
}

fn random_value(prng: &mut Random, name: &str) -> String {
    match name {
        "host" => format!("host_{}", prng.index(3000)),
        "i" => prng.index(400).to_string(),
        "n" => format!("{}{}", prng.pick(&["", "0_", "1_", "2_"]), prng.index(10)),
        "env" => prng.pick(&["prod", "staging", "dev", "prod\nuction"]).to_string(),
        "ünï" => prng.pick(&["é", "ée", "日本", "日本語", "\u{10ffff}", "a"]).to_string(),
        _ => prng.pick(&["1", "11", "12", "2", "foo", "bar", "foobar", "Foo"]).to_string(),
    }
}

/// A matcher on a label that exists, or sometimes on one that does not.
pub(crate) fn random_matcher(prng: &mut Random) -> Matcher {
    let name = match prng.index(12) {
        0 | 1 => METRIC_NAME,
        2 => "missing",
        _ => prng.pick(&TAG_NAMES),
    };
    let op = *prng.pick(&[MatchOp::Equal, MatchOp::NotEqual, MatchOp::Regex, MatchOp::NotRegex]);
    let value = match op {
        MatchOp::Equal | MatchOp::NotEqual => random_string(prng, name),
        _ => random_regex(prng, name),
    };
    Matcher::new(name, op, value)
}

fn random_string(prng: &mut Random, name: &str) -> String {
    match name {
        _ if prng.index(6) == 0 => String::new(),
        _ if prng.index(10) == 0 => "nowhere".to_string(),
        METRIC_NAME => prng.pick(&METRICS).to_string(),
        _ => random_value(prng, name),
    }
}

fn random_regex(prng: &mut Random, name: &str) -> String {
    const FIXED: [&str; 30] = [
        "",
        ".*",
        ".+",
        "1.+",
        "2.*",
        "1.*|2.+",
        "foo|bar",
        "foo|",
        "(foo|bar).*",
        ".*bar",
        ".*o.*",
        "[12]",
        "[0-9]+",
        r"\d+",
        r"host_\d",
        "host_1.*",
        "host_(1|2|3)[0-9]+",
        "cpu_(user|idle)",
        "cpu.*",
        "c?pu.*m",
        "(?i)foo",
        "[^f]*",
        "é?",
        "日本.?",
        ".",
        "..",
        "prod.uction",
        "[a-z]+",
        r"\w+",
        "host_2.*5|host_7",
    ];
    match prng.index(4) {
        0 => {
            let count = 1 + prng.index(5);
            let parts: Vec<String> = (0..count).map(|_| random_string(prng, name)).collect();
            parts.join("|")
        }
        _ => prng.pick(&FIXED).to_string(),
    }
}

/// What the index should answer.
#[derive(Default)]
pub(crate) struct NaiveIndex {
    pub entities: BTreeMap<EntityId, OwnedEntity>,
    pub ids: BTreeMap<OwnedEntity, EntityId>,
}

impl NaiveIndex {
    pub(crate) fn insert(&mut self, id: EntityId, entity: OwnedEntity) {
        assert!(self.ids.insert(entity.clone(), id).is_none(), "new");
        assert!(self.entities.insert(id, entity).is_none(), "an id of its own");
    }

    pub(crate) fn remove(&mut self, id: EntityId) {
        let entity = self.entities.remove(&id).expect("an entity");
        self.ids.remove(&entity);
    }

    /// Checks everything that the index says about the series that matchers select.
    #[track_caller]
    pub(crate) fn check_search(&self, index: &Index, matchers: &[Matcher]) {
        let compiled = CompiledMatchers::compile(matchers).unwrap();
        let found = index.search(&compiled).unwrap();
        check_form(&found);
        let naive_matchers: Vec<NaiveMatcher<'_>> = matchers.iter().map(naive_matcher).collect();
        let mut wanted = BTreeSet::new();
        for entity in self.entities.values() {
            for column in 0..entity.names.len() {
                let labels = entity.labels(column);
                if naive_match(&naive_matchers, &labels) {
                    assert!(compiled.matches(&labels), "{matchers:?} on {labels:?}");
                    assert!(wanted.insert((self.ids[entity], column as u16, labels)));
                }
            }
        }
        let got = listed(index, &found);
        self.check_among(index, matchers, &found);
        assert!(got == wanted, "{matchers:?}\n{:?}", first_difference(&got, &wanted));
        let names: BTreeSet<String> = wanted
            .iter()
            .flat_map(|(_, _, labels)| labels.iter().map(|(name, _)| name.to_string()))
            .collect();
        assert_eq!(index.label_names(&found).unwrap(), Vec::from_iter(names), "{matchers:?}");
        for name in [METRIC_NAME, "host", "i", "ünï", "missing"] {
            let values: BTreeSet<String> =
                wanted.iter().filter_map(|(_, _, l)| l.get(name).map(str::to_string)).collect();
            let compiled = CompiledMatchers::compile(matchers).unwrap().and_has(name);
            let having = index.search_among(&compiled, None).unwrap();
            for found in [&found, &having] {
                let got = index.label_values(name, found).unwrap();
                assert!(got.iter().eq(&values), "{matchers:?} {name}");
            }
        }
    }

    /// Checks that a search among some series finds what a search finds, and leaves out none of
    /// these.
    #[track_caller]
    fn check_among(&self, index: &Index, matchers: &[Matcher], found: &[BlockMatch]) {
        let compiled = CompiledMatchers::compile(matchers).unwrap();
        let mut unsorted = index.search_among(&compiled, None).unwrap();
        unsorted.sort_by_key(|one| one.block.entity_start);
        assert!(unsorted == found, "{matchers:?}");
        let ordinals: Vec<u32> = found.iter().flat_map(BlockMatch::ordinals).collect();
        for step in [7, 100, 5000] {
            let among: RoaringBitmap = ordinals.iter().step_by(step).collect();
            let some = index.search_among(&compiled, Some(&among)).unwrap();
            let mut of_some = RoaringBitmap::new();
            for one in some {
                let at =
                    found.binary_search_by_key(&one.block.entity_start, |m| m.block.entity_start);
                assert!(found[at.expect("a match")] == one, "{matchers:?}");
                of_some.extend(one.ordinals());
            }
            assert!(among.is_subset(&of_some), "{matchers:?}");
        }
    }

    /// Checks the counts of the series that matchers select.
    #[track_caller]
    pub(crate) fn check_cardinality(&self, index: &Index, matchers: &[Matcher]) {
        let compiled = CompiledMatchers::compile(matchers).unwrap();
        let found = index.search(&compiled).unwrap();
        let mut pairs: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut series_count = 0;
        for entity in self.entities.values() {
            let all = (0..entity.names.len()).map(|column| entity.labels(column));
            for labels in all.filter(|labels| compiled.matches(labels)) {
                series_count += 1;
                for (name, value) in labels.iter() {
                    *pairs.entry((name.to_string(), value.to_string())).or_default() += 1;
                }
            }
        }
        let mut series: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for ((name, _), count) in &pairs {
            let (labels, values) = series.entry(name).or_default();
            (*labels, *values) = (*labels + count, *values + 1);
        }
        for top in [0, 3, 1000] {
            let of = |label: &str| {
                let own = pairs.iter().filter(|((name, _), _)| name == label);
                top_of(own.map(|((_, value), count)| (value.clone(), *count)), top)
            };
            let wanted = Cardinality {
                series_count,
                label_count: series.len() as u64,
                pair_count: pairs.len() as u64,
                series_label_count: pairs.values().sum(),
                metrics: of(METRIC_NAME),
                labels: top_of(series.iter().map(|(n, c)| (n.to_string(), c.0)), top),
                label_values: top_of(series.iter().map(|(n, c)| (n.to_string(), c.1)), top),
                pairs: top_of(pairs.iter().map(|((n, v), c)| (format!("{n}={v}"), *c)), top),
                focus_values: of("n"),
                ..Cardinality::default()
            };
            let focus = Some("n");
            let question = CardinalityQuestion { top, focus, bytes: None };
            assert_eq!(index.cardinality(&found, &question).unwrap(), wanted);
            // Seven bytes a series.
            let bytes = |m: &BlockMatch| vec![7 * m.slots.len() as u64; m.columns.len()];
            let question = CardinalityQuestion { bytes: Some(&bytes), ..question };
            let times = |list: &[Counted]| {
                list.iter().map(|(text, count)| (text.clone(), 7 * count)).collect::<Vec<_>>()
            };
            let wanted = Cardinality {
                focus_bytes: times(&wanted.focus_values),
                metric_bytes: times(&wanted.metrics),
                pair_bytes: times(&wanted.pairs),
                ..wanted
            };
            assert_eq!(index.cardinality(&found, &question).unwrap(), wanted);
        }
    }

    /// Checks who has which label, and the search for those with it and without it.
    #[track_caller]
    pub(crate) fn check_tags(&self, index: &Index) {
        for name in TAG_NAMES.iter().copied().chain(["missing"]) {
            let has = |entity: &&OwnedEntity| entity.tags.contains_key(name);
            let all: usize = self.entities.values().map(|entity| entity.names.len()).sum();
            let with: usize = self.entities.values().filter(has).map(|e| e.names.len()).sum();
            assert_eq!(index.series_with_tag(name).unwrap(), with as u64, "{name}");
            assert!(with == 0 || index.knows_tag(name).unwrap());
            let everything = || CompiledMatchers::compile(&[]).unwrap();
            for (matchers, wanted) in
                [(everything().and_has(name), with), (everything().and_lacks(name), all - with)]
            {
                let found = index.search(&matchers).unwrap();
                let count: u64 = found.iter().map(BlockMatch::series_count).sum();
                assert_eq!(count, wanted as u64, "{name}");
            }
        }
        assert!(!index.knows_tag("missing").unwrap());
    }

    /// Checks that every entity is found, and its series, and that others are not.
    #[track_caller]
    pub(crate) fn check_find(&self, index: &Index) {
        for (entity, id) in &self.ids {
            assert_eq!(entity.with(|e| index.find_entity(e).unwrap()), Some(*id));
            let block = index.block_of(*id).unwrap().expect("a block");
            assert!(*id - block.entity_start < block.len);
            assert_eq!(block.columns as usize, entity.names.len());
            let tags: Vec<(&str, &str)> =
                entity.tags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            for (column, name) in entity.names.iter().enumerate() {
                let ordinal = block.ordinal(column as u16, block.slot(*id));
                assert_eq!(index.block_of_ordinal(ordinal).unwrap(), Some(block));
                let (found, at) = find_series(index, name, &tags).expect("a series");
                assert_eq!(self.entities[&found].labels(usize::from(at)), entity.labels(column));
            }
            let mut builder = LabelsBuilder::new();
            index.labels(&block, 0, block.slot(*id), &mut builder).unwrap();
            assert_eq!(builder.finish(), entity.labels(0));
            let mut other = entity.clone();
            other.names.push("one more".to_string());
            assert_eq!(other.with(|e| index.find_entity(e).unwrap()), None);
            assert_eq!(find_series(index, "one more", &tags), None);
            let mut other = entity.clone();
            other.tags.insert("a".to_string(), "no such value".to_string());
            assert_eq!(other.with(|e| index.find_entity(e).unwrap()), None);
        }
    }
}

/// The series of this name and these tags, alone or as one column of an entity.
fn find_series(index: &Index, name: &str, tags: &[(&str, &str)]) -> Option<(EntityId, u16)> {
    let names = [name];
    let entity = NewEntity::new(&names, tags);
    let alone = index.find_entity(&entity).unwrap().map(|entity| (entity, 0));
    alone.or_else(|| index.find_column(&entity).unwrap())
}

/// A matcher with its regular expression as plainly as can be.
type NaiveMatcher<'a> = (&'a Matcher, Option<regex::Regex>);

/// The regular expressions of these tests mean the same to the `regex` crate, but for `\d`, `\w`.
fn naive_matcher(matcher: &Matcher) -> NaiveMatcher<'_> {
    let is_regex = matches!(matcher.op, MatchOp::Regex | MatchOp::NotRegex);
    let ascii = matcher.value.replace(r"\d", "[0-9]").replace(r"\w", "[0-9A-Za-z_]");
    (matcher, is_regex.then(|| regex::Regex::new(&format!("^(?s:{ascii})$")).unwrap()))
}

fn naive_match(matchers: &[NaiveMatcher<'_>], labels: &Labels) -> bool {
    matchers.iter().all(|(matcher, regex)| {
        let value = labels.get(&matcher.name).unwrap_or("");
        let is_match = match regex {
            Some(regex) => regex.is_match(value),
            None => value == matcher.value,
        };
        is_match == matches!(matcher.op, MatchOp::Equal | MatchOp::Regex)
    })
}

/// Blocks increase, and nothing is empty.
#[track_caller]
fn check_form(found: &[BlockMatch]) {
    assert!(found.is_sorted_by(|a, b| a.block.entity_start < b.block.entity_start));
    for one in found {
        assert!(!one.columns.is_empty() && !one.slots.is_empty());
        assert!(one.slots.iter().all(|slot| u32::from(slot) < one.block.len));
        assert!(one.columns.iter().all(|column| u32::from(column) < one.block.columns));
        assert_eq!(one.ordinals().count() as u64, one.series_count());
    }
}

fn listed(index: &Index, found: &[BlockMatch]) -> BTreeSet<(EntityId, u16, Labels)> {
    let mut out = BTreeSet::new();
    let mut reader = index.label_reader();
    let wanted = [METRIC_NAME, "host"];
    let mut partial_reader = index.label_reader_of(&wanted);
    let mut builder = LabelsBuilder::new();
    for one in found {
        for slot in &one.slots {
            for column in &one.columns {
                builder.clear();
                reader.labels(&one.block, column, slot, &mut builder).unwrap();
                let labels = builder.finish();
                builder.clear();
                reader.match_labels(one, column, slot, &mut builder).unwrap();
                assert_eq!(builder.finish(), labels);
                partial_reader.labels(&one.block, column, slot, &mut builder).unwrap();
                let partial = builder.finish();
                for name in wanted {
                    assert_eq!(partial.get(name), labels.get(name), "a wanted label");
                }
                assert!(out.insert((one.block.entity(slot), column, labels)), "once");
            }
        }
    }
    out
}

fn top_of(list: impl Iterator<Item = Counted>, top: usize) -> Vec<Counted> {
    let mut list: Vec<Counted> = list.collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    list.truncate(top);
    list
}

fn first_difference<T: Ord + Clone>(got: &BTreeSet<T>, wanted: &BTreeSet<T>) -> (Vec<T>, Vec<T>) {
    let extra = got.difference(wanted).take(3).cloned().collect();
    let missing = wanted.difference(got).take(3).cloned().collect();
    (extra, missing)
}
