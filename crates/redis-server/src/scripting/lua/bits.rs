//! The library `bit`: operations on 32 bits, as LuaJIT has them.

use super::arguments::{integer_or, number};
use mlua::{Lua, MultiValue, Table};

/// What makes a float's lowest bits those of the integer that is added to it: 2^52 + 2^51.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// The library.
///
/// # Errors
/// When there is no memory.
pub fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    add_one(lua, &table, "tobit", |bits| bits)?;
    add_one(lua, &table, "bnot", |bits| !bits)?;
    add_one(lua, &table, "bswap", u32::swap_bytes)?;
    add_all(lua, &table, "band", |one, two| one & two)?;
    add_all(lua, &table, "bor", |one, two| one | two)?;
    add_all(lua, &table, "bxor", |one, two| one ^ two)?;
    add_shift(lua, &table, "lshift", |bits, by| bits << by)?;
    add_shift(lua, &table, "rshift", |bits, by| bits >> by)?;
    add_shift(lua, &table, "arshift", |bits, by| (bits.cast_signed() >> by).cast_unsigned())?;
    add_shift(lua, &table, "rol", u32::rotate_left)?;
    add_shift(lua, &table, "ror", u32::rotate_right)?;
    table.raw_set("tohex", lua.create_function(to_hex)?)?;
    Ok(table)
}

/// The lowest 32 bits of a number, which is rounded to an integer first.
fn bits(lua: &Lua, args: &MultiValue, at: usize, of: &str) -> mlua::Result<u32> {
    let number = number(lua, args, at, of)? + ROUNDING;
    Ok((number.to_bits() & 0xffff_ffff) as u32)
}

fn answer(bits: u32) -> f64 {
    f64::from(bits.cast_signed())
}

fn add_one(lua: &Lua, table: &Table, name: &'static str, run: fn(u32) -> u32) -> mlua::Result<()> {
    let function = lua.create_function(move |lua, args: MultiValue| {
        Ok(answer(run(bits(lua, &args, 0, name)?)))
    })?;
    table.raw_set(name, function)
}

fn add_all(
    lua: &Lua,
    table: &Table,
    name: &'static str,
    run: fn(u32, u32) -> u32,
) -> mlua::Result<()> {
    let function = lua.create_function(move |lua, args: MultiValue| {
        let mut all = bits(lua, &args, 0, name)?;
        for at in 1..args.len() {
            all = run(all, bits(lua, &args, at, name)?);
        }
        Ok(answer(all))
    })?;
    table.raw_set(name, function)
}

fn add_shift(
    lua: &Lua,
    table: &Table,
    name: &'static str,
    run: fn(u32, u32) -> u32,
) -> mlua::Result<()> {
    let function = lua.create_function(move |lua, args: MultiValue| {
        let (one, by) = (bits(lua, &args, 0, name)?, bits(lua, &args, 1, name)?);
        Ok(answer(run(one, by & 31)))
    })?;
    table.raw_set(name, function)
}

/// So many digits; in capitals when their number is negative.
fn to_hex(lua: &Lua, args: MultiValue) -> mlua::Result<String> {
    let value = bits(lua, &args, 0, "tohex")?;
    let wanted = integer_or(lua, &args, 1, "tohex", 8)?;
    let count = usize::try_from(wanted.unsigned_abs()).unwrap_or(8).min(8);
    let digits = match wanted < 0 {
        true => format!("{value:08X}"),
        false => format!("{value:08x}"),
    };
    Ok(digits.get(8 - count..).unwrap_or_default().to_owned())
}
