//! Room `wire`.
