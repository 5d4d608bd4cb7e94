//! `redis.register_function`: what a library registers while it is loaded.

use crate::scripting::lua::raised::Raised;
use crate::scripting::shebang::Flags;
use mlua::{Function, Lua, MultiValue, RegistryKey, Table, Value};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Functions that a library may register.
const FUNCTIONS_MAX: usize = 10_000;

/// A function.
#[derive(Clone)]
pub struct Registered {
    /// Its name, as it was registered.
    pub name: String,
    /// Registry key of the callback: the number of references from Rust is limited.
    pub function: Arc<RegistryKey>,
    /// What it says of itself.
    pub flags: Flags,
    /// What it does, in its author's words.
    pub description: Option<Vec<u8>>,
}

/// Functions that a library has registered while it is loaded.
#[derive(Default)]
pub struct Registrations {
    /// In the order of the calls.
    pub(super) functions: Vec<Registered>,
    /// Their names in lower case.
    names: HashSet<String>,
}

/// Functions of the library that is loaded; none while none is.
pub type Pending = Arc<Mutex<Option<Registrations>>>;

/// Whether a name may be one.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Error about a name that is none.
pub const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// `redis.register_function`.
///
/// # Errors
/// When there is no memory.
pub fn register(lua: &Lua, pending: &Pending) -> mlua::Result<Function> {
    let pending = pending.clone();
    lua.create_function(move |lua, args: MultiValue| {
        let registered = registered(&args).map_err(|words| Raised::error(&words))?;
        let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Registrations { functions, names }) = &mut *pending else {
            let words = "redis.register_function can only be called on FUNCTION LOAD command";
            return Err(Raised::error(words));
        };
        if !is_name(&registered.name) {
            return Err(Raised::error(BAD_NAME));
        }
        if names.contains(&registered.name.to_ascii_lowercase()) {
            return Err(Raised::error("Function already exists in the library"));
        }
        if FUNCTIONS_MAX <= functions.len() {
            return Err(Raised::error("the library has too many functions"));
        }
        let Registration { name, callback, flags, description } = registered;
        let function = Arc::new(lua.create_registry_value(callback)?);
        names.insert(name.to_ascii_lowercase());
        functions.push(Registered { name, function, flags, description });
        Ok(())
    })
}

/// Arguments of `redis.register_function`.
struct Registration {
    name: String,
    callback: Function,
    flags: Flags,
    description: Option<Vec<u8>>,
}

/// What is to be registered: a name and a function, or a table of names and values.
fn registered(args: &MultiValue) -> Result<Registration, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.to_string_lossy()),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    match args.iter().collect::<Vec<_>>()[..] {
        [Value::Table(table)] => by_table(table),
        [_] => Err("calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).".to_owned()),
        [name, function] => {
            let name = text(name);
            let name = name.ok_or("first argument to redis.register_function must be a string")?;
            let Value::Function(function) = function else {
                let words = "second argument to redis.register_function must be a function";
                return Err(words.to_owned());
            };
            let flags = Flags::default();
            Ok(Registration { name, callback: function.clone(), flags, description: None })
        }
        _ => Err("wrong number of arguments to redis.register_function".to_owned()),
    }
}

fn by_table(table: &Table) -> Result<Registration, String> {
    let (mut name, mut callback, mut description) = (None, None, None);
    let mut flags = Flags::default();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        let Value::String(key) = key else {
            return Err(
                "named argument key given to redis.register_function is not a string".to_owned()
            );
        };
        match (key.to_string_lossy().to_ascii_lowercase().as_str(), value) {
            ("function_name", Value::String(text)) => name = Some(text.to_string_lossy()),
            ("function_name", _) => {
                return Err(
                    "function_name argument given to redis.register_function must be a string"
                        .to_owned(),
                );
            }
            ("description", Value::String(text)) => description = Some(text.as_bytes().to_vec()),
            ("description", _) => {
                return Err(
                    "description argument given to redis.register_function must be a string"
                        .to_owned(),
                );
            }
            ("callback", Value::Function(given)) => callback = Some(given),
            ("callback", _) => {
                return Err(
                    "callback argument given to redis.register_function must be a function"
                        .to_owned(),
                );
            }
            ("flags", Value::Table(given)) => add_flags(&mut flags, &given)?,
            ("flags", _) => {
                return Err("flags argument to redis.register_function must be a table representing function flags".to_owned());
            }
            _ => return Err("unknown argument given to redis.register_function".to_owned()),
        }
    }
    let name = name.ok_or("redis.register_function must get a function name argument")?;
    let callback = callback.ok_or("redis.register_function must get a callback argument")?;
    Ok(Registration { name, callback, flags, description })
}

fn add_flags(flags: &mut Flags, given: &Table) -> Result<(), String> {
    for at in 1.. {
        match given.raw_get(at) {
            Ok(Value::String(name)) if flags.add(&name.as_bytes()) => {}
            Ok(Value::Nil) => break,
            _ => return Err("unknown flag given".to_owned()),
        }
    }
    Ok(())
}
