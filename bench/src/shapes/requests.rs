//! One worker's requests of a shape: every count-th run of consecutive points.

use super::{Point, Shape};
use crate::payload::{Protocol, exposition, influx, remote_write, remote_write_v2};
use crate::workload::{LabelSet, RequestFormat, Requests, Share};

/// The requests of one worker.
pub struct ShapeRequests<'a> {
    shape: &'a dyn Shape,
    share: Share,
    protocol: Protocol,
    points_max: u64,
    /// Which request of all workers' comes next.
    request: u64,
    labels: LabelSet,
    scratch: Vec<u8>,
    builder: remote_write_v2::RequestBuilder,
}

impl<'a> ShapeRequests<'a> {
    /// The requests of `share`.
    pub fn new(shape: &'a dyn Shape, share: Share, format: RequestFormat) -> ShapeRequests<'a> {
        assert!(share.idx < share.count, "{share:?}");
        let points_max = match format.protocol {
            Protocol::Influx => format.lines_max,
            _ => format.samples_max,
        };
        ShapeRequests {
            shape,
            share,
            protocol: format.protocol,
            points_max: points_max.max(1) as u64,
            request: share.idx,
            labels: LabelSet::default(),
            scratch: Vec::new(),
            builder: remote_write_v2::RequestBuilder::default(),
        }
    }

    fn put(&mut self, point: Point, plain: &mut Vec<u8>) {
        self.labels.clear();
        self.shape.labels(point.series, &mut self.labels);
        let timestamp_ms = point.timestamp_ns / 1_000_000;
        match self.protocol {
            Protocol::Influx => {
                influx::put_line(&self.labels, point.value, point.timestamp_ns, plain);
            }
            Protocol::RemoteWrite => remote_write::put_labels_series(
                &self.labels,
                point.value,
                timestamp_ms,
                &mut self.scratch,
                plain,
            ),
            Protocol::RemoteWriteV2 => self.builder.push(&self.labels, point.value, timestamp_ms),
            Protocol::Exposition => {
                exposition::put_line(&self.labels, point.value, timestamp_ms, plain);
            }
            Protocol::Copy => unreachable!("a shape says that it has no rows for COPY"),
        }
    }
}

impl Requests for ShapeRequests<'_> {
    fn next(&mut self, plain: &mut Vec<u8>) -> Option<u64> {
        plain.clear();
        let start = self.request * self.points_max;
        let end = self.shape.samples().min(start + self.points_max);
        if start >= end || self.protocol == Protocol::Copy {
            return None;
        }
        self.request += self.share.count;
        for n in start..end {
            self.put(self.shape.point(n), plain);
        }
        if self.protocol == Protocol::RemoteWriteV2 {
            self.builder.finish(plain);
        }
        Some(end - start)
    }
}
