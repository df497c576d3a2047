//! Whom the server's programs run as. PostgreSQL refuses to run as root, so root lends them to an account
//! without privileges.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The account the server's programs run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// The caller's own.
    Caller,
    /// One without privileges, because the caller is root.
    Lent { name: String, uid: u32, gid: u32 },
}

impl Account {
    /// Picks the account. `None` when the caller is root and the machine has no account to lend to.
    pub(crate) fn pick() -> Option<Account> {
        if !caller_is_root() {
            return Some(Account::Caller);
        }
        let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
        // macOS names its PostgreSQL account with an underscore.
        ["postgres", "_postgres", "nobody"].iter().find_map(|name| entry(&passwd, name))
    }

    /// A command that runs `program` under this account, free of the caller's `PG*` variables, with
    /// messages in English and a working folder that every account can enter.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
        if let Account::Lent { uid, gid, .. } = self {
            // The standard library also drops root's supplementary groups here.
            command.uid(*uid).gid(*gid);
        }
        command
    }

    /// Whether this account can enter `dir`. Asked of the kernel rather than read from mode bits: the
    /// child changes its folder after it has given up root.
    pub(crate) fn can_enter(&self, dir: &Path) -> bool {
        let tried = self.command("/bin/sh").args(["-c", ":"]).current_dir(dir).status();
        tried.is_ok_and(|status| status.success())
    }

    /// Makes `path` this account's own. Used for nothing but what this crate has just created.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        match self {
            Account::Caller => Ok(()),
            Account::Lent { uid, gid, .. } => std::os::unix::fs::lchown(path, Some(*uid), Some(*gid)),
        }
    }

    /// The name to show in a message.
    pub(crate) fn name(&self) -> &str {
        match self {
            Account::Caller => "you",
            Account::Lent { name, .. } => name,
        }
    }
}

/// Whether the caller is root.
pub(crate) fn caller_is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Looks `name` up in the text of a passwd file.
fn entry(passwd: &str, name: &str) -> Option<Account> {
    let mut fields = passwd.lines().map(|line| line.split(':')).find_map(|mut fields| {
        let found = fields.next() == Some(name);
        found.then_some(fields)
    })?;
    // macOS writes nobody's id as -2.
    let id =
        |text: &str| text.parse::<u32>().ok().or_else(|| Some(text.parse::<i32>().ok()?.cast_unsigned()));
    let (_password, uid, gid) = (fields.next()?, id(fields.next()?)?, id(fields.next()?)?);
    Some(Account::Lent { name: name.to_owned(), uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ids_of_linux_and_of_macos() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:105:110:,,,:/var/lib/postgresql:/bin/bash\n\
                      nobody:*:-2:-2:Unprivileged User:/var/empty:/usr/bin/false\n";
        let lent = |name: &str, uid, gid| Some(Account::Lent { name: name.to_owned(), uid, gid });
        assert_eq!(entry(passwd, "postgres"), lent("postgres", 105, 110));
        assert_eq!(entry(passwd, "nobody"), lent("nobody", u32::MAX - 1, u32::MAX - 1));
        assert_eq!(entry(passwd, "post"), None);
    }
}
