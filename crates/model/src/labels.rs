//! A series' identity: a set of labels, sorted by name, in one canonical byte string.
//!
//! ```text
//! canonical = { varint(name size) name varint(value size) value }*    names strictly increasing
//! ```
//!
//! Equal label sets have equal bytes, so a hash of the bytes is a fingerprint of the series.
//! A label with an empty value is the same as no label, so none is ever kept.

use std::cmp::Ordering;
use std::fmt;

/// The label that holds a metric's name.
pub const METRIC_NAME: &str = "__name__";

/// Why a label set was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The same name twice.
    #[error("duplicate label name {0:?}")]
    Duplicate(String),
    /// An empty label name.
    #[error("empty label name")]
    EmptyName,
    /// No metric name.
    #[error("missing metric name (label __name__)")]
    MissingMetricName,
    /// Name or value is not UTF-8.
    #[error("invalid UTF-8 in {0}")]
    InvalidUtf8(&'static str),
    /// The protocol's own rule is broken; the text is in the words its clients know.
    #[error("{0}")]
    Refused(String),
    /// More labels than allowed.
    #[error("{count} labels, the limit is {max} (max-labels-per-series)")]
    TooMany {
        /// How many there were.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// A name longer than allowed.
    #[error("label name of {size} bytes, the limit is {max} (max-label-name-size): {start:?}...")]
    NameTooLong {
        /// How many bytes it has.
        size: usize,
        /// How many it may have.
        max: usize,
        /// Its first characters.
        start: String,
    },
    /// A value longer than allowed.
    #[error("value of label {name:?} has {size} bytes, the limit is {max} (max-label-value-size)")]
    ValueTooLong {
        /// The label's name.
        name: String,
        /// How many bytes the value has.
        size: usize,
        /// How many it may have.
        max: usize,
    },
}

/// A canonical label set. Cheap to tell apart and to hash.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    bytes: Box<[u8]>,
}

impl Labels {
    /// The set of the given pairs; empty values vanish, the last of equal names wins.
    pub fn from_pairs<N: AsRef<str>, V: AsRef<str>>(pairs: &[(N, V)]) -> Labels {
        let mut sorted: Vec<(&str, &str)> =
            pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
        // Stable: the last of equal names stays the last of them.
        sorted.sort_by_key(|(name, _)| *name);
        let mut bytes = Vec::new();
        for (idx, (name, value)) in sorted.iter().enumerate() {
            let is_last = sorted.get(idx + 1).is_none_or(|(next, _)| next != name);
            if is_last && !name.is_empty() && !value.is_empty() {
                push_pair(&mut bytes, name, value);
            }
        }
        Labels { bytes: bytes.into_boxed_slice() }
    }

    /// The labels whose canonical bytes these are, which must come from [`Labels::as_bytes`].
    ///
    /// Returns `None` when the bytes are not canonical, so bytes from a disk may be handed in.
    pub fn from_canonical(bytes: &[u8]) -> Option<Labels> {
        let mut rest = bytes;
        let mut previous: &str = "";
        while !rest.is_empty() {
            let (name, value, tail) = split_pair(rest)?;
            if name <= previous || value.is_empty() {
                return None;
            }
            previous = name;
            rest = tail;
        }
        Some(Labels { bytes: bytes.into() })
    }

    /// The canonical bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All `(name, value)` pairs, by increasing name.
    pub fn iter(&self) -> LabelsIter<'_> {
        LabelsIter { rest: &self.bytes }
    }

    /// All pairs by increasing name, as bytes: quicker where nobody needs to know that they are
    /// text.
    pub fn pairs(&self) -> Pairs<'_> {
        Pairs { rest: &self.bytes }
    }

    /// The set without the labels whose names `is_kept` does not want.
    pub fn only(&self, is_kept: impl Fn(&[u8]) -> bool) -> Labels {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for pair in self.pairs().filter(|pair| is_kept(pair.name)) {
            bytes.extend_from_slice(pair.bytes);
        }
        Labels { bytes: bytes.into_boxed_slice() }
    }

    /// The labels that `is_kept` wants, but those of `names` as `other` has them: they are gone
    /// where it has none.
    pub fn with_those_of(
        &self,
        is_kept: impl Fn(&[u8]) -> bool,
        names: &[&str],
        other: &Labels,
    ) -> Labels {
        let mut bytes = Vec::with_capacity(self.bytes.len() + other.bytes.len());
        let is_taken = |name: &[u8]| names.iter().any(|taken| taken.as_bytes() == name);
        let mut taken = other.pairs().filter(|pair| is_taken(pair.name)).peekable();
        for own in self.pairs().filter(|pair| is_kept(pair.name) && !is_taken(pair.name)) {
            while let Some(pair) = taken.next_if(|pair| pair.name < own.name) {
                bytes.extend_from_slice(pair.bytes);
            }
            bytes.extend_from_slice(own.bytes);
        }
        taken.for_each(|pair| bytes.extend_from_slice(pair.bytes));
        Labels { bytes: bytes.into_boxed_slice() }
    }

    /// The value of `name`, or `None` when the set has no such label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.pairs().find(|pair| pair.name == name.as_bytes())?.value;
        Some(std::str::from_utf8(value).expect("canonical labels"))
    }

    /// The metric's name, empty when there is none.
    pub fn metric_name(&self) -> &str {
        self.get(METRIC_NAME).unwrap_or("")
    }

    /// Whether there is no label at all.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// 128-bit hash of the canonical bytes (XXH3, unseeded): the series' name outside the store.
    pub fn fingerprint(&self) -> u128 {
        xxhash_rust::xxh3::xxh3_128(&self.bytes)
    }

    /// A builder that starts with these labels.
    pub fn to_builder(&self) -> LabelsBuilder {
        let mut builder = LabelsBuilder::new();
        for (name, value) in self.iter() {
            builder.push(name, value);
        }
        builder
    }
}

