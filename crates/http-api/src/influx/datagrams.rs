//! Line protocol over UDP: each datagram holds whole lines. What comes together is stored together;
//! what the store cannot take just then is counted and gone, for a datagram is not kept waiting.

use super::lines::{Block, Lines};
use net::listeners::accept::Stop;
use net::telemetry::Protocol;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use store::Durability;
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// Bytes of a datagram, at most, as IP has it.
const DATAGRAM_SIZE_MAX: usize = 64 << 10;
/// Bytes of datagrams that are stored together.
const BLOCK_SIZE_MAX: usize = 1 << 20;
/// Bytes that are still taken when the server ends: more than the system holds for a socket.
const LAST_SIZE_MAX: usize = 64 << 20;
/// How long to wait when the socket fails.
const FAILURE_PAUSE: Duration = Duration::from_millis(50);

/// Datagrams that have arrived and are not yet stored.
struct Arrived {
    datagram: Vec<u8>,
    bytes: Vec<u8>,
    /// Where each ends in `bytes`.
    ends: Vec<usize>,
}

impl Arrived {
    fn push(&mut self, size: usize) {
        self.bytes.extend_from_slice(self.datagram.get(..size).unwrap_or_default());
        // The last line of a datagram may have no end, and is none of the next one's.
        self.bytes.push(b'\n');
        self.ends.push(self.bytes.len());
    }

    /// Takes what the system holds, up to a block.
    fn take_ready(&mut self, socket: &UdpSocket) -> io::Result<()> {
        while self.bytes.len() < BLOCK_SIZE_MAX {
            match socket.try_recv(&mut self.datagram) {
                Ok(size) => self.push(size),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Receives datagrams until the server ends, and then what the system holds.
pub(super) async fn receive(lines: Arc<Lines>, socket: UdpSocket, mut stop: Stop) {
    let datagram = vec![0; DATAGRAM_SIZE_MAX];
    let mut arrived = Arrived { datagram, bytes: Vec::new(), ends: Vec::new() };
    loop {
        let received = tokio::select! {
            received = socket.recv(&mut arrived.datagram) => received,
            _ = stop.wait_for(|is_stopping| *is_stopping) => break,
        };
        let taken = received.and_then(|size| {
            arrived.push(size);
            arrived.take_ready(&socket)
        });
        store(&lines, &mut arrived).await;
        if let Err(error) = taken {
            tracing::warn!(%error, "cannot receive datagrams");
            sleep(FAILURE_PAUSE).await;
        }
    }
    let mut size = 0;
    while size < LAST_SIZE_MAX {
        let taken = arrived.take_ready(&socket);
        if arrived.bytes.is_empty() {
            return;
        }
        size += arrived.bytes.len();
        // What was taken before the socket failed is stored, too.
        if store(&lines, &mut arrived).await == Stored::No || taken.is_err() {
            return;
        }
    }
}

/// Whether the store took what had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Yes,
    No,
}

/// Stores what has arrived, or counts it as gone. Nobody is told that it is safe, so it need not be
/// synced first: what arrives meanwhile would be lost for sure.
async fn store(lines: &Arc<Lines>, arrived: &mut Arrived) -> Stored {
    let bytes = std::mem::take(&mut arrived.bytes);
    let ends = std::mem::take(&mut arrived.ends);
    let count = ends.len() as u64;
    lines.counters.datagrams.add(count);
    let block = Block::of_pieces(&lines.app, bytes, ends);
    let (block, result) = lines.store(block, Durability::Relaxed).await;
    if let Err(failure) = result {
        lines.counters.datagrams_dropped.add(count);
        if lines.not_taken.is_due(lines.now_ms()) {
            tracing::warn!(
                "lines of {count} datagrams were not stored: {failure}; \
                 see quipu_influx_datagrams_dropped_total"
            );
        }
        lines.give_up(block, Protocol::InfluxUdp);
        return Stored::No;
    }
    lines.finish(block, Protocol::InfluxUdp);
    Stored::Yes
}
