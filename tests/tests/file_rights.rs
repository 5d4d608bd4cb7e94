//! The data directory is its owner's alone, and holds no password that can be read.

use anyhow::{Result, ensure};
use e2e::postgres::Psql;
use e2e::{Launch, RedisClient};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

const SECRET: &str = "open-sesame-7f3a";

/// Every file and directory, with its mode.
fn modes(directory: &Path, found: &mut Vec<(String, u32)>) -> Result<()> {
    found.push((directory.display().to_string(), fs::metadata(directory)?.mode() & 0o777));
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => modes(&path, found)?,
            false => found.push((path.display().to_string(), fs::metadata(&path)?.mode() & 0o777)),
        }
    }
    Ok(())
}

#[test]
fn only_the_owner_may_read_the_data_directory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    fs::create_dir(&data)?;
    fs::set_permissions(&data, Permissions::from_mode(0o755))?;
    let launch = Launch::new(&data).flag("redis-listen", "127.0.0.1:0");
    let server = launch.flag("postgres-listen", "127.0.0.1:0").start()?;
    server.write("/write?db=x", "m,host=a v=1,s=\"text\"\n")?;
    server.write("/api/v1/import/prometheus", "# HELP m a\n# TYPE m gauge\nm 1\n")?;
    let mut keys = RedisClient::of(&server)?;
    for line in ["SET k v", &format!("CONFIG SET requirepass {SECRET}"), "CONFIG REWRITE"] {
        keys.must(line)?;
    }
    Psql::of(&server)?.ask(&["CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)"], "")?;
    for order in ["/internal/force_flush", "/api/v1/admin/tsdb/snapshot"] {
        ensure!(server.post(order, "")?.status == 200, "{order}");
    }
    let server = server.restart()?;
    let mut keys = RedisClient::of(&server)?;
    ensure!(keys.say("GET k")?.text().starts_with("-NOAUTH"), "the password is kept");
    ensure!(keys.say("AUTH guess")?.text().starts_with("-WRONGPASS"));
    ensure!(keys.say(&format!("AUTH {SECRET}"))?.text() == "OK");
    ensure!(keys.say("GET k")?.text() == "v");
    let user = format!("ACL SETUSER alice on >{SECRET} ~* +@all");
    for line in ["CONFIG REWRITE", &user, "ACL SAVE"] {
        keys.must(line)?;
    }
    let server = server.restart()?;
    let mut keys = RedisClient::of(&server)?;
    ensure!(keys.say(&format!("AUTH {SECRET}"))?.text() == "OK", "written twice");
    ensure!(keys.say(&format!("AUTH alice {SECRET}"))?.text() == "OK");
    let mut found = Vec::new();
    modes(&data, &mut found)?;
    ensure!(10 < found.len(), "{found:?}");
    let open: Vec<_> = found.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    ensure!(open.is_empty(), "{open:?}");
    ensure!(found[0].1 == 0o700, "{:?}", found[0]);
    for name in ["users.acl", "settings.conf"] {
        let text = fs::read_to_string(data.join("keys").join(name))?;
        ensure!(!text.contains(SECRET) && text.contains('#'), "{name}: {text}");
    }
    server.stop()
}
