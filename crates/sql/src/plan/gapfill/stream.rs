//! Rows as they come, sorted by group and bucket, and those that are missing between them.
//!
//! A row that is made has the columns of its group, its bucket, and of others what [`Fill`] says.
//! Rows outside of the buckets that are asked for pass as they are.

use crate::plan::gapfill::buckets::{BUCKETS_MAX, Buckets, too_many};
use crate::plan::gapfill::sizes::{shared, size_of};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, RecordBatch, new_null_array,
};
use datafusion::arrow::compute::{cast, interleave};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef};
use datafusion::arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// Bytes of a batch of more than one row.
const BATCH_SIZE_MAX: usize = 1 << 20;

/// What a column has where a row is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub enum Fill {
    /// What all rows of the group have.
    Group,
    /// The bucket.
    Bucket,
    /// Nothing.
    Null,
    /// What the row before has.
    Last,
    /// What the last row has that has something; those without get it, too.
    LastKnown,
    /// What lies between the rows before and behind.
    Line,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// Among what was kept of the batch before.
    Kept,
    Row(usize),
}

/// A number that lines are drawn between.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i64),
    Real(f64),
}

/// What is known of a column in a group.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The value that is carried on, or the group's.
    value: Place,
    /// The bytes of a copy of it.
    size: usize,
    /// The last row's bucket and number.
    point: Option<(i64, Number)>,
}

struct Group {
    key: Option<OwnedRow>,
    /// The next bucket that there is to be a row of.
    next: Option<i64>,
    /// A row of the group.
    row: Place,
    known: Vec<Known>,
}

/// A batch of rows that is gone through.
struct Batch {
    columns: Vec<ArrayRef>,
    keys: Option<Rows>,
    buckets: Int64Array,
    /// Numbers of columns that lines are drawn through.
    numbers: Vec<Option<ArrayRef>>,
    len: usize,
    /// The row that is looked at.
    at: usize,
}

impl Batch {
    fn number(&self, column: usize, row: usize) -> Option<Number> {
        let numbers = self.numbers[column].as_ref().filter(|numbers| numbers.is_valid(row))?;
        Some(match numbers.data_type() {
            DataType::Int64 => Number::Whole(numbers.as_primitive::<Int64Type>().value(row)),
            _ => Number::Real(numbers.as_primitive::<Float64Type>().value(row)),
        })
    }

    fn bucket(&self, row: usize) -> Option<i64> {
        self.buckets.is_valid(row).then(|| self.buckets.value(row))
    }
}

/// Columns of rows that are put together.
enum Column {
    Places(Vec<Place>),
    Buckets(Vec<Option<i64>>),
    Numbers(Vec<Option<Number>>),
}

/// How much is made at a time.
pub struct Most {
    /// Rows.
    pub len: usize,
    /// What their bytes come out of.
    pub memory: MemoryReservation,
}

/// Fills the gaps between rows.
pub struct Filler {
    schema: SchemaRef,
    fills: Vec<Fill>,
    buckets: Buckets,
    converter: Option<RowConverter>,
    most: Most,
    /// Rows that were made.
    made: usize,
    batch: Batch,
    /// One value of each column.
    kept: Vec<ArrayRef>,
    group: Option<Group>,
    out: Vec<Column>,
    out_len: usize,
    out_size: usize,
    /// Rows and bytes that were given: steps behind put rows together until there are enough.
    given_len: usize,
    given_size: usize,
}

