//! Listeners: sockets, TLS, limits on connections and the clean end, for doors of every protocol.
//!
//! ```text
//! table (which there are) > config (where each listens) > bind > accept > cores > TLS > the door's `serve`
//! ```
//!
//! A protocol on a port of its own is a row in [`table`], a folder in [`crate::doors`] with a
//! [`accept::Door`] in it, and an arm in [`crate::doors::open`]. Its flags, its connection limit, its
//! counters, TLS and the end come from here.

pub mod accept;
pub mod bind;
pub mod connections;
pub mod cores;
pub mod table;
pub mod tls;
