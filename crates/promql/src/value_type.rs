//! Types of values: what an expression gives, and what a function takes.

/// What kind of value an expression has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// One number per step.
    Scalar,
    /// A string; only literals are.
    String,
    /// At each step at most one sample per series: an instant vector.
    Vector,
    /// At each step a window of samples per series: a range vector.
    Matrix,
}

impl ValueType {
    /// The word that Prometheus' documentation has for it.
    pub fn documented(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::String => "string",
            ValueType::Vector => "instant vector",
            ValueType::Matrix => "range vector",
        }
    }

    /// The word that Prometheus' API has for it (`resultType`).
    pub fn as_str(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::String => "string",
            ValueType::Vector => "vector",
            ValueType::Matrix => "matrix",
        }
    }
}
