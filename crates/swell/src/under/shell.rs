//! The client's program: the given command, or a shell whose prompt shows that it runs under the emulator.

use std::collections::BTreeMap;
use std::path::Path;

use crate::fail::Fail;
use crate::interrupt;

/// The client's command.
pub(super) struct Client {
    pub argv: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

impl Client {
    /// The given command, or else a shell, whose files go to `scratch`.
    pub fn of(command: &[String], background: &str, scratch: &Path) -> Result<Client, Fail> {
        if !command.is_empty() {
            return Ok(Client {
                argv: command.to_vec(),
                environment: BTreeMap::new(),
            });
        }
        let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".into());
        shell_of(&shell, background, scratch)
    }
}

/// A shell that reads the user's settings and then changes its prompt.
fn shell_of(shell: &str, background: &str, scratch: &Path) -> Result<Client, Fail> {
    let kind = shell.rsplit('/').next().unwrap_or(shell);
    let quoted: String = background
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_./".contains(*c))
        .collect();
    let prompt = format!("[under {quoted}] ");
    let file = |name: &str, text: String| -> Result<String, Fail> {
        let path = scratch.join(name);
        interrupt::write(&path, text.as_bytes())?;
        Ok(path.display().to_string())
    };
    let (argv, environment) = match kind {
        "bash" => {
            let text = format!("[ -f ~/.bashrc ] && . ~/.bashrc\nPS1='{prompt}'\"$PS1\"\n");
            let rc = file("bashrc", text)?;
            (
                vec![shell.to_owned(), "--rcfile".into(), rc, "-i".into()],
                None,
            )
        }
        "zsh" => {
            let text = format!(
                "ZDOTDIR=$HOME\n[ -f ~/.zshrc ] && . ~/.zshrc\nPROMPT='{prompt}'\"$PROMPT\"\n"
            );
            file(".zshrc", text)?;
            let place = ("ZDOTDIR".to_owned(), scratch.display().to_string());
            (vec![shell.to_owned(), "-i".into()], Some(place))
        }
        "fish" => {
            let text = format!(
                "functions -c fish_prompt swell_prompt; function fish_prompt; echo -n '{prompt}'; swell_prompt; end"
            );
            (vec![shell.to_owned(), "-i".into(), "-C".into(), text], None)
        }
        // POSIX.1-2017 XCU 2.5.3: an interactive shell reads the file that ENV names.
        _ => {
            let rc = file("shrc", format!("PS1='{prompt}$ '\n"))?;
            (
                vec![shell.to_owned(), "-i".into()],
                Some(("ENV".to_owned(), rc)),
            )
        }
    };
    Ok(Client {
        argv,
        environment: environment.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_told_where_it_is() {
        let scratch = swell_host::scratch::Scratch::new().unwrap();
        let bash = shell_of("/usr/bin/bash", "a'; rm -rf x", scratch.path()).unwrap();
        assert_eq!(
            (bash.argv[0].as_str(), bash.argv[3].as_str()),
            ("/usr/bin/bash", "-i")
        );
        let text = std::fs::read_to_string(scratch.path().join("bashrc")).unwrap();
        assert!(text.contains("PS1='[under arm-rfx] '"), "{text}");
        let sh = shell_of("/bin/sh", "none", scratch.path()).unwrap();
        let rc = std::fs::read_to_string(&sh.environment["ENV"]).unwrap();
        assert!(rc.contains("[under none] $ "), "{rc}");
    }
}