impl Filler {
    /// Of rows of a schema, which has texts that are [`shared`].
    ///
    /// # Errors
    /// When groups cannot be compared.
    pub fn new(
        schema: SchemaRef,
        fills: Vec<Fill>,
        buckets: Buckets,
        most: Most,
    ) -> Result<Filler> {
        let groups = schema.fields().iter().zip(&fills).filter(|(_, fill)| **fill == Fill::Group);
        let groups: Vec<SortField> =
            groups.map(|(field, _)| SortField::new(field.data_type().clone())).collect();
        let converter = (!groups.is_empty()).then(|| RowConverter::new(groups)).transpose()?;
        let none = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1));
        let (kept, empty) = (none.collect(), RecordBatch::new_empty(schema.clone()));
        let batch = Batch {
            columns: empty.columns().to_vec(),
            keys: None,
            buckets: Int64Array::from(Vec::<i64>::new()),
            numbers: vec![None; fills.len()],
            len: 0,
            at: 0,
        };
        let mut filler = Filler {
            schema,
            fills,
            buckets,
            converter,
            most,
            made: 0,
            batch,
            kept,
            group: None,
            out: Vec::new(),
            out_len: 0,
            out_size: 0,
            given_len: 0,
            given_size: 0,
        };
        filler.clear();
        Ok(filler)
    }

    /// Takes rows; those before have all been gone through.
    ///
    /// # Errors
    /// When they are of other types.
    pub fn take(&mut self, rows: &RecordBatch) -> Result<()> {
        self.keep()?;
        let viewed = rows.columns().iter().map(|column| cast(column, &shared(column.data_type())));
        let columns = viewed.collect::<Result<Vec<ArrayRef>, _>>()?;
        let of = |wanted: Fill| {
            let both = columns.iter().zip(&self.fills);
            both.filter(move |(_, fill)| **fill == wanted).map(|(column, _)| column.clone())
        };
        let groups: Vec<ArrayRef> = of(Fill::Group).collect();
        let keys = self.converter.as_ref().map(|one| one.convert_columns(&groups)).transpose()?;
        let buckets = match of(Fill::Bucket).next() {
            Some(buckets) => cast(&buckets, &DataType::Int64)?.as_primitive().clone(),
            None => Int64Array::new_null(rows.num_rows()),
        };
        let number = |(column, fill): (&ArrayRef, &Fill)| match fill {
            Fill::Line if column.data_type().is_integer() => {
                cast(column, &DataType::Int64).map(Some)
            }
            Fill::Line => cast(column, &DataType::Float64).map(Some),
            _ => Ok(None),
        };
        let numbers = columns.iter().zip(&self.fills).map(number).collect::<Result<Vec<_>, _>>()?;
        self.batch = Batch { columns, keys, buckets, numbers, len: rows.num_rows(), at: 0 };
        Ok(())
    }

    /// Rows that are whole now; none when more have to be taken.
    ///
    /// # Errors
    /// When there are too many.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.has_room() && self.batch.at < self.batch.len {
            self.advance()?;
        }
        self.flush()
    }

    /// What is missing behind the last row; none when nothing is.
    ///
    /// # Errors
    /// When there are too many.
    pub fn finish(&mut self) -> Result<Option<RecordBatch>> {
        // Of groups nobody knows which there are; without any there is one.
        if self.group.is_none() && self.converter.is_none() {
            self.begin_group(None, Place::Nowhere);
        }
        while self.has_room()
            && let Some((bucket, row)) =
                self.group.as_ref().and_then(|group| Some((group.next?, group.row)))
        {
            self.make(bucket, row, None)?;
        }
        self.flush()
    }

    fn has_room(&self) -> bool {
        self.out_len < self.most.len && self.out_size < BATCH_SIZE_MAX
    }

    /// Adds a row: the one that is looked at, or one that is missing before it.
    fn advance(&mut self) -> Result<()> {
        let row = self.batch.at;
        let key = self.batch.keys.as_ref().map(|keys| keys.row(row));
        let is_same =
            self.group.as_ref().is_some_and(|group| group.key.as_ref().map(OwnedRow::row) == key);
        if !is_same {
            let open = self.group.as_ref().and_then(|group| Some((group.next?, group.row)));
            if let Some((bucket, last)) = open {
                return self.make(bucket, last, None);
            }
            let key = key.map(|key| key.owned());
            self.begin_group(key, Place::Row(row));
            self.know_group(row);
        }
        let next = self.group.as_ref().and_then(|group| group.next);
        match (next, self.batch.bucket(row)) {
            (Some(next), Some(bucket)) if next < bucket => {
                self.make(next, Place::Row(row), Some(row))
            }
            _ => {
                self.pass(row);
                Ok(())
            }
        }
    }

    fn begin_group(&mut self, key: Option<OwnedRow>, row: Place) {
        let nothing = Known { value: Place::Nowhere, size: 0, point: None };
        let known = vec![nothing; self.fills.len()];
        self.group = Some(Group { key, next: Some(self.buckets.start), row, known });
    }

    /// Of what a group has in all its rows, how large it is.
    fn know_group(&mut self, row: usize) {
        let Some(group) = &mut self.group else { return };
        let columns = self.fills.iter().zip(&self.batch.columns).zip(&mut group.known);
        for ((_, column), known) in columns.filter(|((fill, _), _)| **fill == Fill::Group) {
            *known = Known { value: Place::Row(row), size: size_of(column, row), point: None };
        }
    }

    /// Makes a row of a bucket; `behind` is the row after it.
    fn make(&mut self, bucket: i64, row: Place, behind: Option<usize>) -> Result<()> {
        if BUCKETS_MAX <= self.made {
            return Err(too_many(&format!("more than {BUCKETS_MAX}")));
        }
        self.made += 1;
        let Some(group) = &mut self.group else { return Ok(()) };
        group.next = self.buckets.after(bucket);
        for (at, fill) in self.fills.iter().enumerate() {
            let known = group.known[at];
            self.out_size += known.size;
            match &mut self.out[at] {
                Column::Buckets(all) => all.push(Some(bucket)),
                Column::Numbers(all) => {
                    let end = behind.and_then(|row| {
                        Some((self.batch.bucket(row)?, self.batch.number(at, row)?))
                    });
                    all.push(known.point.zip(end).map(|(begin, end)| between(begin, end, bucket)));
                }
                Column::Places(all) => all.push(match fill {
                    Fill::Group => row,
                    Fill::Last | Fill::LastKnown => known.value,
                    Fill::Bucket | Fill::Null | Fill::Line => Place::Nowhere,
                }),
            }
        }
        self.out_len += 1;
        Ok(())
    }

    /// Adds a row as it is.
    fn pass(&mut self, row: usize) {
        let Some(group) = &mut self.group else { return };
        let bucket = self.batch.bucket(row);
        for (at, fill) in self.fills.iter().enumerate() {
            let known = &mut group.known[at];
            let column = &self.batch.columns[at];
            let (place, size) = match fill {
                Fill::LastKnown if column.is_null(row) => (known.value, known.size),
                _ => (Place::Row(row), size_of(column, row)),
            };
            self.out_size += size;
            let number = self.batch.number(at, row);
            match &mut self.out[at] {
                Column::Buckets(all) => all.push(bucket),
                Column::Numbers(all) => all.push(number),
                Column::Places(all) => all.push(place),
            }
            *known = Known { value: place, size, point: bucket.zip(number) };
        }
        group.row = Place::Row(row);
        if group.next.is_some() && group.next == bucket {
            group.next = bucket.and_then(|bucket| self.buckets.after(bucket));
        }
        self.batch.at += 1;
        self.out_len += 1;
    }

    fn clear(&mut self) {
        let column = |fill: &Fill| match fill {
            Fill::Bucket => Column::Buckets(Vec::new()),
            Fill::Line => Column::Numbers(Vec::new()),
            _ => Column::Places(Vec::new()),
        };
        self.out = self.fills.iter().map(column).collect();
        (self.out_len, self.out_size) = (0, 0);
    }

    /// Takes memory for the batch that is to be made.
    fn reserve(&mut self) -> Result<()> {
        if self.most.len <= self.given_len {
            (self.given_len, self.given_size) = (0, 0);
        }
        self.given_len += self.out_len;
        self.given_size += self.out_size;
        let keys = self.batch.keys.as_ref().map_or(0, Rows::size);
        self.most.memory.try_resize(self.given_size + keys)
    }

    fn flush(&mut self) -> Result<Option<RecordBatch>> {
        if self.out_len == 0 {
            return Ok(None);
        }
        self.reserve()?;
        let column = |(at, column): (usize, &Column)| {
            let made: ArrayRef = match column {
                Column::Places(places) => return self.gathered(at, places),
                Column::Buckets(all) => std::sync::Arc::new(Int64Array::from(all.clone())),
                Column::Numbers(all) => numbers(all),
            };
            Ok(cast(&made, self.schema.field(at).data_type())?)
        };
        let columns = self.out.iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        self.clear();
        Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?))
    }

    /// Values from where they are.
    fn gathered(&self, column: usize, places: &[Place]) -> Result<ArrayRef> {
        let (kept, rows) = (&self.kept[column], &self.batch.columns[column]);
        let nothing = new_null_array(self.schema.field(column).data_type(), 1);
        let index = |place: &Place| match place {
            Place::Nowhere => (0, 0),
            Place::Kept => (1, 0),
            Place::Row(row) => (2, *row),
        };
        let indexes: Vec<(usize, usize)> = places.iter().map(index).collect();
        Ok(interleave(&[&nothing, kept, rows], &indexes)?)
    }

    /// Keeps of a batch what rows that are made later may have.
    fn keep(&mut self) -> Result<()> {
        debug_assert!(self.out_len == 0 && self.batch.at == self.batch.len, "all rows are gone");
        let Some(group) = &self.group else { return Ok(()) };
        let place = |at: usize| match self.fills[at] {
            Fill::Group => group.row,
            _ => group.known[at].value,
        };
        let kept = (0..self.fills.len()).map(|at| Ok(alone(&self.gathered(at, &[place(at)])?)));
        self.kept = kept.collect::<Result<_>>()?;
        if let Some(group) = &mut self.group {
            group.row = Place::Kept;
            group.known.iter_mut().for_each(|known| known.value = Place::Kept);
        }
        Ok(())
    }
}

