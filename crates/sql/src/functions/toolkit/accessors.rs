//! Functions that ask one thing of a summary: `rate(counter_agg(..))`, `average(time_weight(..))`.

use crate::functions::toolkit::sketch;
use crate::functions::toolkit::sketch::Sketch;
use crate::types::error::SqlError;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{cast, nullif};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// What makes a row of what aggregates say: how many, their sum, average and variances.
pub const STATS: &str = "stats_of";
/// What asks such a row for its `stddev`: PostgreSQL's aggregate has that name already, and of the
/// next two.
pub const STATS_STDDEV: &str = "stats_stddev";
/// Its `variance`.
pub const STATS_VARIANCE: &str = "stats_variance";
/// Its `sum`.
pub const STATS_SUM: &str = "stats_sum";

/// Functions by the names of what they ask for.
const PLAIN: &[&str] = &[
    "rate",
    "delta",
    "time_delta",
    "num_resets",
    "num_changes",
    "num_elements",
    "num_vals",
    "average",
];

/// Seconds of the units that an area may be told in, by PostgreSQL's names.
const UNITS: &[(&[&str], f64)] = &[
    (&["microsecond", "us", "usec"], 1e-6),
    (&["millisecond", "ms", "msec"], 1e-3),
    (&["second", "s", "sec"], 1.0),
    (&["minute", "m", "min"], 60.0),
    (&["hour", "h", "hr"], 3600.0),
    (&["day", "d"], 86_400.0),
    (&["week", "w"], 604_800.0),
];

/// The functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let plain = PLAIN.iter().map(|name| (*name, Ask::Field));
    let others = [
        ("integral", Ask::Integral),
        (STATS_STDDEV, Ask::Spread { is_root: true }),
        (STATS_VARIANCE, Ask::Spread { is_root: false }),
        (STATS_SUM, Ask::Sum),
        (STATS, Ask::Stats),
        ("approx_percentile", Ask::Percentile),
    ];
    plain.chain(others).map(|(name, ask)| {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::from(Accessor { name, ask, signature })
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ask {
    /// What has the function's name.
    Field,
    /// An area under a line, in units of time.
    Integral,
    /// All numbers together.
    Sum,
    /// How far numbers lie from each other.
    Spread { is_root: bool },
    /// All that aggregates said.
    Stats,
    /// A share of all values, of a sketch.
    Percentile,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Accessor {
    name: &'static str,
    ask: Ask,
    signature: Signature,
}

fn stats() -> Fields {
    let real = |name: &str| Field::new(name, DataType::Float64, true);
    let count = Field::new("num_vals", DataType::Int64, true);
    Fields::from(vec![count, real("sum"), real("average"), real("population"), real("sample")])
}

impl Accessor {
    /// The fields that a summary has to have.
    fn wanted(&self) -> &'static [&'static str] {
        match self.ask {
            Ask::Field => {
                let at = PLAIN.iter().position(|one| *one == self.name).unwrap_or(0);
                &PLAIN[at..=at]
            }
            Ask::Integral => &["integral"],
            Ask::Sum => &["sum"],
            Ask::Spread { .. } => &["population", "sample"],
            Ask::Stats | Ask::Percentile => &[],
        }
    }

    fn field(&self, summary: &StructArray, name: &str) -> Result<ArrayRef> {
        let Some(column) = summary.column_by_name(name) else {
            return plan_err!("No function matches {} of such a summary", self.name);
        };
        // A summary of nothing says nothing.
        match summary.nulls() {
            None => Ok(column.clone()),
            Some(valid) => {
                let nothing = datafusion::arrow::array::BooleanArray::new(!valid.inner(), None);
                Ok(nullif(column, &nothing)?)
            }
        }
    }

    fn ask(&self, summary: &ArrayRef, word: Option<&str>) -> Result<ArrayRef> {
        let Some(summary) = summary.as_struct_opt() else {
            return plan_err!("No function matches {} of {}", self.name, summary.data_type());
        };
        match self.ask {
            Ask::Field | Ask::Stats | Ask::Percentile => self.field(summary, self.name),
            Ask::Sum => self.field(summary, "sum"),
            Ask::Integral => {
                let seconds = seconds_of(word.unwrap_or("second"))?;
                let area = self.field(summary, "integral")?;
                Ok(Arc::new(
                    area.as_primitive::<Float64Type>().unary::<_, Float64Type>(|one| one / seconds),
                ))
            }
            Ask::Spread { is_root } => {
                let name = match word.unwrap_or("sample").to_ascii_lowercase().as_str() {
                    "sample" | "samp" => "sample",
                    "population" | "pop" => "population",
                    other => return Err(wrong(&format!("unknown analysis method {other}"))),
                };
                let spread = self.field(summary, name)?;
                let root = |one: f64| if is_root { one.sqrt() } else { one };
                Ok(Arc::new(spread.as_primitive::<Float64Type>().unary::<_, Float64Type>(root)))
            }
        }
    }
}

/// Seconds of a unit of time, in one or many.
fn seconds_of(unit: &str) -> Result<f64> {
    let plain = unit.trim().to_ascii_lowercase();
    let find = |name: &str| UNITS.iter().find(|(names, _)| names.contains(&name));
    let found = find(&plain).or_else(|| find(plain.strip_suffix('s')?));
    found
        .map(|(_, seconds)| *seconds)
        .ok_or_else(|| wrong(&format!("unrecognized unit \"{unit}\"")))
}

fn wrong(words: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::wrong_value(words)))
}

