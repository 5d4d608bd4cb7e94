//! Aggregates whose memory is charged before they take it. DataFusion counts the state of an aggregate after each
//! batch, texts behind views not at all, and results never.
//!
//! ```text
//! batch ─► charge what the state may grow by ─► update ─► charge what the state is
//! end   ─► charge the result beside the state ─► evaluate ─► the result's array keeps its charge
//! ```

use crate::functions::aggregates::moving_floats::moving;
use crate::functions::aggregates::paired_floats;
use crate::functions::aggregates::string_agg::string_agg;
use crate::types::runtime::cancellation;
use crate::types::runtime::memory::{charge, charge_all, copied_size, kept_size, reservation};
use crate::types::special_fields::aggregate_field;
use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, BooleanArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};
use datafusion::prelude::SessionContext;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Aggregates that keep values, or may: of texts and arrays, or of those that are not equal.
const KEEPING: &[&str] = &[
    "any_value",
    "array_agg",
    "avg",
    "count",
    "first_value",
    "last_value",
    "max",
    "median",
    "min",
    "nth_value",
    "percentile_cont",
    "sum",
];
/// Aggregates with a state of a few numbers that have another implementation for moving frames.
const MOVING: &[&str] = &["stddev", "stddev_pop", "var", "var_pop"];

/// Charges the aggregates of a session.
pub fn register(context: &SessionContext) {
    for name in KEEPING.iter().chain(MOVING) {
        let inner = context.state().aggregate_functions().get(*name).cloned();
        if let Some(inner) = inner {
            context.register_udaf(charged(inner));
        }
    }
    context.register_udaf(string_agg());
    paired_floats::functions().for_each(|one| context.register_udaf(one));
}

/// An aggregate whose memory is charged.
pub fn charged(inner: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(Charged { inner, sorts: false, is_windowed: false })
}

/// `array_agg(DISTINCT ..)`, which sorts the values by itself. DataFusion gives it the order of another aggregate of the
/// query where both have an ORDER BY.
pub static DISTINCT_ARRAY_AGG: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    let inner = array_agg_udaf();
    Arc::new(AggregateUDF::from(Charged { inner, sorts: true, is_windowed: false }))
});

/// `array_agg` as a window function. A reversed one would gather the frames in the wrong order.
pub static WINDOW_ARRAY_AGG: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    let inner = array_agg_udaf();
    Arc::new(AggregateUDF::from(Charged { inner, sorts: false, is_windowed: true }))
});

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Charged {
    inner: Arc<AggregateUDF>,
    /// Whether it sorts the values by itself, and takes them in any order.
    sorts: bool,
    /// Whether it gathers frames of a window.
    is_windowed: bool,
}

/// Kind of data in the state of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// The arrays that came.
    Arrays,
    /// Copies of their values.
    Copies,
}

/// How the state of an aggregate is charged; none where it is a few numbers.
fn state_kind(name: &str, args: &AccumulatorArgs<'_>) -> Option<StateKind> {
    let has_long = args.expr_fields.iter().any(|field| !is_short(field.data_type()));
    match name {
        "array_agg" if !args.is_distinct && args.order_bys.is_empty() => Some(StateKind::Arrays),
        "array_agg" | "median" | "percentile_cont" => Some(StateKind::Copies),
        "count" if !args.is_distinct => None,
        name if MOVING.contains(&name) && !args.is_distinct => None,
        _ => (has_long || args.is_distinct).then_some(StateKind::Copies),
    }
}

fn is_short(of: &DataType) -> bool {
    of.is_primitive() || matches!(of, DataType::Boolean | DataType::Null)
}

