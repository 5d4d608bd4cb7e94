//! InfluxDB's clients: line protocol in over HTTP, and the handshakes they begin with.

pub mod write;
