//! `swell agent`.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use swell_generate::agent::{
    Agent, AgentConfig, AgentError, DialOut, Identity, Trust, enrol, kept, make_authority,
};
use swell_generate::{Addresses, Budget, Limits};
use swell_host::{Precision, be_punctual};
use tokio::sync::oneshot;

use crate::cli::{AgentArgs, AgentCommand};
use crate::fail::Fail;
use crate::{interrupt, out, output};

pub(crate) fn agent(args: &AgentArgs, json: bool) -> Result<(), Fail> {
    if let Some(command) = &args.command {
        return certify(command, json);
    }
    let Some(token_file) = &args.token_file else {
        return Err(Fail::usage("--token-file FILE is missing"));
    };
    let identity = match (&args.tls_cert, &args.tls_key, &args.state) {
        (Some(certificate), Some(key), _) => Some(Identity::read(certificate, key)),
        (_, _, Some(state)) => Some(kept(state)),
        _ if args.plain => None,
        _ => Some(Identity::made()),
    };
    let identity = identity.transpose().map_err(Fail::usage)?;
    let fingerprint = identity.as_ref().map(Identity::fingerprint);
    let dial = dial_out(args)?;
    let config = AgentConfig {
        listen: args.listen.or(match dial {
            Some(_) => None,
            None => Some(LISTEN),
        }),
        dial,
        token: token(token_file)?,
        identity,
        address: args.address.map(|a| a.to_string()),
        pool: Addresses::parse(&args.pool).map_err(Fail::usage)?,
        port: args.port,
        precise: args.precise,
        metrics_token: args.metrics_token_file.as_deref().map(token).transpose()?,
        limits: Limits {
            budget: args.max_rate.map(|rate| Arc::new(Budget::new(rate))),
            peers: Addresses::parse(&args.allow_peer).map_err(Fail::usage)?,
        },
        hours: args.hours,
    };
    if args.precise {
        precise()?;
    }
    let agent = Agent::new(config).map_err(not_begun)?;
    let listen = agent.address().map_err(Fail::failed)?;
    let (stop, stopped) = oneshot::channel();
    interrupt::wishes();
    let watch = std::thread::Builder::new().name("ctrl-c".into());
    let watching = watch.spawn(move || {
        while !interrupt::wished() && !stop.is_closed() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        // The send fails if the agent has ended by itself.
        let _ = stop.send(());
    });
    watching.map_err(Fail::failed)?;
    // A reader of this line may stop the agent at once, so the signal handler is installed before.
    let announce = || {
        if json {
            out::json(&serde_json::json!({
                "listen": listen, "dial": args.dial, "fingerprint": fingerprint,
            }));
        } else if !args.quiet {
            let listening = listen.map(|at| format!("listening on {at}"));
            let dialling = args.dial.as_ref().map(|to| format!("dialling {to}"));
            let all: Vec<String> = [listening, dialling].into_iter().flatten().collect();
            let all = all.join(", ");
            match fingerprint {
                Some(fingerprint) => {
                    out::say(&format!("{all}; its fingerprint:"));
                    out::data(&fingerprint);
                }
                None => out::say(&format!("{all}, plain HTTP")),
            }
        }
    };
    agent.serve(stopped, announce).map_err(Fail::failed)
}

/// Why an agent cannot begin, and what helps where another program has its port.
fn not_begun(error: AgentError) -> Fail {
    let busy = match &error {
        AgentError::Listen { error, .. } => error.kind() == ErrorKind::AddrInUse,
        _ => false,
    };
    let fail = Fail::usage(error);
    match busy {
        true => fail.hint("--listen ADDR:PORT takes another port"),
        false => fail,
    }
}

/// Where agents listen by default.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8471);