impl ScalarUDFImpl for Accessor {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let has_word = matches!(self.ask, Ask::Integral | Ask::Spread { .. });
        let is_known = match (self.ask, types) {
            (Ask::Stats, [_, _, _, _, _]) => {
                return Ok(stats().iter().map(|field| field.data_type().clone()).collect());
            }
            (Ask::Percentile, [share, DataType::Struct(known)])
                if *known == sketch::fields() && (share.is_numeric() || share.is_null()) =>
            {
                return Ok(vec![DataType::Float64, types[1].clone()]);
            }
            (Ask::Percentile, _) => false,
            (_, [DataType::Struct(fields), rest @ ..]) => {
                let all = self.wanted().iter().all(|name| fields.find(name).is_some());
                all && rest.len() <= usize::from(has_word) && rest.iter().all(DataType::is_string)
            }
            _ => false,
        };
        if is_known {
            return Ok(types.to_vec());
        }
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        plan_err!("No function matches {}({})", self.name, types.join(", "))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.ask {
            Ask::Stats => DataType::Struct(stats()),
            Ask::Field if self.name.starts_with("num_") => DataType::Int64,
            _ => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        if self.ask == Ask::Stats {
            let arrays = args.args.iter().map(|one| one.to_array(rows));
            return Ok(ColumnarValue::Array(summary(&arrays.collect::<Result<Vec<_>>>()?)?));
        }
        if self.ask == Ask::Percentile {
            let arrays = args.args.iter().map(|one| one.to_array(rows));
            return Ok(ColumnarValue::Array(percentiles(&arrays.collect::<Result<Vec<_>>>()?)?));
        }
        let word = match args.args.get(1) {
            None => None,
            Some(ColumnarValue::Scalar(word)) => word.try_as_str().flatten(),
            Some(ColumnarValue::Array(_)) => {
                return Err(wrong(&format!("{}: the second argument is a literal", self.name)));
            }
        };
        let Some(first) = args.args.first() else { return plan_err!("a summary is asked for") };
        Ok(ColumnarValue::Array(self.ask(&first.to_array(rows)?, word)?))
    }
}

/// A row of what aggregates said; none where there was nothing.
fn summary(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let fields = stats();
    let columns = arrays.iter().zip(&fields).map(|(one, field)| Ok(cast(one, field.data_type())?));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let Some(counts) = columns.first() else { return plan_err!("aggregates are asked for") };
    let some = counts.as_primitive::<Int64Type>().iter().map(|one| one.is_some_and(|one| 0 < one));
    let some: NullBuffer = some.collect::<Vec<bool>>().into();
    Ok(Arc::new(StructArray::try_new(fields, columns, Some(some))?))
}

/// The numbers below which shares of all values lie.
fn percentiles(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [shares, sketches] = arrays else { return plan_err!("a share and a sketch are asked for") };
    let shares = cast(shares, &DataType::Float64)?;
    let Some(sketches) = sketches.as_struct_opt() else {
        return plan_err!("a sketch is asked for");
    };
    let said = |(row, share): (usize, Option<f64>)| match share {
        Some(share) if !(0.0..=1.0).contains(&share) => {
            Err(wrong(&format!("percentile value {share} is not between 0 and 1")))
        }
        Some(share) => Ok(Sketch::of(sketches, row).and_then(|sketch| sketch.percentile(share))),
        None => Ok(None),
    };
    let shares = shares.as_primitive::<Float64Type>().iter();
    Ok(Arc::new(shares.enumerate().map(said).collect::<Result<Float64Array>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int64Array;

    #[test]
    fn areas_are_told_in_units() {
        for (unit, seconds) in [
            ("second", 1.0),
            ("Hours", 3600.0),
            ("millisecond", 1e-3),
            ("s", 1.0),
            ("ms", 1e-3),
            ("us", 1e-6),
            ("m", 60.0),
            ("h", 3600.0),
            ("day", 86_400.0),
            ("weeks", 604_800.0),
        ] {
            assert_eq!(seconds_of(unit).unwrap(), seconds, "{unit}");
        }
        for unit in ["fortnight", "", "hs s"] {
            assert!(seconds_of(unit).is_err(), "{unit}");
        }
    }

    #[test]
    fn a_summary_of_nothing_says_nothing() {
        let real = |one: Option<f64>| -> ArrayRef { Arc::new(Float64Array::from(vec![one, one])) };
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![0, 2]));
        let made =
            summary(&[counts, real(Some(8.0)), real(Some(4.0)), real(Some(9.0)), real(Some(16.0))]);
        let made = made.unwrap();
        let function = |name: &'static str, ask| Accessor {
            name,
            ask,
            signature: Signature::user_defined(Volatility::Immutable),
        };
        let spread = function("stats_stddev", Ask::Spread { is_root: true });
        let said = |word: Option<&str>| {
            let said = spread.ask(&made, word).unwrap();
            (said.is_null(0), said.as_primitive::<Float64Type>().value(1))
        };
        assert_eq!(said(None), (true, 4.0));
        assert_eq!(said(Some("POP")), (true, 3.0));
        assert!(spread.ask(&made, Some("x")).is_err());
        let sum = function(STATS_SUM, Ask::Sum).ask(&made, None).unwrap();
        assert_eq!((sum.is_null(0), sum.as_primitive::<Float64Type>().value(1)), (true, 8.0));
        assert!(function("rate", Ask::Field).ask(&made, None).is_err());
        let counts = function("num_vals", Ask::Field).ask(&made, None).unwrap();
        assert_eq!((counts.null_count(), counts.as_primitive::<Int64Type>().value(1)), (1, 2));
    }
}
