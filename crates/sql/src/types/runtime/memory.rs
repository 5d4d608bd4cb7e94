//! Memory of the values that functions and aggregates make, charged to the pool that all statements share.
//! DataFusion counts what its steps keep, and only after they have taken it.
//!
//! ```text
//! value ─► array whose buffers hold a reservation ─► freed with the last slice of it
//! ```

use crate::types::runtime::constant_folding::is_folding;
use crate::types::runtime::statement_scope::with_current;
use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayData, ArrayRef, make_array};
use datafusion::arrow::buffer::Buffer;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Arrays of fewer bytes are not charged: there are few of them at a time.
pub const CHARGED_SIZE_MIN: usize = 256 << 10;
/// Constants of fewer bytes are not charged.
const CONSTANT_SIZE_MIN: usize = 64 << 10;
/// Bytes that a value takes beside its own.
const VALUE_SIZE: usize = 16;

/// A reservation for the statement that runs, of no bytes yet; none where memory is not limited.
pub fn reservation(name: &str) -> Option<MemoryReservation> {
    let pool = with_current(|scope| scope.memory.clone()).flatten()?;
    Some(MemoryConsumer::new(name).register(&pool))
}

/// Start addresses of the buffers that hold a reservation.
static CHARGED: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

fn charged() -> MutexGuard<'static, Option<HashSet<usize>>> {
    CHARGED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(buffer: &Buffer) -> usize {
    buffer.data_ptr().as_ptr() as usize
}

fn is_charged(buffer: &Buffer) -> bool {
    charged().as_ref().is_some_and(|known| known.contains(&address(buffer)))
}

/// A buffer that stays charged as long as it is there.
struct ChargedBuffer {
    buffer: Buffer,
    _reservation: Arc<MemoryReservation>,
}

impl AsRef<[u8]> for ChargedBuffer {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_slice()
    }
}

impl ChargedBuffer {
    fn charge(buffer: Buffer, reservation: Arc<MemoryReservation>) -> Buffer {
        let owner = ChargedBuffer { buffer, _reservation: reservation };
        let buffer = Buffer::from(Bytes::from_owner(owner));
        charged().get_or_insert_default().insert(address(&buffer));
        buffer
    }
}

impl Drop for ChargedBuffer {
    fn drop(&mut self) {
        let at = self.buffer.as_ptr() as usize;
        if let Some(known) = charged().as_mut() {
            known.remove(&at);
        }
    }
}

thread_local! {
    /// Charges the long constants of the step that this thread evaluates.
    static CONSTANTS: RefCell<Option<MemoryReservation>> = const { RefCell::new(None) };
}

/// Charges a constant that a function has made, until the step that evaluates it has made its rows.
///
/// # Errors
/// `53200` where less memory is free.
pub fn charge_constant(size: usize) -> Result<()> {
    if size < CONSTANT_SIZE_MIN || is_folding() {
        return Ok(());
    }
    CONSTANTS.with_borrow_mut(|held| {
        if held.is_none() {
            *held = reservation("constants");
        }
        held.as_ref().map_or(Ok(()), |held| held.try_grow(size))
    })
}

/// Frees the constants of a step that has made its rows, or none.
pub fn free_constants() {
    drop(CONSTANTS.take());
}

/// Charges an array that was just made of others, as long as it or a slice of it is there. Buffers that it
/// shares with those, and short ones, are not charged.
///
/// # Errors
/// `53200` where less memory is free.
pub fn charge(name: &str, array: ArrayRef, made_of: &[&dyn Array]) -> Result<ArrayRef> {
    match array.get_buffer_memory_size() < CHARGED_SIZE_MIN {
        true => Ok(array),
        false => charge_all(name, array, made_of),
    }
}

/// Charges an array, however short, as [`charge`] does.
///
/// # Errors
/// As [`charge`].
pub fn charge_all(name: &str, array: ArrayRef, made_of: &[&dyn Array]) -> Result<ArrayRef> {
    let Some(reservation) = reservation(name) else { return Ok(array) };
    let mut shared = HashSet::new();
    made_of.iter().for_each(|one| {
        each_buffer(&one.to_data(), &mut |buffer| {
            shared.insert(address(buffer));
        })
    });
    let is_new = |buffer: &Buffer| {
        VALUE_SIZE < buffer.len() && !shared.contains(&address(buffer)) && !is_charged(buffer)
    };
    let (data, mut seen, mut size) = (array.to_data(), HashSet::new(), 0);
    each_buffer(&data, &mut |buffer| {
        if is_new(buffer) && seen.insert(address(buffer)) {
            size += buffer.capacity();
        }
    });
    if size == 0 {
        return Ok(array);
    }
    reservation.try_grow(size)?;
    Ok(make_array(charge_data(data, &seen, &Arc::new(reservation))?))
}

fn each_buffer(data: &ArrayData, visit: &mut dyn FnMut(&Buffer)) {
    data.buffers().iter().for_each(&mut *visit);
    data.child_data().iter().for_each(|child| each_buffer(child, visit));
}

