//! Files beside the keys whose contents the listener reads at its start, checked for `quipu verify`.

use crate::acl::Acl;
use crate::commands;
use crate::scripting::check_libraries;
use crate::settings::Settings;
use kv::credentials::{self, CREDENTIAL_FILES};
use kv::kv::KEYS_DIR;
use kv::libraries::{self, FUNCTIONS_FILE};
use std::path::{Path, PathBuf};
use vfs::Vfs;

/// Reads the contents of users, settings and libraries as a start does; returns those that a start
/// refuses. Files with a wrong checksum are left out: [`kv::verify`] reports them.
pub fn check(vfs: &dyn Vfs, data_dir: &Path) -> Vec<(PathBuf, String)> {
    commands::register();
    let dir = data_dir.join(KEYS_DIR);
    let [users, settings] = CREDENTIAL_FILES.map(|name| credentials::read(vfs, &dir, name));
    let mut parameters = Settings::default();
    let mut problems = Vec::new();
    let [users_name, settings_name] = CREDENTIAL_FILES;
    if let Ok(Some(file)) = settings {
        let read = commands::read_settings(&file, &mut parameters, &mut |_| {});
        problems.extend(read.err().map(|reason| (dir.join(settings_name), reason)));
    }
    if let Ok(Some(file)) = users {
        let read = Acl::read(&file.bytes, commands::has_all_channels(&parameters));
        problems.extend(read.err().map(|reason| (dir.join(users_name), reason)));
    }
    if let Ok(Some(bytes)) = libraries::read(vfs, &dir) {
        let reason = check_libraries(&bytes).err();
        problems.extend(reason.map(|reason| (dir.join(FUNCTIONS_FILE), reason.to_owned())));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    fn problems(name: &str, bytes: &[u8]) -> Vec<String> {
        let (disk, dir) = (SimVfs::new(1), Path::new("/data/keys"));
        disk.create_dir_all(dir).expect("a good disk");
        vfs::write_atomic(&disk, &dir.join(name), bytes).expect("a good disk");
        let found = check(&disk, Path::new("/data"));
        found.into_iter().map(|(path, what)| format!("{}: {what}", path.display())).collect()
    }

    #[test]
    fn contents_that_a_start_refuses_are_reported() {
        for (name, good, bad) in [
            ("users.acl", "user guest on nopass +ping\n", "guest on nopass +ping\n"),
            ("settings.conf", "timeout \"10\"\n", "timeout \"soon\"\n"),
        ] {
            for end in ["", "# checksum accept\n"] {
                assert_eq!(problems(name, format!("{good}{end}").as_bytes()), [""; 0], "{name}");
                let found = problems(name, format!("{bad}{end}").as_bytes());
                assert!(found.len() == 1 && found[0].contains(name), "{name}: {found:?}");
            }
        }
    }
}
