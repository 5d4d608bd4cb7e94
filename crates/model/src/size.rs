//! Sizes as people read them.

/// A size for people, in the largest unit that leaves at least 1.
pub fn format_size(size: u64) -> String {
    for (unit, name) in [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
    {
        if unit <= size {
            return format!("{:.1} {name}", size as f64 / unit as f64);
        }
    }
    format!("{size} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_largest_unit() {
        let sizes = [0, 12, 1023, 1536, 5 << 20, 3 << 40].map(format_size);
        assert_eq!(sizes, ["0 B", "12 B", "1023 B", "1.5 KiB", "5.0 MiB", "3.0 TiB"]);
    }
}
