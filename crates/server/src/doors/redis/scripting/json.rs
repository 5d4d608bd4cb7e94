//! stub
use mlua::{Lua, Table};
/// Stub.
pub fn library(lua: &Lua) -> mlua::Result<Table> {
    lua.create_table()
}
