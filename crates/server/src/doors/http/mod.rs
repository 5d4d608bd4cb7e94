//! What doors over HTTP share, in the order in which a request meets it.

pub mod sockets;

pub mod connection;

pub mod exchange;

pub mod router;

pub mod body;
pub mod request;
pub mod unpack;

pub mod insert;
pub mod selection;

pub mod answer;
pub mod partial;
pub mod stream;
