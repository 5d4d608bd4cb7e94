//! Background work: flush, merge, expiry, scrub, rollover, and removal of unused files and entities.
//!
//! [`jobs`] has the threads; the other files each do one kind of work.

pub(crate) mod jobs;
pub(crate) mod flush;
pub(crate) mod merger;
pub(crate) mod segment_jobs;
pub(crate) mod index_gc;
pub(crate) mod expire;
pub(crate) mod rollover;
pub(crate) mod scrub;
pub(crate) mod partition_files;
pub(crate) mod damage_review;
