//! The configuration file: TOML whose keys are names of flags.

use crate::flag::Kind;
use crate::flags;
use crate::settings::ConfigError;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads a TOML file into flag names and texts.
///
/// # Errors
/// As [`parse`], and when the file cannot be read.
pub fn read(path: &Path) -> Result<BTreeMap<String, String>, ConfigError> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let reason = format!("cannot read the file of --config: {error}");
        ConfigError::File { path: shown.clone(), reason }
    })?;
    parse(&shown, &text)
}

/// Parses its text; `path` is for errors.
///
/// # Errors
/// For text that is no TOML, keys that are no flags and values that no flag has.
pub fn parse(path: &str, text: &str) -> Result<BTreeMap<String, String>, ConfigError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError::File {
        path: path.to_string(),
        reason: error.to_string().trim_end().to_string(),
    })?;
    let mut values = BTreeMap::new();
    flatten(path, "", &table, &mut values)?;
    Ok(values)
}

/// `[query] timeout = "2m"` and `"query.timeout" = "2m"` are the same key.
fn flatten(
    path: &str,
    prefix: &str,
    table: &toml::Table,
    values: &mut BTreeMap<String, String>,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        let text = match value {
            toml::Value::Table(inner) => {
                flatten(path, &format!("{key}."), inner, values)?;
                continue;
            }
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::Boolean(switch) => switch.to_string(),
            toml::Value::Array(all) if is_list(&key) => {
                let texts = all.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>();
                if texts.len() < all.len() {
                    let reason = format!("{key}: each of its values must be a text");
                    return Err(ConfigError::File { path: path.to_string(), reason });
                }
                texts.join("; ")
            }
            other => {
                let reason = format!("{key}: a {} is no value of a flag", other.type_str());
                return Err(ConfigError::File { path: path.to_string(), reason });
            }
        };
        if flags::find(&key).is_none() || key == "config" {
            // A key of the top level in a section of its own making.
            let at_top = flags::find(name).filter(|_| !prefix.is_empty() && name != "config");
            if let Some(flag) = at_top {
                let (path, nearest) = (path.to_string(), flag.name);
                return Err(ConfigError::MisplacedKey { path, key, nearest });
            }
            let nearest = flags::nearest(&key);
            return Err(ConfigError::UnknownKey { path: path.to_string(), key, nearest });
        }
        values.insert(key, text);
    }
    Ok(())
}

fn is_list(key: &str) -> bool {
    flags::find(key).is_some_and(|flag| flag.kind == Kind::List)
}
