//! Listeners: sockets, TLS, limits on connections and the clean end, for doors of every protocol.
//!
//! ```text
//! table (which there are) > config (where each listens) > bind > accept > cores > TLS > the door's `serve`
//! ```
//!
//! A protocol on a port of its own is a row in [`table`], an [`accept::Door`] in a crate of its own, and an
//! arm in `open` of the binary's module `protocols`. Its flags, its connection limit, its counters, TLS and
//! the end come from here.

pub mod accept;
pub mod bind;
pub mod connections;
pub mod cores;
pub mod table;
pub mod tls;