fn charge_data(
    data: ArrayData,
    new: &HashSet<usize>,
    reservation: &Arc<MemoryReservation>,
) -> Result<ArrayData> {
    let charge = |buffer: &Buffer| match new.contains(&address(buffer)) {
        true => ChargedBuffer::charge(buffer.clone(), reservation.clone()),
        false => buffer.clone(),
    };
    let buffers = data.buffers().iter().map(charge).collect();
    let children = data.child_data().iter();
    let children = children.map(|child| charge_data(child.clone(), new, reservation));
    let children = children.collect::<Result<Vec<_>>>()?;
    Ok(data.into_builder().buffers(buffers).child_data(children).build()?)
}

/// Bytes that keeping an array takes beyond what is charged already. Buffers in `seen` are kept already; those of
/// this array are added to it.
pub fn kept_size(array: &dyn Array, seen: &mut HashSet<usize>) -> usize {
    let mut size = 0;
    each_buffer(&array.to_data(), &mut |buffer| {
        if !is_charged(buffer) && seen.insert(address(buffer)) {
            size += buffer.capacity();
        }
    });
    size
}

/// Bytes that a copy of the values of an array takes.
pub fn copied_size(array: &dyn Array) -> usize {
    let size = array.to_data().get_slice_memory_size().unwrap_or(0);
    size.saturating_add(view_bytes(array)).saturating_add(VALUE_SIZE * array.len())
}

/// Bytes of values behind views, each counted as often as it is viewed.
fn view_bytes(array: &dyn Array) -> usize {
    use datafusion::arrow::array::AsArray as _;
    use datafusion::arrow::datatypes::DataType;
    let lengths = |views: &[u128]| -> usize {
        // The length is in the low half of the first word.
        views.iter().map(|view| *view as u32 as usize).sum()
    };
    match array.data_type() {
        DataType::Utf8View => lengths(array.as_string_view().views()),
        DataType::BinaryView => lengths(array.as_binary_view().views()),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let offsets = lists.value_offsets();
            let (first, last) = (offsets[0], offsets[lists.len()]);
            let (first, last) = (first.max(0) as usize, last.max(0) as usize);
            view_bytes(&lists.values().slice(first, last - first))
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(|one| view_bytes(one)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::types::runtime::statement_scope::StatementScope;
    use datafusion::arrow::array::{AsArray as _, StringArray, StringViewArray};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    /// Does work of a statement with that memory.
    pub fn within<T>(pool: &Arc<dyn MemoryPool>, work: impl FnOnce() -> T) -> T {
        let scope = StatementScope { memory: Some(pool.clone()), ..StatementScope::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(scope.run(async { work() }))
    }

    #[test]
    fn arrays_are_charged_until_their_last_slice_is_dropped() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(4 << 20));
        let long = "x".repeat(1 << 20);
        for array in [
            Arc::new(StringArray::from(vec![long.as_str(), "a"])) as ArrayRef,
            Arc::new(StringViewArray::from(vec![long.as_str(), "a"])) as ArrayRef,
        ] {
            let copy = array.clone();
            let charged = within(&pool, || charge("test", array, &[])).unwrap();
            assert_eq!(*charged, *copy);
            assert!(1 << 20 <= pool.reserved(), "{}", pool.reserved());
            let slice = charged.slice(1, 1);
            drop(charged);
            assert!(1 << 20 <= pool.reserved(), "{}", pool.reserved());
            drop(slice);
            assert_eq!(pool.reserved(), 0);
        }
    }

    #[test]
    fn arrays_beyond_the_free_memory_are_refused() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        let long = "x".repeat(2 << 20);
        let array: ArrayRef = Arc::new(StringArray::from(vec![long.as_str()]));
        assert!(within(&pool, || charge("test", array.clone(), &[])).is_err());
        assert_eq!(pool.reserved(), 0);
        assert!(charge("test", array, &[]).is_ok(), "outside of statements nothing is charged");
    }

    #[test]
    fn constants_of_a_step_are_charged_together() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(4 << 20));
        within(&pool, || {
            charge_constant(1000).unwrap();
            assert_eq!(pool.reserved(), 0);
            charge_constant(3 << 20).unwrap();
            assert_eq!(pool.reserved(), 3 << 20);
            assert!(charge_constant(2 << 20).is_err());
            free_constants();
            assert_eq!(pool.reserved(), 0);
            charge_constant(2 << 20).unwrap();
            free_constants();
        });
    }

    #[test]
    fn shared_and_charged_buffers_are_charged_once() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(64 << 20));
        let long = "x".repeat(1 << 20);
        let whole: ArrayRef = Arc::new(StringViewArray::from(vec![long.as_str(); 2]));
        let half = whole.slice(0, 1);
        let same = within(&pool, || charge("test", half, &[&whole])).unwrap();
        assert_eq!(pool.reserved(), 0);
        drop(same);
        let charged = within(&pool, || charge("test", whole, &[])).unwrap();
        let before = pool.reserved();
        let again = within(&pool, || charge("test", charged.slice(1, 1), &[])).unwrap();
        assert_eq!(pool.reserved(), before);
        assert_eq!(kept_size(&again, &mut HashSet::new()), 0);
        assert!(2 << 20 <= copied_size(&charged));
        assert_eq!(charged.as_string_view().value(1).len(), 1 << 20);
    }
}
