//! How a case loads: by the first of its protocols that a server speaks.

use crate::compare::figures::{Better, Figure};
use crate::load::report::LoadReport;
use crate::load::{self, LoadOptions};
use crate::payload::Protocol;
use crate::server::{Installed, Peer, RunningServer, count};
use crate::workload::Workload;
use anyhow::Result;
use std::time::Duration;

/// What all loads of a case have in common.
#[derive(Clone, Debug)]
pub struct Loading {
    /// What data may be sent in, the preferred first. Which one it was is in the raw result.
    pub protocols: Vec<Protocol>,
    /// How; address, path, protocol and settling are filled in.
    pub options: LoadOptions,
    /// The rest after a load.
    pub idle: Duration,
}

impl Loading {
    /// Why a server cannot be sent the workload, if so: what it says of the last protocol.
    pub fn unsupported(&self, workload: &dyn Workload, contender: &Installed) -> Option<String> {
        if self.protocol(workload, contender).is_some() {
            return None;
        }
        let reason = |protocol: &Protocol| {
            contender.unsupported(*protocol).or_else(|| workload.unsupported(*protocol))
        };
        self.protocols.iter().find_map(reason)
    }

    /// The protocol that a server is sent the workload in.
    fn protocol(&self, workload: &dyn Workload, contender: &Installed) -> Option<Protocol> {
        let is_possible = |protocol: &&Protocol| {
            contender.unsupported(**protocol).is_none()
                && workload.unsupported(**protocol).is_none()
        };
        self.protocols.iter().find(is_possible).copied()
    }

    /// Loads a workload into a started server.
    ///
    /// # Errors
    /// When the server cannot be watched.
    pub fn load(
        &self,
        workload: &dyn Workload,
        contender: &Installed,
        server: &RunningServer,
    ) -> Result<LoadReport> {
        let mut options = self.options.clone();
        let first = options.format.protocol;
        options.format.protocol = self.protocol(workload, contender).unwrap_or(first);
        options.authority = server.authority().to_string();
        let path = contender.write_path(options.format.protocol);
        options.path = path.unwrap_or_default().to_string();
        options.settle = contender.peer.settle(self.idle);
        options.settle.time_max = options.limits.time;
        load::run(workload, &options, &server.observed())
    }

    /// The protocols' names, for titles.
    pub fn names(&self) -> String {
        let names = self.protocols.iter().map(|protocol| protocol.name()).collect::<Vec<_>>();
        names.join(" or ")
    }
}

/// How many samples the server does not find, which should be 0; `None` when it cannot say.
pub fn missing_samples(workload: &dyn Workload, peer: &Peer, authority: &str) -> Option<Figure> {
    let counted = count::stored_samples(peer, authority, workload.span_ns());
    let count = counted.inspect_err(|error| eprintln!("cannot count samples: {error:#}")).ok()?;
    let missing = workload.samples() as f64 - count;
    Some(Figure::new("samples not found again", missing, Better::Neither))
}
