//! What is sent: a finite, seeded set of samples, cut into one stream of requests per worker.
//!
//! ```text
//! Workload ──requests(share)──► Requests ──next──► plain bytes ──Packer──► body ──► server
//! tsbs, or a shape              one per worker     10,000 samples or lines
//! ```

mod labels;

pub use labels::LabelSet;

use crate::payload::Protocol;

/// A worker's part of a workload: worker `idx` of `count`.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Which worker, from 0.
    pub idx: u64,
    /// How many workers there are.
    pub count: u64,
}

/// How requests are cut.
#[derive(Clone, Copy, Debug)]
pub struct RequestFormat {
    /// What they speak.
    pub protocol: Protocol,
    /// Lines in a request of line protocol, rows in one of COPY.
    pub lines_max: usize,
    /// Series samples in a request of remote write or exposition text.
    pub samples_max: usize,
}

/// A finite set of samples that is the same for the same seed, whatever the number of workers.
pub trait Workload: Sync {
    /// Its name in reports.
    fn name(&self) -> String;
    /// How many series it has.
    fn series(&self) -> u64;
    /// How many samples it has.
    fn samples(&self) -> u64;
    /// How many series its first `samples` samples belong to.
    fn series_of(&self, samples: u64) -> u64 {
        // A workload that sends a sample of each series, then the next of each.
        samples.min(self.series())
    }
    /// Why it cannot be sent by that protocol, if so.
    fn unsupported(&self, _protocol: Protocol) -> Option<String> {
        None
    }
    /// The times of its first and its last sample.
    fn span_ns(&self) -> (i64, i64);
    /// The requests of one worker.
    fn requests(&self, share: Share, format: RequestFormat) -> Box<dyn Requests + '_>;
}

/// One worker's stream of requests.
pub trait Requests {
    /// Writes the next request to `plain` (emptied first) and returns its number of samples;
    /// `None` at the end.
    fn next(&mut self, plain: &mut Vec<u8>) -> Option<u64>;
}