impl AggregateUDFImpl for Charged {
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
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        Ok(aggregate_field(self.name(), fields, self.inner.return_field(fields)?))
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let kind = state_kind(self.name(), &args);
        let is_short = is_short(args.return_field.data_type());
        let inner = self.inner.accumulator(args)?;
        Ok(ChargedAccumulator::wrap(inner, kind, Growth { is_short, copies: 1 }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let kind = state_kind(self.name(), &args);
        let inner = self.inner.create_groups_accumulator(args)?;
        Ok(match (kind, reservation("aggregate")) {
            (Some(kind), Some(held)) => Box::new(ChargedGroups::new(inner, kind, held)),
            _ => inner,
        })
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        if let Some(moving) = moving(self.name(), &args) {
            return Ok(moving);
        }
        // Values leave it: what is left is what it says.
        let kind = state_kind(self.name(), &args).map(|_| StateKind::Copies);
        let is_short = is_short(args.return_field.data_type());
        let inner = self.inner.create_sliding_accumulator(args)?;
        Ok(ChargedAccumulator::wrap(inner, kind, Growth { is_short, copies: 1 }))
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_beneficial: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = self.inner.inner().clone().with_beneficial_ordering(is_beneficial)?;
        let charged = |inner| Charged {
            inner: Arc::new(AggregateUDF::new_from_shared_impl(inner)),
            sorts: self.sorts,
            is_windowed: self.is_windowed,
        };
        Ok(ordered.map(|inner| Arc::new(charged(inner)) as Arc<dyn AggregateUDFImpl>))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        match self.sorts {
            true => AggregateOrderSensitivity::Insensitive,
            false => self.inner.order_sensitivity(),
        }
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner.inner().simplify_expr_op_literal(function, arg, op, literal, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            _ if self.sorts || self.is_windowed => ReversedUDAF::NotSupported,
            ReversedUDAF::Reversed(inner) => ReversedUDAF::Reversed(Arc::new(charged(inner))),
            other => other,
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(args)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

/// Memory that the result of an aggregate takes beside its state.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Whether it is a number or a time.
    pub is_short: bool,
    /// Copies of the state that it is made of.
    pub copies: usize,
}

/// An accumulator whose memory is charged.
pub struct ChargedAccumulator {
    inner: Box<dyn Accumulator>,
    kind: StateKind,
    growth: Growth,
    held: MemoryReservation,
    /// Bytes of the state.
    state_size: usize,
    /// Bytes of a result of it.
    result_size: usize,
    /// Bytes of the results so far that no array holds.
    results_size: usize,
    /// Buffers that are kept already.
    seen: HashSet<usize>,
    evaluations: usize,
}

impl fmt::Debug for ChargedAccumulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Charged({:?})", self.inner)
    }
}

impl ChargedAccumulator {
    /// Charges an accumulator with such a state; leaves one without as it is.
    pub fn wrap(
        inner: Box<dyn Accumulator>,
        kind: Option<StateKind>,
        growth: Growth,
    ) -> Box<dyn Accumulator> {
        let (Some(kind), Some(held)) = (kind, reservation("aggregate")) else { return inner };
        Box::new(ChargedAccumulator {
            inner,
            kind,
            growth,
            held,
            state_size: 0,
            result_size: 0,
            results_size: 0,
            seen: HashSet::new(),
            evaluations: 0,
        })
    }

    /// Takes some values, for which there is memory.
    fn take(
        &mut self,
        values: &[ArrayRef],
        take: impl FnOnce(&mut dyn Accumulator) -> Result<()>,
    ) -> Result<()> {
        if self.kind == StateKind::Arrays {
            let size = values.iter().map(|one| kept_size(one, &mut self.seen)).sum::<usize>();
            self.held.try_grow(size)?;
            self.state_size += size;
            self.result_size += values.iter().map(|one| joined_size(one)).sum::<usize>();
            return take(&mut *self.inner);
        }
        let size = values.iter().map(|one| copied_size(one)).fold(0, usize::saturating_add);
        // A list doubles its capacity as it grows.
        self.held.try_grow(size.saturating_mul(2))?;
        take(&mut *self.inner)?;
        self.settle()
    }

    /// Holds what the state takes.
    fn settle(&mut self) -> Result<()> {
        if self.kind == StateKind::Copies {
            self.state_size = self.inner.size();
            self.result_size = self.state_size;
        }
        self.held.try_resize(self.state_size.saturating_add(self.results_size))
    }

    /// Makes a result, for which there is memory.
    fn result<T>(&mut self, make: impl FnOnce(&mut dyn Accumulator) -> Result<T>) -> Result<T> {
        self.held.try_grow(self.result_size.saturating_mul(self.growth.copies))?;
        make(&mut *self.inner)
    }

