//! What the parser accepts, and how much of it.

/// The flag that turns on what is experimental, for errors.
pub const EXPERIMENTAL_FLAG: &str = "--query.experimental-functions";
/// Levels of a tree. Each costs parser and engine some stack; people need about ten.
pub const NESTING_MAX: usize = 200;
/// Bytes of an expression's text. The longest sane dashboards have some kilobytes.
pub const TEXT_SIZE_MAX: usize = 1 << 20;
/// Bytes that one compiled regular expression may take.
pub const REGEX_SIZE_MAX: usize = 16 << 20;

/// What the parser accepts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether the functions, aggregations and modifiers are known that Prometheus calls
    /// experimental: also `anchored`, `smoothed` and `fill`.
    pub experimental_functions: bool,
}
