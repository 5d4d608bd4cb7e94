//! Bytes that are kept in place if they are few, and on the heap otherwise: members of sets, fields
//! and values of hashes.

/// Bytes that have room in place: with it an element is as large as a `Vec`.
const INLINE_MAX: usize = 22;
/// What the allocator adds to an allocation, about.
const ALLOCATION_COST: usize = 8;

/// Bytes that do not grow.
#[derive(Clone)]
pub struct Element(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Heap(Box<[u8]>),
}

impl Element {
    /// Those bytes.
    #[inline]
    pub fn new(from: &[u8]) -> Element {
        let mut bytes = [0; INLINE_MAX];
        match bytes.get_mut(..from.len()) {
            Some(start) => {
                start.copy_from_slice(from);
                Element(Repr::Inline { len: from.len() as u8, bytes })
            }
            None => Element(Repr::Heap(from.into())),
        }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Heap(bytes) => bytes,
        }
    }

    /// Bytes of memory besides the struct itself.
    #[inline]
    pub fn heap_size(&self) -> usize {
        match &self.0 {
            Repr::Inline { .. } => 0,
            Repr::Heap(bytes) => bytes.len() + ALLOCATION_COST,
        }
    }
}

impl std::fmt::Debug for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_ones() {
        for len in [0, 1, INLINE_MAX, INLINE_MAX + 1, 1000] {
            let bytes = vec![7; len];
            assert_eq!(Element::new(&bytes).bytes(), bytes);
        }
        assert_eq!(size_of::<Element>(), 24);
        assert_eq!(Element::new(&[1; INLINE_MAX]).heap_size(), 0);
    }
}
