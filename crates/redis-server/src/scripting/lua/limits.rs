//! Limits of a script: memory, and time by a hook that the interpreter calls every N instructions.

use super::raised::Raised;
use crate::scripting::busy::Busy;
use mlua::{HookTriggers, Lua, VmState};
use std::sync::Arc;

/// Bytes that an interpreter may take; a script that wants more gets an error of Lua's.
pub const MEMORY_MAX: usize = 256 << 20;
/// Instructions between two looks at the clock.
pub const LOOK_INTERVAL: u32 = 2000;
/// Interval while instructions are slow: one may copy a string of 100 MB.
const LOOK_INTERVAL_MIN: u32 = 20;

/// Fails when the script may not go on. Native functions that loop call it every now and then.
///
/// # Errors
/// When the script is killed, or a library takes too long to load.
pub fn check_time(lua: &Lua, busy: &Arc<Busy>) -> mlua::Result<()> {
    look(lua, busy).map(drop)
}

/// Bytes that the interpreter may still take.
pub fn memory_left(lua: &Lua) -> usize {
    MEMORY_MAX.saturating_sub(lua.used_memory())
}

/// Sets the number of instructions between two looks.
///
/// # Errors
/// None that this interpreter has.
pub fn watch_every(lua: &Lua, busy: &Arc<Busy>, interval: u32) -> mlua::Result<()> {
    let busy = busy.clone();
    let triggers = HookTriggers::new().every_nth_instruction(interval);
    lua.set_global_hook(triggers, move |lua, _| {
        let state = look(lua, &busy)?;
        let wanted = match busy.note_look() {
            true => LOOK_INTERVAL_MIN,
            false => LOOK_INTERVAL,
        };
        if wanted != interval {
            watch_every(lua, &busy, wanted)?;
        }
        Ok(state)
    })
}

/// Called every so many instructions of a script.
fn look(lua: &Lua, busy: &Arc<Busy>) -> mlua::Result<VmState> {
    if !busy.goes_on() {
        let was_loading = busy.is_loading();
        // A script that catches this gets no further than its next line.
        let busy = busy.clone();
        let triggers = HookTriggers::EVERY_LINE.every_nth_instruction(LOOK_INTERVAL);
        lua.set_global_hook(triggers, move |_, _| {
            if busy.goes_on() { Ok(VmState::Continue) } else { Err(killed(was_loading)) }
        })?;
        return Err(killed(was_loading));
    }
    Ok(VmState::Continue)
}

fn killed(was_loading: bool) -> mlua::Error {
    Raised::error(match was_loading {
        true => "FUNCTION LOAD timeout",
        false => "Script killed by user with SCRIPT KILL...",
    })
}
