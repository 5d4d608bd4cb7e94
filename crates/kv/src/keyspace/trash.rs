//! Values that take longer to free than others may wait: the keeper frees them.

use crate::value::Value;

/// Bytes of a value from which on it takes long.
const LARGE_SIZE: usize = 256 << 10;
/// Bytes that may wait to be freed; what is beyond is freed at once, or a keeper that is busy would
/// leave more of them than there is memory.
const SIZE_MAX: usize = 64 << 20;

/// Values to be freed.
#[derive(Default)]
pub(crate) struct Trash {
    values: Vec<Value>,
    size: usize,
}

impl Trash {
    /// Frees a value, later if that takes long.
    pub(crate) fn add(&mut self, value: Value) {
        let size = value.heap_size();
        let has_room = self.values.is_empty() || self.size.saturating_add(size) <= SIZE_MAX;
        if LARGE_SIZE < size && has_room {
            self.values.push(value);
            self.size += size;
        }
    }

    /// What waits; dropped, it is free.
    pub(crate) fn take(&mut self) -> Vec<Value> {
        self.size = 0;
        std::mem::take(&mut self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Str;

    fn value(size: usize) -> Value {
        let text = vec![b'x'; size];
        Value::Str(Str::new(&text))
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut trash = Trash::default();
        trash.add(value(1000));
        assert!(trash.take().is_empty(), "freed at once");
        for _ in 0..3 {
            trash.add(value(SIZE_MAX / 2 - 100));
        }
        assert_eq!(trash.take().len(), 2);
        trash.add(value(2 * SIZE_MAX));
        trash.add(value(LARGE_SIZE + 1));
        assert_eq!(trash.take().len(), 1, "the first may be of any size");
    }
}
