//! Where history is copied to: requests of Prometheus' remote write to a running Quipu.

use super::series::Series;
use crate::commands::client::{Asked, Client};
use anyhow::bail;
use bytes::Bytes;
use hyper::{Method, StatusCode};
use wire::remote_write::encode::RequestV1;

/// Bytes of a request before it is compressed, about.
const REQUEST_SIZE: usize = 4 << 20;
/// Samples of a series in one request, about.
const SAMPLES_AT_ONCE: usize = 64 << 10;

/// A request that is ready to be sent.
pub struct Request {
    /// Compressed.
    pub body: Vec<u8>,
    /// How many samples it has.
    pub samples: u64,
}

/// Series become requests.
#[derive(Default)]
pub struct Packer {
    request: RequestV1,
    samples: u64,
}

impl Packer {
    /// Takes a series; hands on every request that is full.
    ///
    /// # Errors
    /// Those of `ship`.
    pub fn push(
        &mut self,
        series: &Series,
        ship: &mut dyn FnMut(Request) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let labels: Vec<(&str, &str)> = series.labels.iter().collect();
        for samples in series.samples.chunks(SAMPLES_AT_ONCE) {
            self.request.series(&labels, samples);
            self.samples += samples.len() as u64;
            self.ship_if(REQUEST_SIZE, ship)?;
        }
        // Each has up to many thousand buckets.
        for histograms in series.histograms.chunks(16) {
            self.request.mixed_series(&labels, &[], histograms);
            self.samples += histograms.len() as u64;
            self.ship_if(REQUEST_SIZE, ship)?;
        }
        Ok(())
    }

    /// Hands on what is left.
    ///
    /// # Errors
    /// Those of `ship`.
    pub fn finish(
        &mut self,
        ship: &mut dyn FnMut(Request) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.ship_if(1, ship)
    }

    fn ship_if(
        &mut self,
        size: usize,
        ship: &mut dyn FnMut(Request) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let bytes = self.request.as_bytes();
        if bytes.len() < size {
            return Ok(());
        }
        let body = snap::raw::Encoder::new().compress_vec(bytes)?;
        let samples = std::mem::take(&mut self.samples);
        self.request.clear();
        ship(Request { body, samples })
    }
}

/// Sends a request; what was refused of it, if anything was: the rest is stored.
///
/// # Errors
/// When the server does not take it.
pub fn send(client: &mut Client, request: Request) -> anyhow::Result<Option<String>> {
    let asked = Asked {
        method: Method::POST,
        // What is answered is on disk, however the server is set: then a window is done.
        path: "/api/v1/write?durability=synced",
        headers: &[
            ("content-type", "application/x-protobuf"),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-write-version", "0.1.0"),
        ],
        body: Bytes::from(request.body),
    };
    let reply = client.ask(&asked, &mut |_| Ok(()))?;
    match reply.status {
        // A page that asks who one is has another status.
        StatusCode::NO_CONTENT => Ok(None),
        StatusCode::BAD_REQUEST => Ok(Some(reply.error)),
        status => {
            bail!("remote write is answered by {status}, not as a Quipu does: {}", reply.error)
        }
    }
}
