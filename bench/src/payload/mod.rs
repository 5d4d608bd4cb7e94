//! How samples look on the wire: line protocol, remote write 1.0 and 2.0, exposition text, and
//! statements with rows for a server that speaks SQL.
//!
//! A workload writes a request's *plain* bytes (text, or protobuf); [`Packer`] makes of them what
//! is posted (text as it is, protobuf in snappy's block format). The two steps are apart so that
//! a worker reuses both buffers for its whole life.

pub mod copy;
pub mod exposition;
pub mod influx;
pub mod protobuf;
pub mod remote_write;
pub mod remote_write_v2;

use anyhow::{Result, bail};

/// What a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// InfluxDB line protocol, uncompressed, as the TSBS loader sends it.
    Influx,
    /// Prometheus remote write 1.0.
    RemoteWrite,
    /// Prometheus remote write 2.0.
    RemoteWriteV2,
    /// Prometheus' exposition text with times, as VictoriaMetrics imports it.
    Exposition,
    /// COPY of wide rows on a connection of PostgreSQL's protocol.
    Copy,
}

impl Protocol {
    /// The flag values, in the order of `--help`.
    pub const NAMES: [&'static str; 5] =
        ["influx", "remote-write", "remote-write-v2", "exposition", "copy"];

    /// The protocol of a flag value.
    ///
    /// # Errors
    /// When there is no such protocol.
    pub fn parse(name: &str) -> Result<Protocol> {
        match name {
            "influx" => Ok(Protocol::Influx),
            "remote-write" => Ok(Protocol::RemoteWrite),
            "remote-write-v2" => Ok(Protocol::RemoteWriteV2),
            "exposition" => Ok(Protocol::Exposition),
            "copy" => Ok(Protocol::Copy),
            _ => bail!("no protocol {name:?}, use one of {}", Protocol::NAMES.join(", ")),
        }
    }

    /// The flag value.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Influx => "influx",
            Protocol::RemoteWrite => "remote-write",
            Protocol::RemoteWriteV2 => "remote-write-v2",
            Protocol::Exposition => "exposition",
            Protocol::Copy => "copy",
        }
    }

    /// Whether a request is plain text that may follow another in one file.
    pub fn is_plain_text(self) -> bool {
        matches!(self, Protocol::Influx | Protocol::Exposition)
    }

    /// Where such requests are posted by default; empty without HTTP.
    pub fn path(self) -> &'static str {
        match self {
            Protocol::Exposition => "/api/v1/import/prometheus",
            Protocol::Copy => "",
            Protocol::Influx => "/write",
            Protocol::RemoteWrite | Protocol::RemoteWriteV2 => "/api/v1/write",
        }
    }

    /// The request's header lines beside those of HTTP itself, each ended.
    pub fn headers(self) -> &'static str {
        match self {
            Protocol::Influx | Protocol::Copy => "",
            Protocol::Exposition => "Content-Type: text/plain; version=0.0.4\r\n",
            Protocol::RemoteWrite => {
                "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n\
                 X-Prometheus-Remote-Write-Version: 0.1.0\r\n"
            }
            Protocol::RemoteWriteV2 => {
                "Content-Encoding: snappy\r\n\
                 Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\n\
                 X-Prometheus-Remote-Write-Version: 2.0.0\r\n"
            }
        }
    }

    /// Whether that status means that everything was taken; never without HTTP.
    pub fn is_success(self, status: u16) -> bool {
        match self {
            Protocol::Influx => status == 204,
            Protocol::RemoteWrite | Protocol::RemoteWriteV2 | Protocol::Exposition => {
                (200..300).contains(&status)
            }
            Protocol::Copy => false,
        }
    }
}

/// Appends a number as text; whole numbers without a point.
fn put_float(value: f64, out: &mut Vec<u8>) {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    } else {
        out.extend_from_slice(value.to_string().as_bytes());
    }
}

/// Turns a request's plain bytes into its body.
pub struct Packer {
    protocol: Protocol,
    encoder: snap::raw::Encoder,
    packed: Vec<u8>,
}

impl Packer {
    /// A packer with empty buffers.
    pub fn new(protocol: Protocol) -> Packer {
        Packer { protocol, encoder: snap::raw::Encoder::new(), packed: Vec::new() }
    }

    /// The body to post for `plain`.
    ///
    /// # Errors
    /// When `plain` has 4 GiB or more.
    pub fn pack<'a>(&'a mut self, plain: &'a [u8]) -> Result<&'a [u8]> {
        if !matches!(self.protocol, Protocol::RemoteWrite | Protocol::RemoteWriteV2) {
            return Ok(plain);
        }
        let size_max = snap::raw::max_compress_len(plain.len());
        if self.packed.len() < size_max {
            self.packed.resize(size_max, 0);
        }
        let size = self.encoder.compress(plain, &mut self.packed)?;
        Ok(&self.packed[..size])
    }
}
