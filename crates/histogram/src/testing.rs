//! What tests of this crate write histograms with.

use crate::native::Bucket;

/// Buckets by index and count.
pub(crate) fn buckets(list: &[(i32, f64)]) -> Vec<Bucket> {
    list.iter().map(|&(index, count)| Bucket { index, count }).collect()
}
