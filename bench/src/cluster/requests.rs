//! One worker's requests: blocks of a few rows, in each object after object, in order of time.

use super::Scale;
use super::catalog::Catalog;
use super::labels::{Base, Pairs};
use super::objects::{Kind, Life};
use super::signal::Signal;
use crate::payload::remote_write;
use crate::random::mix;
use crate::workload::{LabelSet, RequestFormat, Requests, Share};
use rng::below;

/// Rows of a block: a request has so many samples of each of its series, as after a pause of the
/// network. It keeps the cost of labels from hiding that of samples.
const BLOCK_ROWS: i64 = 10;
/// What a scraper sends when a series has ended: a NaN with these bits.
const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// The requests of one worker.
pub struct ClusterRequests<'a> {
    scale: &'a Scale,
    catalog: &'a Catalog,
    share: Share,
    samples_max: u64,
    /// First row of the block.
    block: i64,
    kind: usize,
    /// The next object of the kind, and its next series.
    object: u64,
    spec: usize,
    /// Who is in the object's slot in each row of the block, from the row before it.
    lives: Vec<Option<Life>>,
    pairs: Pairs,
    labels: LabelSet,
    samples: Vec<(f64, i64)>,
    scratch: Vec<u8>,
}

impl<'a> ClusterRequests<'a> {
    /// The requests of `share`.
    pub fn new(
        scale: &'a Scale,
        catalog: &'a Catalog,
        share: Share,
        format: RequestFormat,
    ) -> ClusterRequests<'a> {
        ClusterRequests {
            scale,
            catalog,
            share,
            samples_max: format.samples_max.max(1) as u64,
            block: 0,
            kind: 0,
            object: share.idx,
            spec: 0,
            lives: Vec::new(),
            pairs: Pairs::default(),
            labels: LabelSet::default(),
            samples: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Moves to the next object that has series; false at the end of the data.
    fn find_object(&mut self) -> bool {
        while self.block < self.scale.rows() {
            let Some(kind) = Kind::ALL.get(self.kind) else {
                self.block += BLOCK_ROWS;
                self.kind = 0;
                self.object = self.share.idx;
                continue;
            };
            if self.object < kind.count(self.scale) {
                return true;
            }
            self.kind += 1;
            self.object = self.share.idx;
        }
        false
    }

    fn look_at_lives(&mut self, kind: Kind) {
        let end = self.scale.rows().min(self.block + BLOCK_ROWS);
        self.lives.clear();
        // There is nothing before the first row, so nothing ends in it.
        let before = (self.block > 0).then(|| kind.life(self.object, self.block - 1, self.scale));
        self.lives.push(before.flatten());
        self.lives.extend((self.block..end).map(|row| kind.life(self.object, row, self.scale)));
    }

    /// Appends the samples that a series' spec gives in the block: of one series, or of several
    /// when one inhabitant follows another.
    fn put_spec(&mut self, kind: Kind, plain: &mut Vec<u8>) -> u64 {
        let catalog = self.catalog;
        let spec = &catalog.specs(kind, self.object, self.scale)[self.spec];
        let generation = |life: &Option<Life>| match life {
            Some(life) => Some(life.generation),
            None => spec.outlives_outages().then_some(0),
        };
        let mut count = 0;
        let mut idx = 0;
        while idx < self.lives.len() {
            let Some(current) = generation(&self.lives[idx]) else {
                idx += 1;
                continue;
            };
            let run = self.lives[idx..].iter().take_while(|life| generation(life) == Some(current));
            let end = idx + run.count();
            let slot = (kind, self.object, current);
            let signal = Signal::new(spec.nature, self.spec, slot, self.scale);
            let offset_ms = offset_ms(spec.base, slot, self.scale);
            let time = |idx: usize| {
                let row = self.block + idx as i64 - 1;
                (self.scale.start_ns + row * self.scale.interval_ns) / 1_000_000 + offset_ms
            };
            self.samples.clear();
            for (position, life) in self.lives.iter().enumerate().take(end).skip(idx.max(1)) {
                let value = signal.at(self.block + position as i64 - 1, *life);
                self.samples.push((value, time(position)));
            }
            if end < self.lives.len() {
                self.samples.push((f64::from_bits(STALE_BITS), time(end)));
            }
            idx = end;
            if self.samples.is_empty() {
                continue;
            }
            self.pairs.fill(spec, slot, self.scale, &mut self.labels);
            remote_write::put_labels_samples(&self.labels, &self.samples, &mut self.scratch, plain);
            count += self.samples.len() as u64;
        }
        count
    }
}

impl Requests for ClusterRequests<'_> {
    fn next(&mut self, plain: &mut Vec<u8>) -> Option<u64> {
        plain.clear();
        let mut count = 0;
        while count < self.samples_max && self.find_object() {
            let kind = Kind::ALL[self.kind];
            if self.spec == 0 {
                self.look_at_lives(kind);
            }
            let spec_count = self.catalog.specs(kind, self.object, self.scale).len();
            while self.spec < spec_count && count < self.samples_max {
                count += self.put_spec(kind, plain);
                self.spec += 1;
            }
            if self.spec == spec_count {
                self.spec = 0;
                self.object += self.share.count;
            }
        }
        (count > 0).then_some(count)
    }
}

/// When within the interval a series' target is scraped: never on a whole second, so that no
/// sample lies on the edge of a window or on a step.
fn offset_ms(base: Base, slot: (Kind, u64, u64), scale: &Scale) -> i64 {
    let (kind, idx, generation) = slot;
    let target = match base {
        Base::NodeExporter => (1 << 40) + idx,
        Base::Kubelet => (2 << 40) + idx,
        Base::Container | Base::ContainerPod => {
            (2 << 40) + super::objects::node_of(idx, generation, scale)
        }
        Base::ApiServer | Base::CoreDns => ((3 + kind as u64) << 40) + idx,
        _ => 0,
    };
    let seconds = scale.interval_ns / 1_000_000_000;
    let bits = mix(target ^ scale.seed);
    below(bits, seconds as u64) as i64 * 1000 + 1 + below(mix(bits), 998) as i64
}
