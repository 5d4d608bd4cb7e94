//! Room `promql`.
