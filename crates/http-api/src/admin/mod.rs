//! What the server tells about itself, and orders to it: in the shapes of Prometheus' and
//! VictoriaMetrics' APIs where they have one.

pub mod cardinality;
pub mod legacy;
pub mod orders;
pub mod running;
pub mod status;
