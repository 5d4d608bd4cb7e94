//! All tests of the room in one program.

mod properties;
mod recorded;