    /// Charges a value, which may be one of many that a window function makes.
    fn keep(&mut self, value: ScalarValue) -> Result<ScalarValue> {
        let is_first = self.evaluations == 0;
        self.evaluations += 1;
        match value {
            ScalarValue::List(list) => {
                self.settle()?;
                let list: ArrayRef = list;
                let list = match is_first {
                    true => charge("aggregate", list, &[])?,
                    false => charge_all("aggregate", list, &[])?,
                };
                Ok(ScalarValue::List(Arc::new(list.as_list::<i32>().clone())))
            }
            value => {
                // A copy of it is on its way into an array.
                let size = value.size().saturating_sub(size_of::<ScalarValue>());
                self.results_size = self.results_size.saturating_add(size.saturating_mul(2));
                self.settle()?;
                Ok(value)
            }
        }
    }
}

/// Bytes that joining an array with others takes: values behind views are shared.
fn joined_size(array: &dyn Array) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or(0)
}

impl Accumulator for ChargedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(values, |inner| inner.update_batch(values))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // A window function evaluates all values so far for each row.
        cancellation::check()?;
        if self.growth.is_short {
            return self.inner.evaluate();
        }
        let value = self.result(|inner| inner.evaluate())?;
        self.keep(value)
    }

    fn size(&self) -> usize {
        // The state is charged here.
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.result(|inner| inner.state())?;
        values.into_iter().map(|value| self.keep(value)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.take(states, |inner| inner.merge_batch(states))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)?;
        self.settle()
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// Bytes that a row of a group takes beside its value: where it is, and where it goes.
const ROW_SIZE: usize = 16;
const ROW_RESULT_SIZE: usize = 32;

/// The accumulators of many groups, whose memory is charged.
struct ChargedGroups {
    inner: Box<dyn GroupsAccumulator>,
    kind: StateKind,
    held: MemoryReservation,
    /// Bytes of the state.
    state_size: usize,
    /// Bytes of a result of all of it.
    result_size: usize,
    /// Buffers that are kept already.
    seen: HashSet<usize>,
}

impl ChargedGroups {
    fn new(
        inner: Box<dyn GroupsAccumulator>,
        kind: StateKind,
        held: MemoryReservation,
    ) -> ChargedGroups {
        ChargedGroups { inner, kind, held, state_size: 0, result_size: 0, seen: HashSet::new() }
    }

    fn take(
        &mut self,
        values: &[ArrayRef],
        take: impl FnOnce(&mut dyn GroupsAccumulator) -> Result<()>,
    ) -> Result<()> {
        if self.kind == StateKind::Arrays {
            let rows: usize = values.iter().map(|one| rows_of(one)).sum();
            let size = values.iter().map(|one| kept_size(one, &mut self.seen)).sum::<usize>();
            let size = size + rows * ROW_SIZE;
            self.held.try_grow(size)?;
            self.state_size += size;
            let joined = values.iter().map(|one| joined_size(one)).sum::<usize>();
            self.result_size += joined + rows * ROW_RESULT_SIZE;
            return take(&mut *self.inner);
        }
        let size = values.iter().map(|one| copied_size(one)).fold(0, usize::saturating_add);
        self.held.try_grow(size.saturating_mul(2))?;
        take(&mut *self.inner)?;
        self.state_size = self.inner.size();
        self.result_size = self.state_size;
        self.held.try_resize(self.state_size)
    }

    fn emit(
        &mut self,
        emit_to: EmitTo,
        emit: impl FnOnce(&mut dyn GroupsAccumulator) -> Result<Vec<ArrayRef>>,
    ) -> Result<Vec<ArrayRef>> {
        self.held.try_grow(self.result_size)?;
        let emitted = emit(&mut *self.inner)?;
        self.state_size = self.inner.size();
        self.result_size = self.state_size;
        if matches!(emit_to, EmitTo::All) {
            self.seen.clear();
        }
        self.held.try_resize(self.state_size)?;
        emitted.into_iter().map(|array| charge("aggregate", array, &[])).collect()
    }
}

/// Values of an array, or of the lists in it.
fn rows_of(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().values().len(),
        _ => array.len(),
    }
}

