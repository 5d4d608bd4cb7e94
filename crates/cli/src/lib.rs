//! Parts of the command line that commands and the server share: sizes, durations and dates as text,
//! arguments, PEM files, progress of a long command, errors as sentences.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

/// Prints a line to standard output. Ignores a closed output, as `head` leaves it.
#[macro_export]
macro_rules! print_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

pub mod arguments;
pub mod calendar;
pub mod checkpoint;
pub mod error_text;
pub mod line_counter;
pub mod parquet_files;
pub mod pem;
pub mod quantity;
