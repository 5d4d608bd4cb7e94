//! `sum`, `avg`, `stddev` and `variance` of whole numbers and of `numeric`: exact, and with the scales of
//! PostgreSQL's results. Those of floats are DataFusion's.

use crate::functions::aggregates::interval_averages;
use crate::functions::aggregates::interval_averages::IntervalAverage;
use crate::functions::aggregates::taken::each_taken;
use crate::types::error::SqlError;
use crate::types::numeric::arithmetic::{divide, divided, quotient_scale, root_of};
use crate::types::numeric::conversions::{decimals, outside};
use crate::types::numeric::value::{Decimal, NUMERIC, Numeric, PRECISION, SCALE, too_long};
use crate::types::time::intervals::INTERVAL;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Decimal256Array, Int64Array, ListArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal256Type, Field, FieldRef, Int64Type, i256};
use datafusion::common::{Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs, Volatility,
};
use datafusion::prelude::SessionContext;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Sum,
    Avg,
    Deviation,
    DeviationOfAll,
    Variance,
    VarianceOfAll,
}

const KINDS: &[(&str, Kind)] = &[
    ("sum", Kind::Sum),
    ("avg", Kind::Avg),
    ("stddev", Kind::Deviation),
    ("stddev_pop", Kind::DeviationOfAll),
    ("var", Kind::Variance),
    ("var_pop", Kind::VarianceOfAll),
];

/// Digits of a sum on its way.
const STATE: DataType = DataType::Decimal256(PRECISION, 0);

