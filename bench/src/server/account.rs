//! Running a server as another user: PostgreSQL refuses root, which is who runs in containers.

use super::Peer;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    user_id: u32,
    group_id: u32,
}

impl Account {
    /// Whom to become for `peer`: `None` when it runs as whoever we are.
    ///
    /// # Errors
    /// When there is no such user.
    pub fn of(peer: &Peer) -> Result<Option<Account>> {
        let Some(name) = peer.account else { return Ok(None) };
        let is_root = fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0);
        if !is_root {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let account = find(&passwd, name).with_context(|| {
            format!("{} does not run as root, and there is no user {name:?}: add it", peer.name)
        })?;
        Ok(Some(account))
    }

    /// Gives the directory to the user, and lets the user reach it.
    ///
    /// # Errors
    /// When that is not allowed.
    pub fn own(self, dir: &Path) -> Result<()> {
        let context = || format!("cannot give {} to user {}", dir.display(), self.user_id);
        chown(dir, Some(self.user_id), Some(self.group_id)).with_context(context)?;
        // The directory of a run is made for its maker alone; passing through it is harmless.
        let dir = fs::canonicalize(dir)?;
        for (height, parent) in dir.ancestors().skip(1).enumerate() {
            let mode = fs::metadata(parent)?.mode();
            if mode & 0o001 == 0 {
                let shown = parent.display();
                ensure!(height == 0, "{shown} is closed to other users: choose another --work-dir");
                fs::set_permissions(parent, fs::Permissions::from_mode(mode | 0o111))?;
            }
        }
        Ok(())
    }
}

/// A command that runs `program` as `account`: in the same process, so signals reach it.
pub fn command(account: Option<Account>, program: &Path) -> Command {
    let Some(account) = account else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={}", account.user_id))
        .arg(format!("--regid={}", account.group_id))
        .arg("--clear-groups")
        .arg("--")
        .arg(program)
        // The directory that we stand in may be closed to that user.
        .current_dir("/");
    command
}

/// `name:password:user:group:...`, a line a user.
fn find(passwd: &str, name: &str) -> Option<Account> {
    let mut fields = passwd
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    let user_id = fields.nth(1)?.parse().ok()?;
    let group_id = fields.next()?.parse().ok()?;
    Some(Account { user_id, group_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:,,,:/var:/bin/sh\nbad:x\n";
        assert_eq!(find(passwd, "postgres"), Some(Account { user_id: 101, group_id: 104 }));
        assert_eq!(find(passwd, "post"), None);
        assert_eq!(find(passwd, "bad"), None);
    }

    #[test]
    fn without_an_account_the_program_itself_is_run() {
        assert_eq!(command(None, Path::new("/bin/true")).get_program(), "/bin/true");
        let account = Account { user_id: 1, group_id: 2 };
        let command = command(Some(account), Path::new("/bin/true"));
        assert_eq!(command.get_program(), "setpriv");
        assert_eq!(command.get_args().last().unwrap(), "/bin/true");
    }
}