/// A value without the others that came with it.
fn alone(value: &ArrayRef) -> ArrayRef {
    match value.data_type() {
        DataType::Utf8View => std::sync::Arc::new(value.as_string_view().gc()),
        DataType::BinaryView => std::sync::Arc::new(value.as_binary_view().gc()),
        _ => value.clone(),
    }
}

/// What lies on the line between two points; of whole numbers without its fraction, as TimescaleDB
/// has it.
fn between(begin: (i64, Number), end: (i64, Number), at: i64) -> Number {
    let since = |from: i64, to: i64| i128::from(to) - i128::from(from);
    let (before, behind) = (since(begin.0, at), since(at, end.0));
    debug_assert!(0 < before + behind, "rows are sorted");
    match (begin.1, end.1) {
        (Number::Whole(a), Number::Whole(b)) => {
            let weighed = i128::from(a) * behind + i128::from(b) * before;
            Number::Whole(i64::try_from(weighed / (before + behind).max(1)).unwrap_or(i64::MAX))
        }
        (a, b) => {
            let real = |number| match number {
                Number::Whole(whole) => whole as f64,
                Number::Real(real) => real,
            };
            let (before, behind) = (before as f64, behind as f64);
            Number::Real((real(a) * behind + real(b) * before) / (before + behind))
        }
    }
}

