//! Values of `json` as they were written: parts of a text, and texts that are put together
//! (<https://www.postgresql.org/docs/15/datatype-json.html>). `json` keeps spaces, the order of keys, and keys that are
//! there twice.

use jiter::{Jiter, Peek};

/// Returns the value of a key of an object, the last one of that key; none for other values.
pub fn member<'t>(text: &'t str, wanted: &str) -> Option<&'t str> {
    let mut jiter = Jiter::new(text.as_bytes());
    if jiter.peek().ok()? != Peek::Object {
        return None;
    }
    let mut found = None;
    let mut is_wanted = jiter.known_object().ok()?.map(|key| key == wanted);
    while let Some(is_it) = is_wanted {
        let value = next_value(&mut jiter, text)?;
        found = if is_it { Some(value) } else { found };
        is_wanted = jiter.next_key().ok()?.map(|key| key == wanted);
    }
    found
}

/// Returns an element of an array, counted from 0, or from the end below 0; none for other values.
pub fn element(text: &str, at: i64) -> Option<&str> {
    let all = elements(text)?;
    let at = if at < 0 { i64::try_from(all.len()).ok()?.checked_add(at)? } else { at };
    all.get(usize::try_from(at).ok()?).copied()
}

fn elements(text: &str) -> Option<Vec<&str>> {
    let mut jiter = Jiter::new(text.as_bytes());
    if jiter.peek().ok()? != Peek::Array {
        return None;
    }
    let mut all = Vec::new();
    let mut next = jiter.known_array().ok()?;
    while next.is_some() {
        all.push(next_value(&mut jiter, text)?);
        next = jiter.array_step().ok()?;
    }
    Some(all)
}

/// Returns what a step of a path leads to: a key of an object, or a place in an array.
pub fn step<'t>(text: &'t str, step: &str) -> Option<&'t str> {
    match text.trim_start().as_bytes().first()? {
        b'{' => member(text, step),
        b'[' => element(text, step.trim().parse().ok()?),
        _ => None,
    }
}

fn next_value<'t>(jiter: &mut Jiter<'t>, text: &'t str) -> Option<&'t str> {
    let peek = jiter.peek().ok()?;
    let start = jiter.current_index();
    jiter.known_skip(peek).ok()?;
    text.get(start..jiter.current_index())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_text() {
        let text = r#" {"a" : {"b":1,  "b":[1, "x"]}, "a\u0062":2.50, "c":null} "#;
        assert_eq!(member(text, "a"), Some(r#"{"b":1,  "b":[1, "x"]}"#));
        assert_eq!(member(text, "ab"), Some("2.50"));
        assert_eq!(member(text, "c"), Some("null"));
        assert_eq!(member(text, "d"), None);
        assert_eq!(member("[1]", "d"), None);
        assert_eq!(member(step(text, "a").unwrap(), "b"), Some(r#"[1, "x"]"#));
        assert_eq!(element("[1, [2 ,3], {}]", 1), Some("[2 ,3]"));
        assert_eq!(element("[1, [2 ,3], {}]", -1), Some("{}"));
        assert_eq!(element("[1]", -2), None);
        assert_eq!(element("[]", 0), None);
        assert_eq!(element("5", 0), None);
        assert_eq!(step("[1,2]", "1"), Some("2"));
        assert_eq!(step("5", "0"), None);
        assert_eq!(member("{\"a\":", "a"), None);
    }
}