/// Gives aggregates of floats their variants.
pub fn register(context: &SessionContext) {
    for (name, kind) in KINDS {
        let inner = context.state().aggregate_functions().get(*name).cloned();
        if let Some(inner) = inner {
            let signature = Signature::user_defined(Volatility::Immutable);
            context.register_udaf(AggregateUDF::from(Overloaded { inner, kind: *kind, signature }));
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Overloaded {
    inner: Arc<AggregateUDF>,
    kind: Kind,
    signature: Signature,
}

/// Whether numbers of a type are summed up here.
fn is_exact(ty: &DataType) -> bool {
    ty.is_decimal() || ty.is_integer()
}

fn is_short(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16
    )
}

impl Overloaded {
    fn returns(&self, ty: &DataType) -> DataType {
        match self.kind {
            Kind::Sum if is_short(ty) => DataType::Int64,
            _ => NUMERIC,
        }
    }

    fn is_meant(&self, args: &AccumulatorArgs<'_>) -> bool {
        args.expr_fields.first().is_some_and(|field| is_exact(field.data_type()))
    }

    fn is_average_of_intervals(&self, types: &[&DataType]) -> bool {
        self.kind == Kind::Avg && matches!(types, [DataType::Interval(_)])
    }

    /// The accumulator of an average of intervals; none for other arguments.
    fn interval_average(&self, args: &AccumulatorArgs<'_>) -> Result<Option<Box<dyn Accumulator>>> {
        let types: Vec<_> = args.expr_fields.iter().map(|field| field.data_type()).collect();
        if !self.is_average_of_intervals(&types) {
            return Ok(None);
        }
        match args.is_distinct {
            true => not_impl_err!("avg(DISTINCT interval)"),
            false => Ok(Some(Box::new(IntervalAverage::default()))),
        }
    }
}

impl AggregateUDFImpl for Overloaded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.human_display(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.display_name(params)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let one: Vec<&DataType> = types.iter().collect();
        if matches!(types, [one] if is_exact(one)) || self.is_average_of_intervals(&one) {
            return Ok(types.to_vec());
        }
        let fields: Vec<FieldRef> =
            types.iter().map(|ty| Arc::new(Field::new("", ty.clone(), true))).collect();
        let coerced = fields_with_udf(&fields, self.inner.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [one] if is_exact(one) => Ok(self.returns(one)),
            [one] if self.is_average_of_intervals(&[one]) => Ok(INTERVAL),
            _ => self.inner.return_type(types),
        }
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        match fields {
            [one] if is_exact(one.data_type()) => {
                Ok(Arc::new(Field::new(self.name(), self.returns(one.data_type()), true)))
            }
            [one] if self.is_average_of_intervals(&[one.data_type()]) => {
                Ok(Arc::new(Field::new(self.name(), INTERVAL, true)))
            }
            _ => self.inner.return_field(fields),
        }
    }

    fn is_nullable(&self) -> bool {
        true
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if let Some(average) = self.interval_average(&args)? {
            return Ok(average);
        }
        if !self.is_meant(&args) {
            return self.inner.accumulator(args);
        }
        let accumulator = NumberAccumulator::new(self.kind, args.return_field.data_type());
        Ok(match args.is_distinct {
            true => Box::new(DistinctAccumulator { of: accumulator, seen: HashSet::new() }),
            false => Box::new(accumulator),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let types: Vec<_> = args.input_fields.iter().map(|field| field.data_type()).collect();
        if self.is_average_of_intervals(&types) {
            return Ok(interval_averages::state_fields(args.name));
        }
        if !args.input_fields.first().is_some_and(|field| is_exact(field.data_type())) {
            return self.inner.state_fields(args);
        }
        let field =
            |name: &str, ty| Arc::new(Field::new(format_state_name(args.name, name), ty, true));
        if args.is_distinct {
            return Ok(vec![field("values", DataType::new_list(NUMERIC, true))]);
        }
        Ok(vec![
            field("count", DataType::Int64),
            field("special", DataType::Int64),
            field("sum", STATE),
            field("squares", STATE),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        match self.is_meant(&args) {
            true => !args.is_distinct,
            false => {
                let types: Vec<_> = args.expr_fields.iter().map(|one| one.data_type()).collect();
                !self.is_average_of_intervals(&types)
                    && self.inner.groups_accumulator_supported(args)
            }
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match self.is_meant(&args) {
            true => {
                let returns = args.return_field.data_type().clone();
                Ok(Box::new(Groups { kind: self.kind, returns, all: Vec::new() }))
            }
            false => self.inner.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        if let Some(average) = self.interval_average(&args)? {
            return Ok(average);
        }
        if !self.is_meant(&args) {
            return self.inner.create_sliding_accumulator(args);
        }
        let mut accumulator = NumberAccumulator::new(self.kind, args.return_field.data_type());
        accumulator.scales = Some(BTreeMap::new());
        Ok(Box::new(accumulator))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        None
    }

    fn simplify_expr_op_literal(
        &self,
        _: &AggregateFunction,
        _: &Expr,
        _: Operator,
        _: &Expr,
        _: bool,
    ) -> Result<Option<Expr>> {
        Ok(None)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn value_from_stats(&self, _: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        None
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        ScalarValue::try_from(data_type)
    }

    fn set_monotonicity(&self, _: &DataType) -> SetMonotonicity {
        SetMonotonicity::NotMonotonic
    }
}

/// Values that are no finite numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Special {
    nan: i16,
    infinity: i16,
    negative: i16,
}

impl Special {
    const BITS: u32 = 16;

    fn of(packed: i64, scale: &mut u8) -> Special {
        let part = |at: u32| (packed >> (at * Special::BITS)) as i16;
        *scale = u8::try_from(part(0)).unwrap_or(0);
        Special { nan: part(1), infinity: part(2), negative: part(3) }
    }

    fn packed(self, scale: u8) -> i64 {
        let part = |one: i16, at: u32| i64::from(one.cast_unsigned()) << (at * Special::BITS);
        i64::from(scale) | part(self.nan, 1) | part(self.infinity, 2) | part(self.negative, 3)
    }

    fn count(&mut self, value: &Numeric, by: i16) {
        let one = match value {
            Numeric::NaN => &mut self.nan,
            Numeric::Infinity => &mut self.infinity,
            Numeric::NegativeInfinity => &mut self.negative,
            Numeric::Finite(_) => return,
        };
        *one = one.saturating_add(by);
    }
}

/// The numbers of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    count: i64,
    special: Special,
    /// Digits behind the point of the sum; the squares have twice as many.
    scale: u8,
    sum: i256,
    squares: i256,
}

impl Total {
    fn widen(&mut self, scale: u8) -> Result<(), SqlError> {
        if self.scale < scale {
            self.sum = Decimal::new(self.sum, self.scale).units_at(scale)?;
            self.squares = Decimal::new(self.squares, 2 * self.scale).units_at(2 * scale)?;
            self.scale = scale;
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind, value: &Numeric, by: i16) -> Result<(), SqlError> {
        self.count += i64::from(by);
        let Numeric::Finite(value) = value else {
            self.special.count(value, by);
            return Ok(());
        };
        self.widen(value.scale)?;
        let units = value.units_at(self.scale)?;
        let signed = |one: i256| if by < 0 { one.wrapping_neg() } else { one };
        self.sum = self.sum.checked_add(signed(units)).ok_or_else(too_long)?;
        if !matches!(kind, Kind::Sum | Kind::Avg) {
            let square = units.checked_mul(units).ok_or_else(too_long)?;
            self.squares = self.squares.checked_add(signed(square)).ok_or_else(too_long)?;
        }
        Ok(())
    }

    fn merge(&mut self, mut other: Total) -> Result<(), SqlError> {
        self.widen(other.scale)?;
        other.widen(self.scale)?;
        self.count += other.count;
        self.special = Special {
            nan: self.special.nan.saturating_add(other.special.nan),
            infinity: self.special.infinity.saturating_add(other.special.infinity),
            negative: self.special.negative.saturating_add(other.special.negative),
        };
        self.sum = self.sum.checked_add(other.sum).ok_or_else(too_long)?;
        self.squares = self.squares.checked_add(other.squares).ok_or_else(too_long)?;
        Ok(())
    }

    /// Returns NaN or an infinity if one of the numbers makes the result that; None if all numbers are finite.
    fn special(&self, kind: Kind) -> Option<Numeric> {
        let Special { nan, infinity, negative } = self.special;
        let is_sum = matches!(kind, Kind::Sum | Kind::Avg);
        match (nan, infinity, negative) {
            (0, 0, 0) => None,
            (0, _, 0) if is_sum => Some(Numeric::Infinity),
            (0, 0, _) if is_sum => Some(Numeric::NegativeInfinity),
            _ => Some(Numeric::NaN),
        }
    }

    fn result(&self, kind: Kind) -> Result<Option<Numeric>, SqlError> {
        let least = if matches!(kind, Kind::Deviation | Kind::Variance) { 2 } else { 1 };
        if self.count < least {
            return Ok(None);
        }
        if let Some(special) = self.special(kind) {
            return Ok(Some(special));
        }
        let sum = Decimal::new(self.sum, self.scale);
        let count = Decimal::whole(i128::from(self.count));
        Ok(Some(match kind {
            Kind::Sum => sum.into(),
            Kind::Avg => divide(&sum.into(), &count.into())?,
            _ => self.spread(kind)?,
        }))
    }

    /// `(n * sum(x ^ 2) - sum(x) ^ 2) / (n * (n - 1))`.
    fn spread(&self, kind: Kind) -> Result<Numeric, SqlError> {
        let count = i256::from_i128(i128::from(self.count));
        let of_squares = self.squares.checked_mul(count).ok_or_else(too_long)?;
        let of_sum = self.sum.checked_mul(self.sum).ok_or_else(too_long)?;
        let difference = of_squares.checked_sub(of_sum).ok_or_else(too_long)?;
        if difference <= i256::ZERO {
            return Ok(Decimal::whole(0).into());
        }
        let is_sample = matches!(kind, Kind::Deviation | Kind::Variance);
        let others = i128::from(self.count) - i128::from(is_sample);
        let divisor = Decimal::whole(i128::from(self.count) * others);
        let difference = Decimal::new(difference, 2 * self.scale);
        let scale = quotient_scale(&difference, &divisor);
        let variance = divided(&difference, &divisor, scale)?;
        Ok(match kind {
            Kind::Deviation | Kind::DeviationOfAll => root_of(&variance, scale)?.into(),
            _ => variance.into(),
        })
    }
}

fn results(totals: &[Total], kind: Kind, returns: &DataType) -> Result<ArrayRef> {
    if *returns == DataType::Int64 {
        let whole = |total: &Total| -> Result<Option<i64>> {
            let made = total.result(kind).map_err(outside)?;
            made.map(|one| one.to_i64()).transpose().map_err(outside)
        };
        let all: Int64Array = totals.iter().map(whole).collect::<Result<_>>()?;
        return Ok(Arc::new(all));
    }
    let raw = |total: &Total| -> Result<Option<i256>> {
        let made = total.result(kind).map_err(outside)?;
        made.map(|one| one.encode()).transpose().map_err(outside)
    };
    let all: Decimal256Array = totals.iter().map(raw).collect::<Result<_>>()?;
    Ok(Arc::new(all.with_precision_and_scale(PRECISION, SCALE)?))
}

fn states(totals: &[Total]) -> Result<Vec<ArrayRef>> {
    let counts: Int64Array = totals.iter().map(|one| Some(one.count)).collect();
    let special: Int64Array =
        totals.iter().map(|one| Some(one.special.packed(one.scale))).collect();
    let wide = |of: fn(&Total) -> i256| -> Result<ArrayRef> {
        let all: Decimal256Array = totals.iter().map(|one| Some(of(one))).collect();
        Ok(Arc::new(all.with_precision_and_scale(PRECISION, 0)?))
    };
    Ok(vec![Arc::new(counts), Arc::new(special), wide(|one| one.sum)?, wide(|one| one.squares)?])
}

fn totals_of(states: &[ArrayRef]) -> Vec<Option<Total>> {
    let counts = states[0].as_primitive::<Int64Type>();
    let special = states[1].as_primitive::<Int64Type>();
    let (sums, squares) =
        (states[2].as_primitive::<Decimal256Type>(), states[3].as_primitive::<Decimal256Type>());
    let total = |row: usize| {
        counts.is_valid(row).then(|| {
            let mut scale = 0;
            let special = Special::of(special.value(row), &mut scale);
            let (sum, squares) = (sums.value(row), squares.value(row));
            Total { count: counts.value(row), special, scale, sum, squares }
        })
    };
    (0..counts.len()).map(total).collect()
}

/// Hands on the numbers of a column.
fn each(
    values: &ArrayRef,
    filter: Option<&BooleanArray>,
    mut take: impl FnMut(usize, Numeric) -> Result<(), SqlError>,
) -> Result<()> {
    let mut failure = Ok(());
    let mut keep = |done: Result<(), SqlError>| {
        if failure.is_ok() {
            failure = done;
        }
    };
    if values.data_type().is_integer() {
        let wide = cast(values, &DataType::Int64)?;
        each_taken(wide.as_primitive::<Int64Type>(), filter, |row, value| {
            keep(take(row, Decimal::whole(i128::from(value)).into()));
        });
    } else {
        let all = decimals(values)?;
        each_taken(&all, filter, |row, raw| keep(take(row, Numeric::decode(raw))));
    }
    failure.map_err(outside)
}

/// All groups.
#[derive(Debug)]
struct Groups {
    kind: Kind,
    returns: DataType,
    all: Vec<Total>,
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.all.resize(count.max(self.all.len()), Total::default());
        let (kind, all) = (self.kind, &mut self.all);
        each(&values[0], filter, |row, value| all[groups[row]].add(kind, &value, 1))
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        results(&emit_to.take_needed(&mut self.all), self.kind, &self.returns)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        states(&emit_to.take_needed(&mut self.all))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.all.resize(count.max(self.all.len()), Total::default());
        for (row, total) in totals_of(states).into_iter().enumerate() {
            if let Some(total) = total {
                self.all[groups[row]].merge(total).map_err(outside)?;
            }
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        // Each row is a group.
        let mut all = vec![Total::default(); values[0].len()];
        each(&values[0], filter, |row, value| all[row].add(self.kind, &value, 1))?;
        states(&all)
    }

    fn size(&self) -> usize {
        self.all.capacity() * size_of::<Total>()
    }
}

/// The state of one group. Moving window frames remove values from it again.
#[derive(Debug)]
struct NumberAccumulator {
    kind: Kind,
    returns: DataType,
    total: Total,
    /// Counts of numbers by their scale; needed only where values are removed.
    scales: Option<BTreeMap<u8, i64>>,
}

impl NumberAccumulator {
    fn new(kind: Kind, returns: &DataType) -> NumberAccumulator {
        NumberAccumulator { kind, returns: returns.clone(), total: Total::default(), scales: None }
    }

    fn take(&mut self, values: &ArrayRef, by: i16) -> Result<()> {
        let (kind, total, scales) = (self.kind, &mut self.total, &mut self.scales);
        each(values, None, |_, value| {
            if let (Some(scales), Numeric::Finite(value)) = (scales.as_mut(), &value) {
                *scales.entry(value.scale).or_default() += i64::from(by);
            }
            total.add(kind, &value, by)
        })
    }

    /// The numbers, with no more digits behind the point than they have.
    fn shown(&self) -> Result<Total> {
        let mut total = self.total;
        let Some(scales) = &self.scales else { return Ok(total) };
        let most =
            scales.iter().rev().find(|(_, count)| 0 < **count).map_or(0, |(scale, _)| *scale);
        if most < total.scale {
            let shorter = |units, from: u8, to: u8| {
                let fewer = crate::types::numeric::value::power_of_10(u32::from(from - to));
                fewer.map_or(units, |power| i256::wrapping_div(units, power))
            };
            total.sum = shorter(total.sum, total.scale, most);
            total.squares = shorter(total.squares, 2 * total.scale, 2 * most);
            total.scale = most;
        }
        Ok(total)
    }
}

impl Accumulator for NumberAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0], 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0], -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let made = results(&[self.shown()?], self.kind, &self.returns)?;
        ScalarValue::try_from_array(&made, 0)
    }

    fn size(&self) -> usize {
        size_of::<NumberAccumulator>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let made = states(&[self.total])?;
        made.iter().map(|one| ScalarValue::try_from_array(one, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for total in totals_of(states).into_iter().flatten() {
            self.total.merge(total).map_err(outside)?;
        }
        Ok(())
    }
}

/// The state of one group with DISTINCT: equal values count once.
#[derive(Debug)]
struct DistinctAccumulator {
    of: NumberAccumulator,
    seen: HashSet<i256>,
}

impl Accumulator for DistinctAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for raw in decimals(&values[0])?.iter().flatten() {
            if self.seen.insert(Numeric::key(raw)) {
                self.of.total.add(self.of.kind, &Numeric::decode(raw), 1).map_err(outside)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.of.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<DistinctAccumulator>() + self.seen.capacity() * (size_of::<i256>() + 8)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self
            .seen
            .iter()
            .map(|raw| ScalarValue::Decimal256(Some(*raw), PRECISION, SCALE))
            .collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &NUMERIC))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists: &ListArray = states[0].as_list();
        for list in lists.iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(kind: Kind, texts: &[&str]) -> String {
        let mut total = Total::default();
        for text in texts {
            total.add(kind, &Numeric::parse(text).unwrap(), 1).unwrap();
        }
        total.result(kind).unwrap().map_or("null".into(), |one| one.text())
    }

    /// Answers are PostgreSQL 15's.
    #[test]
    fn results_are_those_of_postgresql() {
        assert_eq!(total(Kind::Sum, &["1.50", "2"]), "3.50");
        assert_eq!(total(Kind::Avg, &["1", "2"]), "1.5000000000000000");
        assert_eq!(total(Kind::Avg, &["1", "2", "2"]), "1.6666666666666667");
        assert_eq!(total(Kind::Variance, &["1", "2", "4"]), "2.3333333333333333");
        assert_eq!(total(Kind::Deviation, &["1", "2", "4"]), "1.5275252316519467");
        assert_eq!(total(Kind::VarianceOfAll, &["1.5", "2.25"]), "0.14062500000000000000");
        assert_eq!(total(Kind::Variance, &["1"]), "null");
        assert_eq!(total(Kind::VarianceOfAll, &["1"]), "0");
        assert_eq!(total(Kind::Sum, &["1", "Infinity"]), "Infinity");
        assert_eq!(total(Kind::Sum, &["-Infinity", "Infinity"]), "NaN");
    }

    #[test]
    fn states_are_merged_and_values_leave_again() {
        let mut groups = Groups { kind: Kind::Sum, returns: DataType::Int64, all: Vec::new() };
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), Some(7), None]));
        let filter = BooleanArray::from(vec![Some(true), None, Some(true)]);
        let states = groups.convert_to_state(&[values], Some(&filter)).unwrap();
        groups.merge_batch(&states, &[1, 0, 0], 2).unwrap();
        let made = groups.evaluate(EmitTo::All).unwrap();
        assert_eq!(made.as_primitive::<Int64Type>(), &Int64Array::from(vec![None, Some(5)]));
        let mut accumulator = NumberAccumulator::new(Kind::Sum, &DataType::Int64);
        let most: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(1)]));
        accumulator.update_batch(std::slice::from_ref(&most)).unwrap();
        assert!(accumulator.evaluate().unwrap_err().to_string().contains("out of range"));
        let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        accumulator.retract_batch(&[one]).unwrap();
        assert_eq!(accumulator.evaluate().unwrap(), ScalarValue::Int64(Some(i64::MAX)));
    }
}
