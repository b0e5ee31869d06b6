//! Black-box tests of the program: the real binary, its output and the files that it leaves.

#![expect(
    clippy::shadow_unrelated,
    reason = "each step of a test looks at what its own command said"
)]

mod captured;
mod clients;
mod collect;
mod compare;
mod conditions;
mod control;
mod dial;
mod generate;
mod kept;
mod learn;
mod machines;
mod outputs;
mod recipes;
mod run;
mod scripts;
mod shell;
mod study;
mod through;
mod under;
mod watch;

use std::path::PathBuf;
use std::process::{Command, Output};

/// A temporary directory that is removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("swell-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
    /// Writes a file that only the owner can read.
    fn secret(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(self.write(name, text), own).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn swell(dir: &Scratch) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swell"));
    command.current_dir(&dir.0).env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn run(dir: &Scratch, args: &[&str]) -> Output {
    swell(dir).args(args).output().unwrap()
}

/// Whether an experiment ran to its end: its verdict is an answer, or unsettled, as is usual for few runs.
fn ran(out: &Output) -> bool {
    matches!(out.status.code(), Some(0 | 3))
}
