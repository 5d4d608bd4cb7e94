//! Time checks of native loops over the values of a script.
//!
//! One call can visit many millions of values, for tables may hold the same table many times over. The
//! hook of the interpreter counts such a call as one instruction.

use super::limits::check_time;
use crate::scripting::busy::Busy;
use mlua::Lua;
use std::sync::Arc;

/// Values between two looks at the clock.
const CHECK_INTERVAL: u32 = 1000;

/// Counts values, and looks at the clock every so many.
pub struct TimeCheck<'a> {
    lua: &'a Lua,
    busy: &'a Arc<Busy>,
    left: u32,
}

impl<'a> TimeCheck<'a> {
    /// For a loop that begins.
    pub fn new(lua: &'a Lua, busy: &'a Arc<Busy>) -> TimeCheck<'a> {
        TimeCheck { lua, busy, left: CHECK_INTERVAL }
    }

    /// Counts a value.
    ///
    /// # Errors
    /// When the script is killed, or a library takes too long to load.
    pub fn step(&mut self) -> mlua::Result<()> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = CHECK_INTERVAL;
                check_time(self.lua, self.busy)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::Out;
    use crate::scripting::busy::Running;
    use crate::scripting::lua::convert::{Reader, answer};
    use crate::scripting::lua::raised::text_of;
    use crate::scripting::lua::{json, msgpack};
    use mlua::{MultiValue, Value};
    use std::time::Instant;

    /// Makes a table that holds a thousand times a table that does so, and so on.
    const WIDE: &str = "wide = {} for _ = 1, 4 do local outer = {} \
                        for i = 1, 1000 do outer[i] = wide end wide = outer end";

    fn is_killed(result: mlua::Result<impl Sized>) -> bool {
        let text = result.err().map(|error| text_of(&error)).unwrap_or_default();
        String::from_utf8_lossy(&text).contains("Script killed")
    }

    /// An interpreter whose hook does not run yet, so that nothing but a conversion ends a script.
    fn interpreter(busy: &Arc<Busy>) -> Lua {
        let lua = Lua::new();
        let globals = lua.globals();
        globals.raw_set("cjson", json::library(&lua, busy).unwrap()).unwrap();
        globals.raw_set("cmsgpack", msgpack::library(&lua, busy).unwrap()).unwrap();
        lua.load(WIDE).exec().unwrap();
        lua
    }

    #[test]
    fn conversions_of_values_end_when_the_script_is_killed() {
        for call in [
            "cjson.encode(wide)",
            "cjson.encode({wide, {a = wide}})",
            "cjson.new().encode(wide)",
            "cjson.decode('[' .. ('0,'):rep(2000) .. '0]')",
            "cmsgpack.pack(wide)",
            "cmsgpack.unpack('\\220\\8\\0' .. ('\\1'):rep(2048))",
        ] {
            let busy = Arc::new(Busy::default());
            let lua = interpreter(&busy);
            busy.end_at_once();
            let called = lua.load(format!("return {call}")).call::<MultiValue>(());
            assert!(is_killed(called), "{call}");
        }
        for value in ["wide", "{map = {a = wide}}", "{set = {[wide] = true}}"] {
            let busy = Arc::new(Busy::default());
            let lua = interpreter(&busy);
            let made: Value = lua.load(format!("return {value}")).call(()).unwrap();
            busy.end_at_once();
            assert!(is_killed(answer(&lua, &busy, &made, 3, &mut Out::new(3))), "{value}");
        }
        let busy = Arc::new(Busy::default());
        busy.end_at_once();
        let elements = format!("*2000\r\n{}", ":1\r\n".repeat(2000));
        assert!(is_killed(Reader::new(&Lua::new(), &busy, elements.as_bytes()).value()));
    }

    #[test]
    fn a_conversion_that_takes_long_makes_the_script_busy() {
        let busy = Arc::new(Busy::default());
        busy.set_threshold(1);
        busy.begin(Running {
            name: "script".to_owned(),
            command: Vec::new(),
            is_function: false,
            is_load: false,
            started: Instant::now(),
        });
        let lua = interpreter(&busy);
        let value: Value = lua.globals().raw_get("wide").unwrap();
        let ended = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                while !busy.is_busy() {
                    std::thread::yield_now();
                }
                busy.kill(false)
            });
            let ended = answer(&lua, &busy, &value, 2, &mut Out::new(2));
            assert_eq!(other.join().unwrap(), Ok(()));
            ended
        });
        assert!(is_killed(ended));
    }
}
