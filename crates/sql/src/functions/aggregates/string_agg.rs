//! `string_agg` whose memory is charged before it is taken, with a bound on its delimiter. It keeps the texts that
//! come and joins them once, into a text that rows can share. DataFusion's copies each text as it comes, into one
//! that doubles, and then once or twice more.
//!
//! With `DISTINCT` or `ORDER BY` it is DataFusion's, charged.

use crate::functions::aggregates::charged_aggregates::{ChargedAccumulator, Growth, StateKind};
use crate::types::error::SqlError;
use crate::types::runtime::memory::{charge, kept_size, reservation};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::expressions::Literal;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Bytes of a delimiter.
const DELIMITER_SIZE_MAX: usize = 128;
/// Bytes of results that share a buffer: an offset into it has four.
const SHARED_SIZE_MAX: usize = 1 << 30;
/// Bytes of a result, as PostgreSQL has it.
const RESULT_SIZE_MAX: usize = 1 << 30;
/// Bytes that a row takes beside its text while it waits, and when it is joined.
const ROW_SIZE: usize = 16;
const ROW_RESULT_SIZE: usize = 16;

/// The function.
pub fn string_agg() -> AggregateUDF {
    AggregateUDF::from(StringAgg { inner: string_agg_udaf() })
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StringAgg {
    inner: Arc<AggregateUDF>,
}

/// The delimiter. One that is no literal is a constant too long to be folded, or none at all.
fn delimiter(args: &AccumulatorArgs<'_>) -> Result<String> {
    let Some(given) = args.exprs.get(1) else { return Ok(String::new()) };
    let Some(literal) = given.downcast_ref::<Literal>() else {
        let error = match collect_columns(given).is_empty() {
            true => SqlError::limit(too_long("more than thousands of")),
            false => SqlError::unsupported("string_agg takes a constant delimiter"),
        };
        return Err(DataFusionError::External(Box::new(error)));
    };
    let text = literal.value().try_as_str().flatten().unwrap_or_default();
    if text.len() <= DELIMITER_SIZE_MAX {
        return Ok(text.to_string());
    }
    let error = SqlError::limit(too_long(&text.len().to_string()));
    Err(DataFusionError::External(Box::new(error)))
}

fn too_long(size: &str) -> String {
    format!("string_agg with a delimiter of {size} bytes; {DELIMITER_SIZE_MAX} are the most")
}

fn is_plain(args: &AccumulatorArgs<'_>) -> bool {
    !args.is_distinct && args.order_bys.is_empty()
}

impl AggregateUDFImpl for StringAgg {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if args.is_distinct || !args.ordering_fields.is_empty() {
            return self.inner.state_fields(args);
        }
        let name = format_state_name(args.name, self.name());
        Ok(vec![Arc::new(Field::new(name, DataType::Utf8View, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let delimiter = delimiter(&args)?;
        if is_plain(&args) {
            return Ok(Box::new(Joined(Texts::new(delimiter))));
        }
        let inner = Box::new(Viewed(self.inner.accumulator(args)?));
        // A list of all, and the text that is made of it.
        let growth = Growth { is_short: false, copies: 2 };
        Ok(ChargedAccumulator::wrap(inner, Some(StateKind::Copies), growth))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        is_plain(&args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Texts::new(delimiter(&args)?)))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Reversed(Arc::new(AggregateUDF::from(self.clone())))
    }
}

/// DataFusion's accumulator, with a view as its result.
#[derive(Debug)]
struct Viewed(Box<dyn Accumulator>);

impl Accumulator for Viewed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.0.evaluate()? {
            ScalarValue::LargeUtf8(text) => ScalarValue::Utf8View(text),
            other => other,
        })
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }
}

/// Some texts that came together, and which row is of which group.
struct Batch {
    texts: StringViewArray,
    rows: Vec<(u32, u32)>,
}

