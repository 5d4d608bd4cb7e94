//! All tests of the room in one program.

#![allow(clippy::disallowed_methods, reason = "tests own their files and threads")]

mod common;
mod doors;
mod encrypted;
mod limits;
mod sockets;
