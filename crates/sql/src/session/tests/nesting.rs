//! Nested statements take no time that doubles.

use crate::session::statements::parse;
use std::time::{Duration, Instant};

/// Deep stacks are what statements are read with.
fn code_of(text: String) -> Option<&'static str> {
    let read = move || parse(&text).err().map(|error| error.code);
    std::thread::Builder::new().stack_size(64 << 20).spawn(read).unwrap().join().unwrap()
}

#[test]
fn what_stands_in_each_other_takes_no_time_that_doubles() {
    let began = Instant::now();
    let nested = |open: &str, inner: &str, close: &str, count: usize| {
        format!("SELECT {}{inner}{}", open.repeat(count), close.repeat(count))
    };
    assert_eq!(code_of(nested("abs(", "1", ")", 30)), None);
    assert_eq!(code_of(nested("abs(a => ", "1", ")", 8)), None);
    assert_eq!(code_of(nested("(1 + ", "1", ")", 30)), None);
    assert_eq!(code_of(nested("a IN (b, ", "1", ")", 20)), None);
    assert_eq!(code_of(nested("abs(", "1 1", ")", 30)), Some("42601"));
    for (open, close) in [
        ("CAST(", " AS int)"),
        ("position(", ")"),
        ("trim(", ")"),
        ("EXISTS(", ")"),
        ("substring(", ")"),
        ("INTERVAL ", ""),
        ("INTERVAL (", ")"),
        ("ARRAY(", ")"),
        ("x FROM ((SELECT ", ") JOIN b ON true)"),
        ("x FROM a, ((SELECT ", ") JOIN b ON true)"),
    ] {
        let text = nested(open, "1 1", close, 30);
        assert_eq!(code_of(text.clone()), Some("54001"), "{text}");
        let few = nested(open, "1", close, 8);
        assert_ne!(code_of(few.clone()), Some("54001"), "{few}");
    }
    // What is not closed is read to its end, and at each step tried otherwise.
    for open in ["NOT(", "NOT ", "(1,", "(", "abs(", "CASE WHEN ", "-", "a IN ("] {
        let text = nested(open, "", "", 190);
        assert!(matches!(code_of(text.clone()), Some("54001" | "42601")), "{text}");
    }
    assert_eq!(code_of(nested("NOT(", "true", ")", 30)), None);
    for (open, close) in [
        ("NOT(", ")"),
        ("a IN (VALUES (", "))"),
        ("a IN ((SELECT ", "))"),
        ("a IN ((VALUES (", ")))"),
        ("1 IN ((SELECT ", ")+1)"),
        ("INTERVAL f(", ")"),
        ("* FROM (VALUES ((SELECT ", ")))"),
    ] {
        // Which error it is depends on which reading was the last.
        let text = nested(open, "1 1", close, 24);
        let code = code_of(text.clone());
        assert!(matches!(code, Some("54001" | "42601")), "{text}: {code:?}");
        let few = nested(open, "1", close, 3);
        assert_ne!(code_of(few.clone()), Some("54001"), "{few}");
    }
    assert_eq!(code_of(nested("ARRAY[", "1 1", "]", 30)), Some("54000"));
    assert_eq!(code_of(nested("[", "1 1", "]", 30)), Some("54000"));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
