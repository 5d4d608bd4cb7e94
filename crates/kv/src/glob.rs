//! Patterns of keys and channels: `*`, `?`, `[abc]`, `[^a]`, `[a-z]`, and `\` before any of them.

/// Whether all of `text` fits the pattern. Time is bounded by the product of their lengths.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when what follows the last star does not fit: the star takes one byte more.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            None if t == text.len() => return true,
            None => None,
            Some(_) => text.get(t).and_then(|byte| one(&pattern[p..], *byte)),
        };
        match (step, retry) {
            (Some(size), _) => (p, t) = (p + size, t + 1),
            (None, Some((after_star, taken))) if taken < text.len() => {
                retry = Some((after_star, taken + 1));
                (p, t) = (after_star, taken + 1);
            }
            (None, _) => return false,
        }
    }
}

/// As [`matches()`], whatever the case of ASCII letters.
pub fn matches_ignoring_case(pattern: &[u8], text: &[u8]) -> bool {
    matches(&pattern.to_ascii_lowercase(), &text.to_ascii_lowercase())
}

/// The size of the pattern's first element if the byte fits it.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', class @ ..] => {
            let (fits, size) = class_of(class, byte);
            fits.then_some(size + 1)
        }
        [first, ..] => (*first == byte).then_some(1),
        [] => None,
    }
}

/// Whether a byte is in the class whose `[` has been read, and the size of the rest of it.
fn class_of(class: &[u8], byte: u8) -> (bool, usize) {
    let is_negated = class.first() == Some(&b'^');
    let mut at = usize::from(is_negated);
    let mut is_in = false;
    loop {
        match class.get(at..).unwrap_or_default() {
            [b'\\', escaped, ..] => {
                is_in |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => return (is_in != is_negated, at + 1),
            // A class without an end takes all the rest.
            [] => return (is_in != is_negated, at),
            [low, b'-', high, ..] => {
                let (low, high) = ((*low).min(*high), (*low).max(*high));
                is_in |= (low..=high).contains(&byte);
                at += 3;
            }
            [one, ..] => {
                is_in |= *one == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbb", false),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hello", false),
            ("*a*b*", "xxaxxbxx", true),
            ("[", "[", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        let text = vec![b'a'; 10_000];
        assert!(!matches(b"*a*a*a*a*a*a*a*a*b", &text));
    }
}
