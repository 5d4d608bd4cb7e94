//! Aggregates of pairs of floats: `corr`, `covar_pop`, `covar_samp` and those of `regr_`. Sums of squares are
//! shifted as they go, by Youngs and Cramer, as in PostgreSQL: DataFusion's lose digits of large values.

use crate::types::runtime::cancellation;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Aggregate function of pairs of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Correlation,
    Covariance { is_sample: bool },
    Count,
    MeanX,
    MeanY,
    SquaresX,
    SquaresY,
    Products,
    Slope,
    Intercept,
    Determination,
}

const ALL: &[(&str, &[&str], Kind)] = &[
    ("corr", &[], Kind::Correlation),
    ("covar_samp", &["covar"], Kind::Covariance { is_sample: true }),
    ("covar_pop", &[], Kind::Covariance { is_sample: false }),
    ("regr_count", &[], Kind::Count),
    ("regr_avgx", &[], Kind::MeanX),
    ("regr_avgy", &[], Kind::MeanY),
    ("regr_sxx", &[], Kind::SquaresX),
    ("regr_syy", &[], Kind::SquaresY),
    ("regr_sxy", &[], Kind::Products),
    ("regr_slope", &[], Kind::Slope),
    ("regr_intercept", &[], Kind::Intercept),
    ("regr_r2", &[], Kind::Determination),
];

/// The aggregates.
pub fn functions() -> impl Iterator<Item = AggregateUDF> {
    ALL.iter().map(|(name, aliases, kind)| {
        let signature =
            Signature::exact(vec![DataType::Float64, DataType::Float64], Volatility::Immutable);
        let aliases = aliases.iter().map(|one| (*one).to_string()).collect();
        AggregateUDF::from(Paired { name, aliases, kind: *kind, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Paired {
    name: &'static str,
    aliases: Vec<String>,
    kind: Kind,
    signature: Signature,
}

impl AggregateUDFImpl for Paired {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            Kind::Count => DataType::Int64,
            _ => DataType::Float64,
        })
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Whole { kind: self.kind, sums: Sums::default() }))
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Frame { kind: self.kind, pairs: VecDeque::new() }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |name: &&str| {
            Arc::new(Field::new(format_state_name(args.name, name), DataType::Float64, true))
        };
        Ok(["count", "x", "xx", "y", "yy", "xy"].iter().map(field).collect())
    }
}

/// Sums of the pairs so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl Sums {
    fn add(&mut self, y: f64, x: f64) {
        let before = self.count;
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before == 0.0 {
            let unknown = |one: f64| if one.is_finite() { 0.0 } else { f64::NAN };
            (self.xx, self.yy) = (unknown(x), unknown(y));
            self.xy = self.xx + self.yy;
            return;
        }
        let (far_x, far_y) = (x * self.count - self.x, y * self.count - self.y);
        let scale = 1.0 / (self.count * before);
        self.xx += far_x * far_x * scale;
        self.yy += far_y * far_y * scale;
        self.xy += far_x * far_y * scale;
    }

    fn join(&mut self, other: Sums) {
        if other.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            *self = other;
            return;
        }
        let count = self.count + other.count;
        let far_x = self.x / self.count - other.x / other.count;
        let far_y = self.y / self.count - other.y / other.count;
        let weight = self.count * other.count / count;
        self.xx += other.xx + weight * far_x * far_x;
        self.yy += other.yy + weight * far_y * far_y;
        self.xy += other.xy + weight * far_x * far_y;
        self.x += other.x;
        self.y += other.y;
        self.count = count;
    }

    fn value(&self, kind: Kind) -> ScalarValue {
        if kind == Kind::Count {
            return ScalarValue::Int64(Some(self.count as i64));
        }
        ScalarValue::Float64(if self.count < 1.0 { None } else { self.float(kind) })
    }

    fn float(&self, kind: Kind) -> Option<f64> {
        let Sums { count, x, xx, y, yy, xy } = *self;
        match kind {
            Kind::Correlation => (xx != 0.0 && yy != 0.0).then(|| xy / (xx * yy).sqrt()),
            Kind::Covariance { is_sample: true } => (1.0 < count).then(|| xy / (count - 1.0)),
            Kind::Covariance { is_sample: false } => Some(xy / count),
            Kind::Count => Some(count),
            Kind::MeanX => Some(x / count),
            Kind::MeanY => Some(y / count),
            Kind::SquaresX => Some(xx),
            Kind::SquaresY => Some(yy),
            Kind::Products => Some(xy),
            Kind::Slope => (xx != 0.0).then(|| xy / xx),
            Kind::Intercept => (xx != 0.0).then(|| (y - x * xy / xx) / count),
            Kind::Determination if xx == 0.0 => None,
            Kind::Determination if yy == 0.0 => Some(1.0),
            Kind::Determination => Some(xy * xy / (xx * yy)),
        }
    }
}

/// The pairs of two columns, but those with NULL.
fn pairs(values: &[ArrayRef]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let (left, right) =
        (values[0].as_primitive::<Float64Type>(), values[1].as_primitive::<Float64Type>());
    left.iter().zip(right).filter_map(|(left, right)| Some((left?, right?)))
}

/// All pairs of a group.
#[derive(Debug)]
struct Whole {
    kind: Kind,
    sums: Sums,
}

impl Accumulator for Whole {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        pairs(values).for_each(|(y, x)| self.sums.add(y, x));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.sums.value(self.kind))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let Sums { count, x, xx, y, yy, xy } = self.sums;
        Ok([count, x, xx, y, yy, xy].into_iter().map(ScalarValue::from).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns: Vec<_> =
            states.iter().map(|state| state.as_primitive::<Float64Type>()).collect();
        let rows = columns.first().map_or(0, |column| column.len());
        for row in 0..rows {
            let of = |at: usize| columns.get(at).map_or(0.0, |column| column.value(row));
            let (count, x, xx, y, yy, xy) = (of(0), of(1), of(2), of(3), of(4), of(5));
            self.sums.join(Sums { count, x, xx, y, yy, xy });
        }
        Ok(())
    }
}

/// The pairs in a frame that moves: pairs that leave it leave nothing behind.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    pairs: VecDeque<(f64, f64)>,
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.pairs.extend(pairs(values));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let left = pairs(values).count();
        self.pairs.drain(..left.min(self.pairs.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        cancellation::check()?;
        let mut sums = Sums::default();
        self.pairs.iter().for_each(|(y, x)| sums.add(*y, *x));
        Ok(sums.value(self.kind))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.pairs.capacity() * size_of::<(f64, f64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        datafusion::common::internal_err!("a frame has no state")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        datafusion::common::internal_err!("a frame has no state")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_large_values_keep_their_digits() {
        let add = |range: std::ops::Range<i32>| {
            let mut sums = Sums::default();
            range
                .map(|at| 1_704_067_200.0 + f64::from(at) * 10.0)
                .for_each(|t| sums.add(t * 2.0, t));
            sums
        };
        let mut joined = add(0..400);
        joined.join(add(400..1000));
        for sums in [add(0..1000), joined] {
            let correlation = sums.float(Kind::Correlation).unwrap();
            assert!((correlation - 1.0).abs() < 1e-14, "{correlation}");
            assert!((sums.float(Kind::Slope).unwrap() - 2.0).abs() < 1e-14);
        }
        assert_eq!(Sums::default().value(Kind::Count), ScalarValue::Int64(Some(0)));
        assert_eq!(Sums::default().value(Kind::Slope), ScalarValue::Float64(None));
    }
}
