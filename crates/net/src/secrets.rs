//! Credentials from the flags. A credential that is given and empty is refused: an unset variable in a
//! script or a compose file must not open the server.

use crate::auth::Credentials;
use crate::settings::{ConfigError, Settings};

/// Flags whose empty value would turn a protection off without a message.
const NEVER_EMPTY: [&str; 7] = [
    "http-user",
    "http-password",
    "http-password-file",
    "bearer-token",
    "bearer-token-file",
    "tls-cert",
    "tls-key",
];

/// Refuses an empty value that the command line, the environment or the file sets.
///
/// # Errors
/// For the first such flag.
pub fn refuse_empty(settings: &Settings) -> Result<(), ConfigError> {
    for name in NEVER_EMPTY {
        if settings.text(name).is_empty() && !settings.is_default(name) {
            let reason = "is empty: give a value, or leave the flag away";
            return Err(settings.refuse(name, reason));
        }
    }
    Ok(())
}

/// User, password and token.
///
/// # Errors
/// When one is empty, cannot be read, or is given twice.
pub fn credentials(settings: &Settings) -> Result<Credentials, ConfigError> {
    refuse_empty(settings)?;
    let user = settings.text("http-user").to_string();
    let password = secret(settings, "http-password", "http-password-file")?;
    if user.is_empty() != password.is_empty() {
        return Err(ConfigError::Together("--http-user and a password belong together".into()));
    }
    let token = secret(settings, "bearer-token", "bearer-token-file")?;
    Ok(Credentials::new(
        Some((user, password)).filter(|(user, _)| !user.is_empty()),
        Some(token).filter(|t| !t.is_empty()),
    ))
}

/// A secret given as such or in a file.
fn secret(
    settings: &Settings,
    name: &'static str,
    file: &'static str,
) -> Result<String, ConfigError> {
    let Some(path) = settings.path(file) else {
        return Ok(settings.text(name).to_string());
    };
    if !settings.text(name).is_empty() {
        return Err(ConfigError::Together(format!("give --{name} or --{file}, not both")));
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| settings.refuse(file, format!("{}: {error}", path.display())))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(settings.refuse(file, format!("{} is empty", path.display()))),
        secret => Ok(secret.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::environment_name;

    #[test]
    fn empty_secrets_are_refused() {
        for name in NEVER_EMPTY {
            let settings = Settings::from_pairs(&[(name, "")]).expect("settings");
            let error = credentials(&settings).expect_err("a refusal").to_string();
            let expected = format!("--{name} (command line): is empty: give a value");
            assert!(error.contains(&expected), "{error}");
        }
        let variable = environment_name("bearer-token");
        let environment = |name: &str| (name == variable).then(String::new);
        let settings = Settings::collect(&|_| None, &environment).expect("settings");
        let error = credentials(&settings).expect_err("a refusal").to_string();
        assert!(error.contains("QUIPU_BEARER_TOKEN (environment): is empty"), "{error}");
    }

    #[test]
    fn empty_secrets_of_a_file_are_refused() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("quipu.toml");
        std::fs::write(&path, "bearer-token = \"\"\n").expect("written");
        let path = path.display().to_string();
        let settings = Settings::from_pairs(&[("config", &path)]).expect("settings");
        let error = credentials(&settings).expect_err("a refusal").to_string();
        assert!(error.contains("bearer-token (") && error.contains("is empty"), "{error}");
    }
}
