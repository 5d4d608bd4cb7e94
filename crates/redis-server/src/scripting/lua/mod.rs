//! Lua for scripts: values, errors, and the libraries that Redis gives to scripts.

pub mod arguments;
pub mod bits;
pub mod convert;
pub mod digits;
pub mod json;
pub mod limits;
pub mod msgpack;
pub mod pack;
pub mod pattern;
pub mod raised;
pub mod strings;
pub mod time_check;