/// By the first name or value that differs, as Prometheus orders series; canonical bytes compare
/// otherwise, for sizes stand before texts in them.
impl Ord for Labels {
    fn cmp(&self, other: &Labels) -> Ordering {
        let (mut own, mut others) = (&*self.bytes, &*other.bytes);
        // Series of one metric have most texts in common: those are stepped over by their sizes.
        let mut common = common_len(own, others);
        while !own.is_empty() && !others.is_empty() {
            let (text, rest) = split_bytes(own).expect("canonical labels");
            let size = own.len() - rest.len();
            if common < size {
                return text.cmp(split_bytes(others).expect("canonical labels").0);
            }
            (own, others, common) = (rest, &others[size..], common - size);
        }
        own.len().cmp(&others.len())
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Labels) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{", self.metric_name())?;
        let mut separator = "";
        for (name, value) in self.iter().filter(|(name, _)| *name != METRIC_NAME) {
            write!(f, "{separator}{name}={value:?}")?;
            separator = ", ";
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Iterates over the pairs of a label set.
#[derive(Clone)]
pub struct LabelsIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for LabelsIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        if self.rest.is_empty() {
            return None;
        }
        let (name, value, rest) = split_pair(self.rest).expect("canonical labels");
        self.rest = rest;
        Some((name, value))
    }
}

/// A label as it stands in the canonical bytes of its set.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The name, which is UTF-8.
    pub name: &'a [u8],
    /// The value, which is UTF-8.
    pub value: &'a [u8],
    /// Both with their sizes, in canonical form.
    pub bytes: &'a [u8],
}

/// Iterates over the bytes of the pairs of a label set.
#[derive(Clone)]
pub struct Pairs<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    #[inline]
    fn next(&mut self) -> Option<Pair<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (name, rest) = split_bytes(self.rest).expect("canonical labels");
        let (value, rest) = split_bytes(rest).expect("canonical labels");
        let bytes = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        Some(Pair { name, value, bytes })
    }
}

/// Collects labels in any order and sorts them once. Reusable: [`LabelsBuilder::clear`].
#[derive(Clone, Default)]
pub struct LabelsBuilder {
    /// Names and values, one after the other.
    text: String,
    /// Where in `text` each label's name starts, its value starts, and its value ends.
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    name_start: u32,
    value_start: u32,
    value_end: u32,
}

impl LabelsBuilder {
    /// An empty builder.
    pub fn new() -> LabelsBuilder {
        LabelsBuilder::default()
    }

    /// Forgets all labels, keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }

    /// Adds a label without looking for an earlier one of that name; an empty value is skipped.
    #[inline]
    pub fn push(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let name_start = self.text.len() as u32;
        self.text.push_str(name);
        let value_start = self.text.len() as u32;
        self.text.push_str(value);
        self.spans.push(Span { name_start, value_start, value_end: self.text.len() as u32 });
    }

