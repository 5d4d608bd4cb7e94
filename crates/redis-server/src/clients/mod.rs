//! Clients: their sessions, their outboxes, and the keys that they track.

pub mod client;
pub mod client_state;
pub mod pause;
pub mod session;
pub mod tracking;