/// The texts of many groups.
struct Texts {
    delimiter: String,
    batches: Vec<Batch>,
    groups: usize,
    held: Option<MemoryReservation>,
    /// Buffers that are kept already.
    seen: HashSet<usize>,
}

/// One group.
struct Span {
    size: usize,
    rows: usize,
}

impl Texts {
    fn new(delimiter: String) -> Texts {
        Texts {
            delimiter,
            batches: Vec::new(),
            groups: 0,
            held: reservation("string_agg"),
            seen: HashSet::new(),
        }
    }

    fn grow(&self, size: usize) -> Result<()> {
        self.held.as_ref().map_or(Ok(()), |held| held.try_grow(size))
    }

    fn shrink(&self, size: usize) {
        if let Some(held) = &self.held {
            held.shrink(size.min(held.size()));
        }
    }

    /// Keeps the texts that are there and that `is_taken`, each for the group that `group_of` says.
    fn keep(
        &mut self,
        values: &ArrayRef,
        is_taken: impl Fn(usize) -> bool,
        group_of: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let texts = cast(values, &DataType::Utf8View)?.as_string_view().clone();
        let taken = (0..texts.len()).filter(|row| texts.is_valid(*row) && is_taken(*row));
        let row = |row: usize| (group_of(row) as u32, row as u32);
        let rows: Vec<(u32, u32)> = taken.map(row).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let texts = compact(texts);
        let kept = kept_size(&texts, &mut self.seen);
        self.grow(kept + rows.capacity() * ROW_SIZE)?;
        self.batches.push(Batch { texts, rows });
        Ok(())
    }

    /// The sizes of the first groups.
    ///
    /// # Errors
    /// Fails when a text is longer than the limit.
    fn spans(&self, groups: usize) -> Result<Vec<Span>> {
        let mut spans: Vec<Span> = (0..groups).map(|_| Span { size: 0, rows: 0 }).collect();
        for batch in &self.batches {
            for (group, row) in &batch.rows {
                let Some(span) = spans.get_mut(*group as usize) else { continue };
                let between = if span.rows == 0 { 0 } else { self.delimiter.len() };
                span.size += between + batch.texts.value(*row as usize).len();
                span.rows += 1;
            }
        }
        let longest = spans.iter().map(|span| span.size).max().unwrap_or(0);
        if RESULT_SIZE_MAX < longest {
            let words = format!("string_agg makes {longest} bytes; {RESULT_SIZE_MAX} are the most");
            return Err(DataFusionError::External(Box::new(SqlError::limit(words))));
        }
        Ok(spans)
    }

    /// Where the texts of the first groups are, group by group.
    fn sorted(&self, spans: &[Span]) -> Vec<(u32, u32)> {
        let mut next = Vec::with_capacity(spans.len());
        let mut total = 0;
        for span in spans {
            next.push(total);
            total += span.rows;
        }
        let mut sorted = vec![(0, 0); total];
        for (at, batch) in self.batches.iter().enumerate() {
            for (group, row) in &batch.rows {
                let Some(place) = next.get_mut(*group as usize) else { continue };
                sorted[*place] = (at as u32, *row);
                *place += 1;
            }
        }
        sorted
    }

    /// The texts of the first groups, joined.
    fn joined(&self, groups: usize) -> Result<ArrayRef> {
        let spans = self.spans(groups)?;
        let rows: usize = spans.iter().map(|span| span.rows).sum();
        let size = spans.iter().map(|span| span.size).sum::<usize>();
        let needed = size + rows * ROW_RESULT_SIZE + groups * size_of::<Span>();
        self.grow(needed)?;
        let sorted = self.sorted(&spans);
        let mut made = StringViewBuilder::with_capacity(groups);
        let (mut rows, mut group) = (sorted.iter(), 0);
        while group < spans.len() {
            let end = end_of_shared(&spans, group);
            let shared = spans[group..end].iter().map(|span| span.size).sum();
            let mut bytes = Vec::with_capacity(shared);
            for span in &spans[group..end] {
                for (place, (batch, row)) in rows.by_ref().take(span.rows).enumerate() {
                    if place != 0 {
                        bytes.extend_from_slice(self.delimiter.as_bytes());
                    }
                    let text = self.batches[*batch as usize].texts.value(*row as usize);
                    bytes.extend_from_slice(text.as_bytes());
                }
            }
            let block = made.append_block(Buffer::from_vec(bytes));
            let mut offset = 0;
            for span in &spans[group..end] {
                match span.rows {
                    0 => made.append_null(),
                    _ => made.try_append_view(block, offset, span.size as u32)?,
                }
                offset += span.size as u32;
            }
            group = end;
        }
        let made = made.finish();
        self.shrink(needed);
        charge("string_agg", Arc::new(made), &[])
    }