    /// Sets a label, replacing an earlier one of that name; an empty value removes it.
    pub fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.push(name, value);
    }

    /// Removes the label of that name, if there.
    pub fn remove(&mut self, name: &str) {
        let text = &self.text;
        self.spans.retain(|span| span_name(text, span) != name);
    }

    /// The value last given to `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.spans.iter().rev().find(|s| span_name(&self.text, s) == name).map(|s| self.value(s))
    }

    /// The pairs in order of arrival; by name there is [`LabelsBuilder::sorted`].
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.spans.iter().map(|span| (span_name(&self.text, span), self.value(span)))
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The same by name, for who needs them in order without a set of their own.
    ///
    /// # Errors
    /// [`LabelError::Duplicate`] when a name occurs twice, [`LabelError::EmptyName`].
    pub fn sorted(mut self) -> Result<SortedLabels, LabelError> {
        let text = &self.text;
        let name = |span: &Span| span_name(text, span);
        // Most senders sort.
        if !self.spans.is_sorted_by(|a, b| name(a) < name(b)) {
            self.spans.sort_by(|a, b| name(a).cmp(name(b)));
            if let Some(pair) = self.spans.windows(2).find(|pair| name(&pair[0]) == name(&pair[1]))
            {
                return Err(LabelError::Duplicate(name(&pair[0]).to_string()));
            }
        }
        match self.spans.first() {
            Some(first) if first.name_start == first.value_start => Err(LabelError::EmptyName),
            _ => Ok(SortedLabels(self)),
        }
    }

    /// The canonical set; of equal names the last one wins, empty names are dropped.
    pub fn finish(&mut self) -> Labels {
        let text = &self.text;
        self.spans.sort_by(|a, b| span_name(text, a).cmp(span_name(text, b)));
        // Exact as long as no string is longer than 127 bytes.
        let mut bytes = Vec::with_capacity(self.text.len() + 2 * self.spans.len());
        for (idx, span) in self.spans.iter().enumerate() {
            let name = span_name(text, span);
            let is_last = self.spans.get(idx + 1).is_none_or(|next| span_name(text, next) != name);
            if is_last && !name.is_empty() {
                push_pair(&mut bytes, name, self.value(span));
            }
        }
        Labels { bytes: bytes.into_boxed_slice() }
    }

    fn value(&self, span: &Span) -> &str {
        &self.text[span.value_start as usize..span.value_end as usize]
    }
}

/// Labels by strictly increasing name, none of them empty. There is no other way to one than
/// [`LabelsBuilder::sorted`].
#[derive(Clone, Default)]
pub struct SortedLabels(LabelsBuilder);

impl SortedLabels {
    /// The pairs, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter()
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The canonical set.
    pub fn into_labels(mut self) -> Labels {
        self.0.finish()
    }

    /// The builder with these labels in it, for more of them or for its memory.
    pub fn into_builder(self) -> LabelsBuilder {
        self.0
    }
}

fn span_name<'a>(text: &'a str, span: &Span) -> &'a str {
    &text[span.name_start as usize..span.value_start as usize]
}

/// Appends one pair in canonical form; whoever calls it does so by increasing name.
fn push_pair(out: &mut Vec<u8>, name: &str, value: &str) {
    push_size(out, name.len());
    out.extend_from_slice(name.as_bytes());
    push_size(out, value.len());
    out.extend_from_slice(value.as_bytes());
}

fn push_size(out: &mut Vec<u8>, mut size: usize) {
    while 0x80 <= size {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

/// Bytes that both begin with.
fn common_len(a: &[u8], b: &[u8]) -> usize {
    let chunks = a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0);
    let start = chunks.take_while(|(a, b)| a == b).count() * 16;
    let rest = a[start..].iter().zip(&b[start..]);
    start + rest.take_while(|(a, b)| a == b).count()
}

fn split_pair(bytes: &[u8]) -> Option<(&str, &str, &[u8])> {
    let (name, rest) = split_string(bytes)?;
    let (value, rest) = split_string(rest)?;
    Some((name, value, rest))
}

fn split_string(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (string, rest) = split_bytes(bytes)?;
    Some((std::str::from_utf8(string).ok()?, rest))
}

#[inline]
fn split_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match bytes.split_first()? {
        // Most strings are shorter than 128 bytes.
        (size, rest) if *size < 0x80 => rest.split_at_checked(usize::from(*size)),
        _ => split_long_bytes(bytes),
    }
}

