//! The table of MetricsQL's functions: name, kind, a sentence, an example and its answer.

/// What a function works on; the engine dispatches by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// Windows of samples.
    Rollup,
    /// Values of series.
    Transform,
    /// Labels of series.
    Label,
    /// Many series to one.
    Aggregate,
}

/// One function of the language.
#[derive(Debug)]
pub struct Function {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What it works on.
    pub kind: FunctionKind,
    /// How it is called: `rate(series_selector[d])`.
    pub usage: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// A use of it that needs no data.
    pub example: &'static str,
    /// What the example gives at 01:00:00 on the second day of 1970.
    pub answer: &'static str,
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name && self.kind == other.kind
    }
}

/// The function of that name, in any case.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// All functions, by name.
pub static FUNCTIONS: &[Function] = &[];
