//! Memory limits: buffers of clients, and memory for the next command.

pub mod client_memory;
pub mod room;
