//! Files of a partition: the manifest, the parts that it names, and files that no manifest names.

pub(crate) mod manifest;
pub(crate) mod disk_parts;
pub(crate) mod live_part;
pub(crate) mod strays;
