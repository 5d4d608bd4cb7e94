//! `ALTER ROLE .. SET` as it is parsed.

use crate::ddl_dml::definitions::define::Definition;
use crate::session::parsed::Parsed;
use crate::session::statements::parse;

fn said(text: &str) -> Result<Definition, &'static str> {
    match parse(text).map(|mut all| all.remove(0)) {
        Ok(Parsed::Define(definition)) => Ok(definition),
        Ok(_) => Err("another"),
        Err(error) => Err(error.code),
    }
}

#[test]
fn settings_are_read() {
    for (text, name, value) in [
        ("ALTER ROLE me SET a.b = 'c d'", "a.b", "c d"),
        ("alter user \"Me\" in database d set A.b to on", "a.b", "on"),
        ("ALTER DATABASE d SET search_path TO a, 'b'", "search_path", "a, b"),
        ("ALTER ROLE ALL SET x.y = -1", "x.y", "-1"),
        ("ALTER ROLE current_user SET TIME ZONE 'UTC'", "timezone", "UTC"),
    ] {
        let said = said(text).unwrap_or_else(|code| panic!("{text}: {code}"));
        assert_eq!(said.sets(), Some((name, value)), "{text}");
    }
    for text in ["ALTER ROLE me RESET a.b", "ALTER ROLE me SET a.b TO DEFAULT"] {
        assert_eq!(said(text).map(|said| said.sets().is_none()), Ok(true), "{text}");
    }
    for (text, code) in [
        ("ALTER ROLE me SET a.b", "42601"),
        ("ALTER ROLE me SET a.b = 1 2", "42601"),
        ("ALTER ROLE me SET a.b FROM CURRENT", "0A000"),
        ("ALTER ROLE me IN x SET a.b = 1", "42601"),
        ("ALTER ROLE me LOGIN", "0A000"),
    ] {
        assert_eq!(said(text).err(), Some(code), "{text}");
    }
}
