//! Version of Redis whose commands and replies this server follows.

/// The version that is said to clients, which choose by it what they ask for.
pub const REDIS_VERSION: &str = "7.4.0";