fn numbers(all: &[Option<Number>]) -> ArrayRef {
    let is_whole = |number: &Option<Number>| matches!(number, None | Some(Number::Whole(_)));
    if all.iter().all(is_whole) {
        let whole = |number: &Option<Number>| match number {
            Some(Number::Whole(whole)) => Some(*whole),
            _ => None,
        };
        return std::sync::Arc::new(all.iter().map(whole).collect::<Int64Array>());
    }
    let real = |number: &Option<Number>| match number {
        Some(Number::Real(real)) => Some(*real),
        Some(Number::Whole(whole)) => Some(*whole as f64),
        None => None,
    };
    std::sync::Arc::new(all.iter().map(real).collect::<Float64Array>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::error::SqlError;
    use datafusion::arrow::array::{StringArray, StringViewArray};
    use datafusion::arrow::compute::concat_batches;
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::common::utils::SingleRowListArrayBuilder;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use std::sync::Arc;

    type Row = (&'static str, Option<i64>, Option<f64>);
    const FILLS: [Fill; 5] = [Fill::Group, Fill::Bucket, Fill::Last, Fill::LastKnown, Fill::Line];

    fn most(len: usize) -> Most {
        limited(len, usize::MAX)
    }

    fn limited(len: usize, bytes: usize) -> Most {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        Most { len, memory: MemoryConsumer::new("gaps").register(&pool) }
    }

    fn rows_of(rows: &[Row]) -> RecordBatch {
        let number = |name: &str| Field::new(name, DataType::Float64, true);
        let fields = vec![
            Field::new("group", DataType::Utf8View, true),
            Field::new("bucket", DataType::Int64, true),
            number("last"),
            number("known"),
            number("line"),
        ];
        let groups: StringViewArray = rows.iter().map(|row| Some(row.0)).collect();
        let buckets: Int64Array = rows.iter().map(|row| row.1).collect();
        let values: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>());
        let columns: Vec<ArrayRef> =
            vec![Arc::new(groups), Arc::new(buckets), values.clone(), values.clone(), values];
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    /// Rows taken by so many and given by so many.
    fn filled(rows: &[Row], buckets: Buckets, taken: usize, given: usize) -> RecordBatch {
        let schema = rows_of(&[]).schema();
        let mut filler = Filler::new(schema.clone(), FILLS.to_vec(), buckets, most(given)).unwrap();
        let mut all = Vec::new();
        for some in rows.chunks(taken) {
            filler.take(&rows_of(some)).unwrap();
            while let Some(batch) = filler.next().unwrap() {
                assert!(batch.num_rows() <= given);
                all.push(batch);
            }
        }
        while let Some(batch) = filler.finish().unwrap() {
            all.push(batch);
        }
        concat_batches(&schema, &all).unwrap()
    }

    #[test]
    fn rows_are_the_same_in_whatever_batches_they_come() {
        let rows: &[Row] = &[
            ("a", Some(-20), Some(7.0)),
            ("a", Some(10), Some(1.0)),
            ("a", Some(40), None),
            ("a", None, Some(5.0)),
            ("b", Some(0), Some(2.0)),
            ("b", Some(30), Some(f64::INFINITY)),
            ("b", Some(90), Some(3.0)),
        ];
        let buckets = Buckets::of_numbers(10, 0, 50).unwrap();
        let shown = |batch: RecordBatch| pretty_format_batches(&[batch]).unwrap().to_string();
        let whole = filled(rows, buckets, 100, 100);
        assert_eq!(whole.num_rows(), 6 + 1 + 6);
        let whole = shown(whole);
        for (taken, given) in [(1, 1), (1, 100), (2, 3), (3, 2), (100, 1)] {
            assert_eq!(shown(filled(rows, buckets, taken, given)), whole, "{taken} {given}");
        }
        for line in [
            "| a     | 0      | 7.0  | 7.0   | 3.0  |",
            "| a     | 20     | 1.0  | 1.0   |      |",
            "| a     | 40     |      | 1.0   |      |",
            "| b     | 10     | 2.0  | 2.0   | inf  |",
            "| b     | 40     | inf  | inf   | inf  |",
        ] {
            assert!(whole.contains(line), "{line}\n{whole}");
        }
    }

    #[test]
    fn of_nothing_there_are_no_groups() {
        let buckets = Buckets::of_numbers(10, 0, 50).unwrap();
        let schema = rows_of(&[]).schema();
        let mut grouped = Filler::new(schema.clone(), FILLS.to_vec(), buckets, most(10)).unwrap();
        assert!(grouped.finish().unwrap().is_none());
        let fills = vec![Fill::Null, Fill::Bucket, Fill::Last, Fill::Null, Fill::Line];
        let mut plain = Filler::new(schema, fills, buckets, most(10)).unwrap();
        let made = plain.finish().unwrap().unwrap();
        assert_eq!((made.num_rows(), made.column(2).null_count()), (5, 5));
        assert!(plain.finish().unwrap().is_none());
    }

    #[test]
    fn too_many_rows_are_refused() {
        let buckets = Buckets::of_numbers(1, 0, 600_000).unwrap();
        let mut filler =
            Filler::new(rows_of(&[]).schema(), FILLS.to_vec(), buckets, most(8192)).unwrap();
        filler.take(&rows_of(&[("a", Some(0), None), ("b", Some(0), None)])).unwrap();
        let mut made = Ok(None);
        for _ in 0..200 {
            made = match filler.next() {
                Ok(None) => filler.finish(),
                other => other,
            };
            if made.is_err() {
                break;
            }
        }
        assert_eq!(SqlError::from(made.unwrap_err()).code, "54000");
    }

    /// A row of a bucket and a value, carried on into a thousand buckets.
    fn carried(value: &ArrayRef, most: Most) -> Result<Vec<RecordBatch>> {
        let fields = |of: DataType| {
            let fields = vec![Field::new("b", DataType::Int64, true), Field::new("v", of, true)];
            Arc::new(Schema::new(fields))
        };
        let bucket: ArrayRef = Arc::new(Int64Array::from(vec![0]));
        let rows =
            RecordBatch::try_new(fields(value.data_type().clone()), vec![bucket, value.clone()])?;
        let buckets = Buckets::of_numbers(1, 0, 1000)?;
        let (schema, fills) = (fields(shared(value.data_type())), vec![Fill::Bucket, Fill::Last]);
        let mut filler = Filler::new(schema, fills, buckets, most)?;
        filler.take(&rows)?;
        let mut all = Vec::new();
        while let Some(batch) = filler.next()? {
            all.push(batch);
        }
        while let Some(batch) = filler.finish()? {
            all.push(batch);
        }
        Ok(all)
    }

    #[test]
    fn a_text_in_many_rows_is_there_once() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(3 << 20)]));
        let made = carried(&text, limited(8192, 1 << 20)).unwrap();
        assert_eq!(made.iter().map(RecordBatch::num_rows).sum::<usize>(), 1000);
        let size: usize = made.iter().map(|one| one.column(1).get_buffer_memory_size()).sum();
        assert!(size < 4 * (3 << 20), "{size}");
    }

    #[test]
    fn what_is_copied_is_bounded_and_counted() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; 10_000]));
        let list: ArrayRef = Arc::new(SingleRowListArrayBuilder::new(numbers).build_list_array());
        let made = carried(&list, limited(8192, 1 << 30)).unwrap();
        assert_eq!(made.iter().map(RecordBatch::num_rows).sum::<usize>(), 1000);
        for batch in &made {
            let size = batch.get_array_memory_size();
            assert!(size <= 2 * BATCH_SIZE_MAX, "{size} of {} rows", batch.num_rows());
        }
        // No more than a batch of many rows is counted, and that it is.
        assert!(carried(&list, limited(100, 100 * 170_000)).is_ok());
        let refused = carried(&list, limited(8192, 100 * 170_000)).unwrap_err();
        assert_eq!(SqlError::from(refused).code, "53200");
    }

    #[test]
    fn lines_of_whole_numbers_have_no_fractions() {
        let line = |a, b, at| between((0, Number::Whole(a)), (30, Number::Whole(b)), at);
        assert_eq!(line(1, -7, 10), Number::Whole(-1));
        assert_eq!(line(i64::MAX, i64::MIN, 15), Number::Whole(0));
        let far =
            between((i64::MIN, Number::Whole(i64::MIN)), (i64::MAX, Number::Whole(i64::MIN)), 0);
        assert_eq!(far, Number::Whole(i64::MIN));
    }
}