fn split_long_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut size = 0usize;
    let mut shift = 0;
    let mut used = 0;
    loop {
        let byte = *bytes.get(used)?;
        used += 1;
        size |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
        if 28 < shift {
            return None;
        }
    }
    bytes.get(used..)?.split_at_checked(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_bytes_do_not_depend_on_order() {
        let a = Labels::from_pairs(&[("b", "2"), ("__name__", "up"), ("a", "1"), ("c", "")]);
        let b = Labels::from_pairs(&[("a", "1"), ("b", "2"), ("__name__", "up")]);
        assert_eq!(a, b);
        assert_eq!(a.fingerprint(), b.fingerprint());
        assert_eq!(a.to_string(), r#"up{a="1", b="2"}"#);
        assert_eq!(a.len(), 3);
        assert_eq!(Labels::from_canonical(a.as_bytes()), Some(a));
    }

    #[test]
    fn label_sets_are_ordered_as_their_texts_are() {
        let long = "x".repeat(200);
        let texts = ["", "1", "10", "2", "a", "aa", "b", "\u{1}", "é", &long, &long[1..]];
        let mut all = Vec::new();
        for (name, value) in texts.iter().flat_map(|name| texts.map(|value| (*name, value))) {
            let names = [name, "k", "kk", long.as_str()];
            all.push(Labels::from_pairs(&names.map(|name| (name, value))));
            all.push(Labels::from_pairs(&[("k", name), ("l", value)]));
        }
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            assert_eq!(a.cmp(b), a.iter().cmp(b.iter()), "{a} {b}");
        }
        let [two, ten] = ["2", "10"].map(|value| Labels::from_pairs(&[("a", value)]));
        assert!(ten < two && two.as_bytes() < ten.as_bytes(), "bytes begin with sizes");
    }

    #[test]
    fn labels_are_taken_from_another_set() {
        let many = Labels::from_pairs(&[("__name__", "x"), ("b", "1"), ("d", "2"), ("f", "3")]);
        let one = Labels::from_pairs(&[("a", "4"), ("c", "5"), ("d", "6"), ("z", "7")]);
        let taken = |names: &[&str], is_kept: fn(&[u8]) -> bool| {
            many.with_those_of(is_kept, names, &one).to_string()
        };
        let not_name: fn(&[u8]) -> bool = |name| name != METRIC_NAME.as_bytes();
        assert_eq!(taken(&[], |_| true), many.to_string());
        assert_eq!(taken(&[], not_name), r#"{b="1", d="2", f="3"}"#);
        let names = ["a", "c", "d", "f", "z"];
        assert_eq!(
            taken(&names, not_name),
            r#"{a="4", b="1", c="5", d="6", z="7"}"#,
            "f is gone, for the other set has none"
        );
        assert_eq!(taken(&["d"], |name| name == b"b"), r#"{b="1", d="6"}"#);
        assert_eq!(taken(&["y"], |_| false), "{}");
        assert_eq!(many.get("d"), Some("2"));
        assert_eq!(many.get("c"), None);
    }

    #[test]
    fn pairs_are_the_canonical_bytes() {
        let long = "x".repeat(300);
        let labels = Labels::from_pairs(&[("a", "1"), ("b", long.as_str()), ("c", "é")]);
        let joined: Vec<u8> = labels.pairs().flat_map(|pair| pair.bytes.to_vec()).collect();
        assert_eq!(joined, labels.as_bytes());
        let same = labels.pairs().zip(labels.iter()).all(|(pair, (name, value))| {
            pair.name == name.as_bytes() && pair.value == value.as_bytes()
        });
        assert!(same && labels.pairs().count() == 3);
        let expected = Labels::from_pairs(&[("a", "1"), ("c", "é")]);
        assert_eq!(labels.only(|name| name != b"b"), expected);
    }

    #[test]
    fn bytes_that_are_not_canonical_are_refused() {
        let good = Labels::from_pairs(&[("a", "1"), ("b", "2")]);
        for cut in 1..good.as_bytes().len() {
            let head = Labels::from_canonical(&good.as_bytes()[..cut]);
            assert!(head.is_none() || head == Some(Labels::from_pairs(&[("a", "1")])));
        }
        assert_eq!(Labels::from_canonical(b"\x01b\x011\x01a\x012"), None, "order");
        assert_eq!(Labels::from_canonical(b"\x01a\x00"), None, "empty value");
        assert_eq!(Labels::from_canonical(b"\xff\xff\xff\xff\xff\xff"), None, "size");
        assert_eq!(Labels::from_canonical(b"\x01\xff\x011"), None, "UTF-8");
    }

    #[test]
    fn sorting_reports_what_no_set_has() {
        let builder = |pairs: &[(&str, &str)]| {
            let mut builder = LabelsBuilder::new();
            pairs.iter().for_each(|(name, value)| builder.push(name, value));
            builder
        };
        let twice = builder(&[("a", "1"), ("a", "2")]);
        assert_eq!(twice.clone().finish(), Labels::from_pairs(&[("a", "2")]), "the last wins");
        assert_eq!(twice.sorted().err(), Some(LabelError::Duplicate("a".into())));
        assert_eq!(builder(&[("b", "1"), ("", "2")]).sorted().err(), Some(LabelError::EmptyName));
        let sorted = builder(&[("b", "1"), ("a", "2")]).sorted().unwrap_or_default();
        assert_eq!(Vec::from_iter(sorted.iter()), [("a", "2"), ("b", "1")]);
        assert_eq!(sorted.into_labels(), Labels::from_pairs(&[("a", "2"), ("b", "1")]));
    }
}
