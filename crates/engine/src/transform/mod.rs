//! Functions on instant vectors, a file per kind.

pub(crate) mod absent;
pub(crate) mod date;
pub(crate) mod histogram;
pub(crate) mod info;
pub(crate) mod label;
pub(crate) mod math;
pub(crate) mod scalar;
pub(crate) mod sort;
