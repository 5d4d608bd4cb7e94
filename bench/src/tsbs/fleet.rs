//! The hosts and their ten tags: a hash of seed and host chooses from the lists that a cloud has.

use crate::random::mix_pair;
use rng::below;

/// The tags in the order of a line.
pub const TAG_NAMES: [&str; 10] = [
    "hostname",
    "region",
    "datacenter",
    "rack",
    "os",
    "arch",
    "team",
    "service",
    "service_version",
    "service_environment",
];

/// The tags in the order of their names, as indices of [`TAG_NAMES`].
pub const SORTED_TAGS: [usize; 10] = [5, 2, 0, 4, 3, 1, 7, 9, 8, 6];

const REGIONS: [(&str, &[&str]); 9] = [
    ("us-east-1", &["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1e"]),
    ("us-west-1", &["us-west-1a", "us-west-1b"]),
    ("us-west-2", &["us-west-2a", "us-west-2b", "us-west-2c"]),
    ("eu-west-1", &["eu-west-1a", "eu-west-1b", "eu-west-1c"]),
    ("eu-central-1", &["eu-central-1a", "eu-central-1b"]),
    ("ap-southeast-1", &["ap-southeast-1a", "ap-southeast-1b"]),
    ("ap-southeast-2", &["ap-southeast-2a", "ap-southeast-2b"]),
    ("ap-northeast-1", &["ap-northeast-1a", "ap-northeast-1c"]),
    ("sa-east-1", &["sa-east-1a", "sa-east-1b", "sa-east-1c"]),
];
const OPERATING_SYSTEMS: [&str; 3] = ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"];
const ARCHITECTURES: [&str; 2] = ["x64", "x86"];
const TEAMS: [&str; 4] = ["SF", "NYC", "LON", "CHI"];
const ENVIRONMENTS: [&str; 3] = ["production", "staging", "test"];
const RACKS: u64 = 100;
const SERVICES: u64 = 20;
const VERSIONS: u64 = 2;

/// A string that hosts share, as its place in [`Fleet::vocabulary`].
type Word = u16;

/// All hosts of a data set. Shared strings are kept once: a host costs 18 bytes.
pub struct Fleet {
    vocabulary: Vec<String>,
    /// Per host the words of all tags but the host's name, in the order of [`TAG_NAMES`].
    hosts: Vec<[Word; 9]>,
}

impl Fleet {
    /// Chooses the tags of `hosts` hosts.
    pub fn new(hosts: u32, seed: u64) -> Fleet {
        let mut vocabulary = Vocabulary::default();
        let hosts = (0..hosts).map(|host| choose_tags(host, seed, &mut vocabulary)).collect();
        Fleet { vocabulary: vocabulary.words, hosts }
    }

    /// How many hosts there are.
    pub fn len(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// The shared strings.
    pub fn vocabulary(&self) -> &[String] {
        &self.vocabulary
    }

    /// The words of a host's tags but its name, in the order of [`TAG_NAMES`].
    pub fn words(&self, host: u32) -> &[Word; 9] {
        &self.hosts[host as usize]
    }

    /// A host's tags, in the order of [`TAG_NAMES`].
    pub fn tags(&self, host: u32) -> [(&'static str, String); 10] {
        let words = self.words(host);
        std::array::from_fn(|tag| match tag {
            0 => (TAG_NAMES[0], host_name(host)),
            _ => (TAG_NAMES[tag], self.vocabulary[words[tag - 1] as usize].clone()),
        })
    }
}

/// `host_0` and so on.
pub fn host_name(host: u32) -> String {
    format!("host_{host}")
}

#[derive(Default)]
struct Vocabulary {
    words: Vec<String>,
}

impl Vocabulary {
    /// The lists have some 160 strings together, and a data set is chosen once: a scan will do.
    fn word(&mut self, text: &str) -> Word {
        let idx = self.words.iter().position(|word| word == text).unwrap_or_else(|| {
            self.words.push(text.to_string());
            self.words.len() - 1
        });
        idx as Word
    }
}

fn choose_tags(host: u32, seed: u64, vocabulary: &mut Vocabulary) -> [Word; 9] {
    let draw = |tag: u64, bound: usize| {
        below(mix_pair(seed ^ tag << 56, u64::from(host)), bound as u64) as usize
    };
    let (region, datacenters) = REGIONS[draw(1, REGIONS.len())];
    let number = |tag, bound: u64| draw(tag, bound as usize).to_string();
    [
        vocabulary.word(region),
        vocabulary.word(datacenters[draw(2, datacenters.len())]),
        vocabulary.word(&number(3, RACKS)),
        vocabulary.word(OPERATING_SYSTEMS[draw(4, OPERATING_SYSTEMS.len())]),
        vocabulary.word(ARCHITECTURES[draw(5, ARCHITECTURES.len())]),
        vocabulary.word(TEAMS[draw(6, TEAMS.len())]),
        vocabulary.word(&number(7, SERVICES)),
        vocabulary.word(&number(8, VERSIONS)),
        vocabulary.word(ENVIRONMENTS[draw(9, ENVIRONMENTS.len())]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn tags_are_seeded_and_cover_their_lists() {
        let fleet = Fleet::new(5000, 1);
        assert_eq!(fleet.tags(7), Fleet::new(8, 1).tags(7), "a host does not depend on the scale");
        assert_ne!(fleet.tags(7), Fleet::new(8, 2).tags(7));
        let distinct = |tag: usize| {
            (0..fleet.len()).map(|host| fleet.tags(host)[tag].1.clone()).collect::<BTreeSet<_>>()
        };
        let counts = (0..10).map(|tag| distinct(tag).len()).collect::<Vec<_>>();
        assert_eq!(counts, [5000, 9, 23, 100, 3, 2, 4, 20, 2, 3]);
        for host in 0..fleet.len() {
            let tags = fleet.tags(host);
            assert!(tags[2].1.starts_with(&tags[1].1), "{tags:?}: datacenter of another region");
        }
    }

    #[test]
    fn sorted_tags_are_sorted() {
        let names = SORTED_TAGS.map(|tag| TAG_NAMES[tag]);
        assert!(names.is_sorted() && names[0] > "__name__", "{names:?}");
    }
}
