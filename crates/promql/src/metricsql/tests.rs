//! Tables of good and bad expressions.

use crate::metricsql::*;
