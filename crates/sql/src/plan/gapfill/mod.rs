//! `time_bucket_gapfill`: the plan node, its execution, and the pass that inserts it.

pub(crate) mod buckets;
pub(crate) mod exec;
pub(crate) mod node;
pub(crate) mod plan;
pub(crate) mod sizes;
pub(crate) mod stream;
