//! A label set in one string, to be refilled for every sample without allocating.

/// A metric's name and its tags.
#[derive(Default)]
pub struct LabelSet {
    metric_name: String,
    text: String,
    /// Where each tag's name and value end in `text`.
    ends: Vec<(usize, usize)>,
}

impl LabelSet {
    /// Forgets the tags, keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Sets the metric's name.
    pub fn set_metric_name(&mut self, name: &str) {
        self.metric_name.clear();
        self.metric_name.push_str(name);
    }

    /// Adds a tag; names must come in increasing order, as remote write demands.
    pub fn push(&mut self, name: &str, value: &str) {
        self.push_with(name, |text| text.push_str(value));
    }

    /// Adds a tag whose value `write` appends.
    pub fn push_with(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        debug_assert!(
            self.tags().last().is_none_or(|(last, _)| last < name),
            "{name} out of order"
        );
        self.text.push_str(name);
        let name_end = self.text.len();
        write(&mut self.text);
        debug_assert!(self.text.len() > name_end, "empty value of {name}");
        self.ends.push((name_end, self.text.len()));
    }

    /// Adds a tag whose value is a fixed start and a number.
    pub fn push_number(&mut self, name: &str, start: &str, number: u64) {
        self.push_with(name, |text| {
            text.push_str(start);
            text.push_str(itoa::Buffer::new().format(number));
        });
    }

    /// The metric's name.
    pub fn metric_name(&self) -> &str {
        &self.metric_name
    }

    /// The tags, by name.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        let ends = self.ends.iter();
        starts.zip(ends).map(|(start, (name_end, end))| {
            (&self.text[start..*name_end], &self.text[*name_end..*end])
        })
    }
}
