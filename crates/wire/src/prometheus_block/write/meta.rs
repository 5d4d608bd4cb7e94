//! What a block says of itself, and its name.

/// Base 32 without letters that look like digits, as ULIDs have it.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The content of `meta.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The block's name.
    pub ulid: String,
    /// Milliseconds of the first sample.
    pub min_time: i64,
    /// Milliseconds behind the last sample.
    pub max_time: i64,
    /// Samples, histograms among them.
    pub samples: u64,
    /// Series.
    pub series: u64,
    /// Chunks.
    pub chunks: u64,
}

/// The name of a block that is made at that time: of two made in one millisecond the bits differ.
pub fn ulid(millis: i64, random: u128) -> String {
    let bits = u128::from(millis as u64 & 0xffff_ffff_ffff) << 80 | random & (u128::MAX >> 48);
    let letter = |at: u32| LETTERS.get((bits >> (125 - 5 * at) & 31) as usize).copied();
    (0..26).filter_map(letter).map(char::from).collect()
}

impl Meta {
    /// As the file has it.
    pub fn to_json(&self) -> String {
        let Meta { ulid, min_time, max_time, samples, series, chunks } = self;
        format!(
            "{{\n\t\"ulid\": \"{ulid}\",\n\t\"minTime\": {min_time},\n\t\"maxTime\": {max_time},\n\t\
             \"stats\": {{\n\t\t\"numSamples\": {samples},\n\t\t\"numSeries\": {series},\n\t\t\
             \"numChunks\": {chunks}\n\t}},\n\t\"compaction\": {{\n\t\t\"level\": 1,\n\t\t\
             \"sources\": [\n\t\t\t\"{ulid}\"\n\t\t]\n\t}},\n\t\"version\": 1\n}}\n"
        )
    }
}
