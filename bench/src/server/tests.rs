//! Starts each peer that is installed.
