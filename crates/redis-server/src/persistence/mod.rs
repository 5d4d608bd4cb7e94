//! Disk: answers that wait for the log, values read from disk, and files beside the keys.

pub mod durable;
pub mod fetching;
pub mod saved_files;
pub mod saving;
