//! Bytes out: messages, then the answers that gathered.

use super::Served;
use crate::clients::client::Piece;
use crate::connection::input::{Input, KEPT_SIZE_MAX};
use crate::connection::sending;
use crate::memory::client_memory::Charge;
use crate::redis::Redis;
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering::Relaxed;
use tokio::io::{AsyncRead, AsyncWrite};

impl<S> Served<'_, S> {
    /// Adds what others left, behind the answers that are there.
    pub(super) fn add_piece(&mut self, piece: Piece) {
        let out = self.session.out.0.bytes_mut();
        match piece {
            Piece::Own(bytes) => out.extend_from_slice(&bytes),
            Piece::Shared(_) => {
                if !out.is_empty() {
                    self.unsent.push_back(Piece::Own(std::mem::take(out)));
                }
                self.unsent.push_back(piece);
            }
        }
    }

    /// Drops what was added since there were that many messages, and bytes of answers.
    pub(super) fn drop_answers(&mut self, (messages, size): (usize, usize)) {
        let is_moved = messages < self.unsent.len();
        self.unsent.truncate(messages);
        self.session.out.0.bytes_mut().truncate(if is_moved { 0 } else { size });
    }

    /// Counts the connection's buffers among those of all clients; the largest are closed if they
    /// are too large in sum.
    pub(super) fn count_buffers(&self) {
        if self.charge.set(self.buffered_without_input() + self.input.capacity()) {
            self.redis.hub().evict_largest();
        }
    }

    fn buffered_without_input(&self) -> usize {
        let own = |piece: &Piece| match piece {
            Piece::Own(bytes) => bytes.capacity(),
            Piece::Shared(_) => 0,
        };
        let queued = self.session.transaction.as_ref().map_or(0, |transaction| transaction.size);
        let messages: usize = self.unsent.iter().map(own).sum();
        self.session.out.0.capacity() + messages + queued
    }
}

/// Counts the input that came while answers wait.
fn count_input(redis: &Redis, charge: &Charge, others: usize, input: &Input) {
    if charge.set(others + input.capacity()) {
        redis.hub().evict_largest();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Served<'_, S> {
    /// Sends what has gathered. Returns how many bytes came meanwhile, from a client that does not
    /// read.
    pub(super) async fn write(&mut self) -> Result<usize> {
        if self.session.out.0.bytes().is_empty() && self.unsent.is_empty() {
            return Ok(0);
        }
        let (redis, is_known) = (self.redis, self.session.is_known);
        let others = self.buffered_without_input();
        // A client that has not authenticated gets no memory for input.
        let room_for = || match is_known {
            true => redis.hub().settings.hot.query_size_max,
            false => 0,
        };
        let (mut stopped, outbox) = (self.stop.clone(), self.session.outbox.clone());
        let was_closed = outbox.is_closed();
        if outbox.is_evicted() {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        let (unsent, input, charge) = (&mut self.unsent, &mut self.input, &self.charge);
        let bytes = self.session.out.0.bytes_mut();
        let size = unsent.iter().map(|piece| piece.len()).sum::<usize>() + bytes.len();
        self.session.state.sent.fetch_add(size as u64, Relaxed);
        let closed = async {
            // One who is closed while it does not read gets no more.
            while !outbox.is_evicted() && (was_closed || !outbox.is_closed()) {
                outbox.wake.notified().await;
            }
        };
        let stream = &mut self.stream;
        let heard_more = |input: &Input| count_input(redis, charge, others, input);
        let send_all = async {
            let mut heard = 0;
            while let Some(piece) = unsent.front() {
                heard += sending::send(stream, piece, input, &room_for, &heard_more).await?;
                unsent.pop_front();
            }
            Ok::<usize, Error>(
                heard + sending::send(stream, bytes, input, &room_for, &heard_more).await?,
            )
        };
        let sent = tokio::select! {
            biased;
            sent = send_all => sent,
            () = closed => Err(ErrorKind::ConnectionAborted.into()),
            _ = self.connection.evicted.notified() => Err(ErrorKind::TimedOut.into()),
            _ = stopped.wait_for(|is_stopping| *is_stopping) => {
                Err(ErrorKind::ConnectionAborted.into())
            }
        };
        if 0 < outbox.len() || outbox.is_closed() {
            outbox.wake.notify_one();
        }
        let bytes = self.session.out.0.bytes_mut();
        bytes.clear();
        if KEPT_SIZE_MAX < bytes.capacity() {
            *bytes = Vec::new();
        }
        self.count_buffers();
        self.connection.touch();
        if let Ok(heard) = &sent {
            self.session.state.received.fetch_add(*heard as u64, Relaxed);
        }
        sent
    }
}
