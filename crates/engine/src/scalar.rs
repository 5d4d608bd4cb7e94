//! Scalars: one number at every step.

/// A number at every step of a grid.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    /// The same everywhere.
    Constant(f64),
    /// One per step.
    Steps(Vec<f64>),
}

impl Scalar {
    #[inline(always)]
    pub fn at(&self, step: usize) -> f64 {
        match self {
            Scalar::Constant(value) => *value,
            Scalar::Steps(values) => values[step],
        }
    }

    /// Applies an operation to two scalars.
    pub fn zip(&self, other: &Scalar, steps: usize, op: impl Fn(f64, f64) -> f64) -> Scalar {
        match (self, other) {
            (Scalar::Constant(a), Scalar::Constant(b)) => Scalar::Constant(op(*a, *b)),
            _ => Scalar::Steps((0..steps).map(|step| op(self.at(step), other.at(step))).collect()),
        }
    }

    /// The values that it takes, at least one.
    pub fn values(&self) -> &[f64] {
        match self {
            Scalar::Constant(value) => std::slice::from_ref(value),
            Scalar::Steps(values) => values,
        }
    }
}