/// The controller to dial.
fn dial_out(args: &AgentArgs) -> Result<Option<DialOut>, Fail> {
    let Some(to) = &args.dial else {
        return Ok(None);
    };
    let trust = match (&args.ca, &args.fingerprint) {
        (Some(path), _) => Trust::Authorities(path.clone()),
        (None, Some(print)) => Trust::Fingerprints(vec![print.clone()]),
        (None, None) => {
            let fail = Fail::usage("--dial: whom to trust to be the controller?");
            return Err(fail.hint("--ca FILE or --fingerprint HEX"));
        }
    };
    let quiet = args.quiet;
    let tell = move |text: &str| {
        if !quiet {
            out::say(text);
        }
    };
    Ok(Some(DialOut {
        to: to.clone(),
        trust,
        tell: Box::new(tell),
    }))
}

/// Creates a certificate authority, or lets it certify an agent.
fn certify(command: &AgentCommand, json: bool) -> Result<(), Fail> {
    match command {
        AgentCommand::Ca { dir, days } => {
            let path = make_authority(dir, *days).map_err(Fail::usage)?;
            if json {
                out::json(&serde_json::json!({ "certificate": output::path(path) }));
            } else {
                out::say("the authority's certificate, for --ca of `swell generate`:");
                out::data(&path.display().to_string());
            }
        }
        AgentCommand::Enrol {
            names,
            ca,
            output,
            days,
        } => {
            let identity = enrol(ca, names, output, *days).map_err(Fail::usage)?;
            let fingerprint = identity.fingerprint();
            if json {
                out::json(
                    &serde_json::json!({ "state": output::path(output), "fingerprint": fingerprint }),
                );
            } else {
                let dir = output.display();
                out::say(&format!(
                    "copy {dir} to the host, for --state; its fingerprint:"
                ));
                out::data(&fingerprint);
            }
        }
    }
    Ok(())
}

/// Checks that threads can get real-time priority.
fn precise() -> Result<(), Fail> {
    // Use a separate thread, because the request changes the thread that makes it.
    let asked = std::thread::spawn(|| be_punctual(true)).join();
    if matches!(asked, Ok(Precision::RealTime { .. })) {
        return Ok(());
    }
    let fail = Fail::usage("no real-time priority is granted to this process");
    Err(fail.hint(
        "run it as root or with CAP_SYS_NICE, allow it by `ulimit -r 10`, or leave --precise",
    ))
}

/// The token that agents and controller share.
pub(crate) fn token(path: &Path) -> Result<String, Fail> {
    use std::os::unix::fs::MetadataExt;
    // Anyone who can read the token can send traffic. A device or a pipe, as shells create them, has no other readers.
    if let Ok(file) = std::fs::metadata(path)
        && file.is_file()
        && file.mode() & 0o004 != 0
    {
        let fail = Fail::usage(format!(
            "the token: everyone on this machine can read {}",
            path.display()
        ));
        return Err(fail.hint(format!("chmod o-rwx {}", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(|e| unread(path, &e))?;
    Ok(text.trim().to_owned())
}

/// The token could not be read. Whoever has one is not told how to make another.
fn unread(path: &Path, error: &std::io::Error) -> Fail {
    let fail = Fail::usage(format!("the token: {}: {error}", path.display()));
    match error.kind() {
        ErrorKind::NotFound => fail.hint(format!(
            "`(umask 077; openssl rand -hex 16 > {})` makes one; agents and controller have the same",
            path.display()
        )),
        ErrorKind::PermissionDenied => {
            fail.hint("start it as the user to whom the file belongs, or as one of its group")
        }
        _ => fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_port_has_a_hint() {
        let hint = |kind: ErrorKind| {
            let (address, error) = (LISTEN, kind.into());
            not_begun(AgentError::Listen { address, error }).hint
        };
        assert!(hint(ErrorKind::AddrInUse).unwrap().contains("--listen"));
        assert_eq!(hint(ErrorKind::AddrNotAvailable), None);
    }

    #[test]
    fn only_a_missing_token_is_to_be_made() {
        let hint = |kind: ErrorKind| unread(Path::new("t"), &kind.into()).hint;
        assert!(hint(ErrorKind::NotFound).unwrap().contains("openssl"));
        assert!(
            !hint(ErrorKind::PermissionDenied)
                .unwrap()
                .contains("openssl")
        );
        assert_eq!(hint(ErrorKind::IsADirectory), None);
    }
}