    /// Forgets the first groups.
    fn forget(&mut self, groups: usize) {
        if self.groups <= groups {
            *self = Texts { held: self.held.take(), ..Texts::new(self.delimiter.clone()) };
            self.shrink(usize::MAX);
            return;
        }
        self.groups -= groups;
        for batch in &mut self.batches {
            batch.rows.retain(|(group, _)| groups <= *group as usize);
            batch.rows.iter_mut().for_each(|(group, _)| *group -= groups as u32);
        }
        self.batches.retain(|batch| !batch.rows.is_empty());
        self.seen.clear();
        let of = |batch: &Batch| {
            kept_size(&batch.texts, &mut self.seen) + batch.rows.capacity() * ROW_SIZE
        };
        let kept: usize = self.batches.iter().map(of).sum();
        let held = self.held.as_ref().map_or(0, MemoryReservation::size);
        self.shrink(held.saturating_sub(kept));
    }
}

/// The first group behind some that share a buffer.
fn end_of_shared(spans: &[Span], start: usize) -> usize {
    let mut size = spans[start].size;
    let fits = |span: &&Span| {
        size += span.size;
        size <= SHARED_SIZE_MAX
    };
    start + 1 + spans[start + 1..].iter().take_while(fits).count()
}

/// The same texts, without long buffers of which they view little.
fn compact(texts: StringViewArray) -> StringViewArray {
    let buffers: usize = texts.data_buffers().iter().map(Buffer::capacity).sum();
    let viewed: usize = texts.views().iter().map(|view| *view as u32 as usize).sum();
    match 2 * viewed + (64 << 10) < buffers {
        true => texts.gc(),
        false => texts,
    }
}

impl GroupsAccumulator for Texts {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups = total_num_groups;
        let is_taken = |row| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        self.keep(&values[0], is_taken, |row| group_indices[row])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = match emit_to {
            EmitTo::All => self.groups,
            EmitTo::First(groups) => groups,
        };
        let joined = self.joined(groups)?;
        self.forget(groups);
        Ok(joined)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let texts = cast(&values[0], &DataType::Utf8View)?;
        let Some(filter) = filter else { return Ok(vec![texts]) };
        let is_left_out: BooleanArray =
            filter.iter().map(|is_taken| Some(is_taken != Some(true))).collect();
        Ok(vec![datafusion::arrow::compute::nullif(&texts, &is_left_out)?])
    }

    fn size(&self) -> usize {
        // The texts are charged here.
        size_of_val(self)
    }
}

/// The texts of one group, which is all there is.
struct Joined(Texts);

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Joined")
    }
}

impl Joined {
    /// All texts, joined. They are gone then.
    fn take(&mut self) -> Result<Option<String>> {
        let texts = &mut self.0;
        let Some(span) = texts.spans(1)?.pop().filter(|span| span.rows != 0) else {
            return Ok(None);
        };
        // It is copied into an array.
        texts.grow(span.size.saturating_mul(2))?;
        let (mut joined, mut is_first) = (String::with_capacity(span.size), true);
        for batch in std::mem::take(&mut texts.batches) {
            for (_, row) in &batch.rows {
                if !std::mem::take(&mut is_first) {
                    joined.push_str(&texts.delimiter);
                }
                joined.push_str(batch.texts.value(*row as usize));
            }
        }
        let held = texts.held.as_ref().map_or(0, MemoryReservation::size);
        texts.shrink(held.saturating_sub(span.size.saturating_mul(2)));
        Ok(Some(joined))
    }
}

