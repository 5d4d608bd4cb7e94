//! Room `engine`.
