//! All tests of the room in one program.

mod common;
mod doors;
mod encrypted;
mod limits;
mod sockets;