impl GroupsAccumulator for ChargedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.take(values, |inner| {
            inner.update_batch(values, group_indices, filter, total_num_groups)
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let mut made = self.emit(emit_to, |inner| Ok(vec![inner.evaluate(emit_to)?]))?;
        Ok(made.remove(0))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.emit(emit_to, |inner| inner.state(emit_to))
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.take(values, |inner| inner.merge_batch(values, group_indices, total_num_groups))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        // The state is charged here.
        size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::runtime::memory::tests::within;
    use datafusion::arrow::array::{Int64Array, LargeStringArray, StringViewArray};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use datafusion::functions_aggregate::array_agg::ArrayAggAccumulator;
    use datafusion::functions_aggregate::array_agg::DistinctArrayAggAccumulator;

    fn pool(size: usize) -> Arc<dyn MemoryPool> {
        Arc::new(GreedyMemoryPool::new(size))
    }

    fn texts(count: usize) -> ArrayRef {
        let text = |at: usize| format!("{at}{}", "x".repeat(1000));
        Arc::new((0..count).map(|at| Some(text(at))).collect::<StringViewArray>())
    }

    const LONG: Growth = Growth { is_short: false, copies: 1 };

    #[test]
    fn kept_arrays_are_charged_before_they_are_kept() {
        let pool = pool(5 << 19);
        within(&pool, || {
            let inner = Box::new(ArrayAggAccumulator::try_new(&DataType::Utf8View, false)?);
            let mut kept = ChargedAccumulator::wrap(inner, Some(StateKind::Arrays), LONG);
            kept.update_batch(&[texts(1000)])?;
            assert!(1_000_000 <= pool.reserved(), "{}", pool.reserved());
            let whole = texts(1000);
            kept.update_batch(&[whole.slice(0, 1)])?;
            let before = pool.reserved();
            kept.update_batch(&[whole.slice(1, 1)])?;
            assert_eq!(pool.reserved(), before, "its buffers are kept already");
            let error = kept.update_batch(&[texts(1000)]).unwrap_err();
            assert!(error.to_string().contains("Resources exhausted"), "{error}");
            assert_eq!(pool.reserved(), before);
            let error = kept.evaluate().unwrap_err();
            assert!(error.to_string().contains("Resources exhausted"), "the list: {error}");
            Ok::<_, datafusion::common::DataFusionError>(())
        })
        .unwrap();
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn copies_and_results_are_charged() {
        let pool = pool(8 << 20);
        within(&pool, || {
            let distinct = DistinctArrayAggAccumulator::try_new(&DataType::Utf8View, None, false)?;
            let mut kept =
                ChargedAccumulator::wrap(Box::new(distinct), Some(StateKind::Copies), LONG);
            kept.update_batch(&[texts(1000)])?;
            let state = pool.reserved();
            assert!((1_000_000..3_000_000).contains(&state), "{state}");
            let list = kept.evaluate()?;
            assert!(state + 1_000_000 <= pool.reserved(), "{}", pool.reserved());
            drop(kept);
            assert!(1_000_000 <= pool.reserved(), "the list is charged: {}", pool.reserved());
            drop(list);
            assert_eq!(pool.reserved(), 0);
            Ok::<_, datafusion::common::DataFusionError>(())
        })
        .unwrap();
    }

    #[test]
    fn many_results_of_one_state_are_charged_together() {
        let pool = pool(1 << 20);
        within(&pool, || {
            let inner = Box::new(ArrayAggAccumulator::try_new(&DataType::Int64, false)?);
            let mut kept = ChargedAccumulator::wrap(inner, Some(StateKind::Arrays), LONG);
            // A list of two arrays is a copy; one of one array shares its memory.
            for numbers in [0..500, 500..1000] {
                kept.update_batch(&[Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef])?;
            }
            let (mut lists, mut refused) = (Vec::new(), false);
            for _ in 0..1000 {
                match kept.evaluate() {
                    Ok(list) => lists.push(list),
                    Err(_) => refused = true,
                }
            }
            assert!(refused && lists.len() < 200, "{}", lists.len());
            Ok::<_, datafusion::common::DataFusionError>(())
        })
        .unwrap();
    }

    #[test]
    fn few_numbers_are_not_charged() {
        assert_eq!(joined_size(&LargeStringArray::from(vec!["abc"])), 16 + 3);
        let field: FieldRef =
            Arc::new(datafusion::arrow::datatypes::Field::new("x", DataType::Int64, true));
        let schema = datafusion::arrow::datatypes::Schema::empty();
        let args = |is_distinct| AccumulatorArgs {
            return_field: field.clone(),
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: "x",
            is_distinct,
            exprs: &[],
            expr_fields: std::slice::from_ref(&field),
        };
        assert_eq!(state_kind("sum", &args(false)), None);
        assert_eq!(state_kind("max", &args(false)), None);
        assert_eq!(state_kind("sum", &args(true)), Some(StateKind::Copies));
        assert_eq!(state_kind("median", &args(false)), Some(StateKind::Copies));
        assert_eq!(state_kind("array_agg", &args(false)), Some(StateKind::Arrays));
    }
}
