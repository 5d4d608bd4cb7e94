//! The known name that a misspelled one was perhaps meant to be, for error messages.

/// Bytes of a name that is compared: longer ones are no misspelled names.
const COMPARED_SIZE_MAX: usize = 64;

/// The known name that is most like a given one, if no more than a third of that is different; else the
/// first that begins with it.
pub fn similar_name<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.is_empty() || COMPARED_SIZE_MAX < given.len() {
        return None;
    }
    let known: Vec<&str> = known.into_iter().collect();
    let rank = |known: &&str| (edit_distance(given, known), !known.starts_with(given));
    let nearest = known.iter().copied().min_by_key(rank)?;
    if 3 * edit_distance(given, nearest) <= given.chars().count() {
        return Some(nearest);
    }
    // Short beginnings are those of many names.
    known.into_iter().find(|known| 3 < given.len() && known.starts_with(given))
}

/// Levenshtein's distance in characters.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let known = ["rad", "rate", "irate", "prometheus", "sum"];
        for (given, expected) in [
            ("rat", Some("rate")),
            ("raet", None),
            ("irte", Some("irate")),
            ("prom", Some("prometheus")),
            ("su", None),
            ("", None),
            ("something else", None),
        ] {
            assert_eq!(similar_name(given, known), expected, "{given}");
        }
        assert_eq!(similar_name(&"x".repeat(1000), known), None);
    }
}
