//! Room `index`.
