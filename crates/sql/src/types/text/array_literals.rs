//! Literals of arrays: `{a,"b c",NULL}`.

/// PostgreSQL's literal of an array: `{a,"b c",NULL}`; none when it is no such literal.
pub fn array_of(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut all = Vec::new();
    if inner.trim().is_empty() {
        return Some(all);
    }
    let (mut one, mut is_open, mut was_quoted) = (String::new(), false, false);
    let mut push = |one: &mut String, was_quoted: &mut bool| {
        let plain = std::mem::take(one);
        all.push(match std::mem::take(was_quoted) {
            true => Some(plain),
            false if plain.trim().eq_ignore_ascii_case("null") => None,
            // Only quotes make an element of nothing.
            false if plain.trim().is_empty() => return None,
            false => Some(plain.trim().to_string()),
        });
        Some(())
    };
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => one.push(characters.next()?),
            '"' => {
                // Quotes are all of an element, or none of it.
                if !is_open && (was_quoted || !one.trim().is_empty()) {
                    return None;
                }
                if !is_open {
                    one.clear();
                }
                is_open = !is_open;
                was_quoted = true;
            }
            ',' if !is_open => push(&mut one, &mut was_quoted)?,
            // Arrays of arrays are not known.
            '{' | '}' if !is_open => return None,
            // What stands behind quotes.
            space if was_quoted && !is_open && space.is_whitespace() => {}
            _ if was_quoted && !is_open => return None,
            plain => one.push(plain),
        }
    }
    if is_open {
        return None;
    }
    push(&mut one, &mut was_quoted)?;
    Some(all)
}