impl Accumulator for Joined {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.groups = 1;
        self.0.keep(&values[0], |_| true, |_| 0)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8View(self.take()?))
    }

    fn size(&self) -> usize {
        // The texts are charged here.
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::runtime::memory::tests::within;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    fn texts(all: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringViewArray::from(all.to_vec()))
    }

    fn shown(array: &ArrayRef) -> Vec<Option<&str>> {
        array.as_string_view().iter().collect()
    }

    #[test]
    fn texts_of_one_group_are_joined() {
        let mut joined = Joined(Texts::new(", ".into()));
        assert_eq!(joined.evaluate().unwrap(), ScalarValue::Utf8View(None));
        joined.update_batch(&[texts(&[None, Some(""), Some("b")])]).unwrap();
        joined.merge_batch(&[texts(&[Some("c, d"), None])]).unwrap();
        let text = ScalarValue::Utf8View(Some(", b, c, d".into()));
        assert_eq!(joined.evaluate().unwrap(), text);
    }

    #[test]
    fn texts_of_groups_are_joined_in_their_order() {
        let mut groups = Texts::new("-".into());
        let filter = BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]);
        let first = texts(&[Some("a"), Some("no"), Some("no"), Some("b")]);
        groups.update_batch(&[first], &[1, 0, 1, 0], Some(&filter), 3).unwrap();
        groups.update_batch(&[texts(&[Some("c"), Some("d")])], &[1, 3], None, 4).unwrap();
        let made = groups.evaluate(EmitTo::First(2)).unwrap();
        assert_eq!(shown(&made), [Some("b"), Some("a-c")]);
        groups.merge_batch(&[texts(&[Some("e")])], &[1], 2).unwrap();
        let made = groups.evaluate(EmitTo::All).unwrap();
        assert_eq!(shown(&made), [None, Some("d-e")]);
        groups.update_batch(&[texts(&[Some("f")])], &[0], None, 1).unwrap();
        assert_eq!(shown(&groups.state(EmitTo::All).unwrap()[0]), [Some("f")]);
        let values = [texts(&[Some("a"), Some("b"), None])];
        let filter = BooleanArray::from(vec![Some(false), Some(true), Some(true)]);
        let state = groups.convert_to_state(&values, Some(&filter)).unwrap();
        assert_eq!(shown(&state[0]), [None, Some("b"), None]);
    }

    #[test]
    fn texts_and_their_result_are_charged() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(8 << 20));
        let long = "x".repeat(1 << 20);
        within(&pool, || {
            let mut groups = Texts::new(",".into());
            for group in 0..3 {
                let text = texts(&[Some(&long)]);
                groups.update_batch(&[text], &[group], None, group + 1).unwrap();
            }
            let kept = pool.reserved();
            assert!((3 << 20..4 << 20).contains(&kept), "{kept}");
            let result = groups.evaluate(EmitTo::All).unwrap();
            let made = pool.reserved();
            assert!((3 << 20..4 << 20).contains(&made), "{made}");
            drop(result);
            assert_eq!(pool.reserved(), 0);
            for group in 0..5 {
                let text = texts(&[Some(&long)]);
                groups.update_batch(&[text], &[group], None, group + 1).unwrap();
            }
            let error = groups.evaluate(EmitTo::All).unwrap_err();
            assert!(error.to_string().contains("Resources exhausted"), "{error}");
            let mut joined = Joined(Texts::new(",".into()));
            let refused = (0..8).any(|_| joined.update_batch(&[texts(&[Some(&long)])]).is_err());
            assert!(refused);
        });
        assert_eq!(pool.reserved(), 0);
    }
}
