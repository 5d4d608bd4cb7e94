//! What a block says of itself in `meta.json`, and what Thanos and Mimir add to that.

use anyhow::Context as _;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Labels that Mimir keeps for itself, which no series shows.
const OF_MIMIR: [&str; 4] =
    ["__compactor_shard_id__", "__ingester_id__", "__org_id__", "__shard_id__"];

/// `meta.json`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Milliseconds of its first instant.
    pub min_time: i64,
    /// Milliseconds of its end, which is not in it.
    pub max_time: i64,
    /// What it has.
    #[serde(default)]
    pub stats: Stats,
    /// What it was made of.
    #[serde(default)]
    pub compaction: Compaction,
    /// What Thanos adds.
    #[serde(default)]
    pub thanos: Thanos,
}

/// What a block has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stats {
    /// Samples; those of which one was made, in a downsampled block.
    pub num_samples: u64,
    /// Series.
    pub num_series: u64,
}

/// What a block was made of.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Compaction {
    /// Names of the blocks that came first, whose samples are in it.
    pub sources: Vec<String>,
    /// The blocks that it was joined of.
    pub parents: Vec<Parent>,
}

/// A block that another was joined of.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Parent {
    /// Its name.
    #[serde(default)]
    pub ulid: String,
}

/// What Thanos adds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Thanos {
    /// Labels that tell the series of one Prometheus from those of others.
    pub labels: BTreeMap<String, String>,
    /// How coarse it is.
    pub downsample: Downsample,
    /// Its files, in later versions.
    pub files: Vec<File>,
}

/// How coarse a block is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Downsample {
    /// Milliseconds between two samples; 0 where it has them as they came.
    pub resolution: i64,
}

/// A file of a block.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct File {
    /// Its name within the block.
    pub rel_path: String,
    /// Bytes; nothing for `meta.json` itself.
    pub size_bytes: u64,
}

impl Meta {
    /// What the file says.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &[u8]) -> anyhow::Result<Meta> {
        serde_json::from_slice(text).context("meta.json")
    }

    /// The labels that series of the block get.
    pub fn shown_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.thanos.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, _)| !OF_MIMIR.contains(name))
    }

    /// Milliseconds between two samples; 0 where it has them as they came.
    pub fn resolution(&self) -> i64 {
        self.thanos.downsample.resolution
    }
}
