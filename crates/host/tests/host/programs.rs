//! Programs in hosts, and what is left of them.

use std::os::unix::fs::PermissionsExt;

use super::*;

pub(super) fn programs_end(rights: &Rights) {
    let (host, _device) = Host::create(rights, &client()).expect("a host");
    let mut seven = host.spawn(role(&["exit", "7"])).expect("this executable");
    assert_eq!(seven.wait().expect("a child").code(), Some(7));
    let mut aborts = host.spawn(role(&["abort"])).expect("this executable");
    assert_eq!(
        aborts.wait().expect("a child").signal(),
        Some(libc_sigabrt())
    );
    let mut sleeps = host.spawn(role(&["sleep"])).expect("this executable");
    let running = sleeps
        .wait_timeout(Duration::from_millis(20))
        .expect("a child");
    assert_eq!(running, None);
    sleeps.kill().expect("it is ours");
    assert_eq!(sleeps.wait().expect("a child").signal(), Some(9));
    sleeps.kill().expect("the dead can be killed again");
}

/// The number on all architectures that Rust supports on Linux (signal(7)).
fn libc_sigabrt() -> i32 {
    6
}

pub(super) fn a_missing_program(rights: &Rights) {
    let (host, _device) = Host::create(rights, &client()).expect("a host");
    let error = host
        .spawn(Program {
            // Directories that this user may not search would make programs look forbidden.
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            ..Program::new(["no-such-program", "-x"])
        })
        .map(|_| ())
        .expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "cannot start `no-such-program`: there is no such program"
    );
    let forbidden = host
        .spawn(Program::new(["/etc/hosts"]))
        .map(|_| ())
        .expect_err("no program");
    assert_eq!(
        forbidden.to_string(),
        "cannot start `/etc/hosts`: this user may not execute it"
    );
    let nowhere = host
        .spawn(Program {
            directory: Some("/no/such/directory".into()),
            ..Program::new(["/bin/true"])
        })
        .map(|_| ())
        .expect_err("no directory");
    assert_eq!(
        nowhere.to_string(),
        "cannot start `/bin/true`: its directory `/no/such/directory`: No such file or directory (os error 2)"
    );
    // A script is there, but what should run it is not.
    let dir = tempfile::tempdir().expect("a directory");
    let script = dir.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").expect("it is ours");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let lame = host
        .spawn(Program::new([&script]))
        .map(|_| ())
        .expect_err("no interpreter");
    assert!(
        lame.to_string()
            .ends_with("the interpreter or loader that it names does not exist"),
        "{lame}"
    );
    assert!(matches!(lame, swell_host::Error::Program { code: 126, .. }));
}

/// A shell ends at once. What it runs, and a daemon in a session of its own, start another program on SIGTERM before they
/// write their last output; that one is left alone. What ignores SIGTERM is killed.
pub(super) fn programs_end_with_what_they_started(rights: &Rights) {
    let (host, _device) = Host::create(rights, &client()).expect("a host");
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    let place = dir.path().display();
    let server = |name: &str, trap: &str| {
        format!("trap '{trap}' TERM; echo >{place}/{name}.up; while :; do sleep 0.02; done")
    };
    let write = |name: &str| format!("sleep 0.3 && echo bye >{place}/{name}; exit");
    fs::write(
        dir.path().join("server"),
        server("server", &write("server-out")),
    )
    .expect("a file");
    fs::write(
        dir.path().join("daemon"),
        server("daemon", &write("daemon-out")),
    )
    .expect("a file");
    let shell = |script: String| Program::new(["/bin/sh", "-c", &script]);
    let mut leader = host
        .spawn(shell(format!(
            "setsid sh {place}/daemon & cd {place} && sh ./server; true"
        )))
        .expect("a shell");
    let up = |name: &str| {
        let start = Instant::now();
        while !dir.path().join(format!("{name}.up")).exists() {
            assert!(start.elapsed() < LONG, "{name} does not start");
            thread::sleep(Duration::from_millis(5));
        }
    };
    up("server");
    up("daemon");
    host.end_programs(LONG).expect("processes");
    assert!(leader.try_wait().expect("a child").is_some());
    for name in ["server-out", "daemon-out"] {
        let said = fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        assert_eq!(said, "bye\n", "{name}");
    }
    assert_eq!(host.orphans().expect("processes"), Vec::<String>::new());
    let mut deaf = host.spawn(shell(server("deaf", ""))).expect("a shell");
    up("deaf");
    host.end_programs(Duration::from_millis(100))
        .expect("processes");
    assert_eq!(deaf.wait().expect("a child").signal(), Some(9));
}

pub(super) fn the_end_of_a_host(rights: &Rights) {
    let marker = format!("marker-{}-end", std::process::id());
    let (host, device) = Host::create(rights, &client()).expect("a host");
    assert_eq!(ask(&host, &["daemon", &marker]), "true");
    let _sleeps = host
        .spawn(role(&["sleep", &marker]))
        .expect("this executable");
    assert_eq!(running(&marker), 2);
    drop(host);
    assert_eq!(running(&marker), 0);
    drop(device);
}

pub(super) fn kill_9_leaves_nothing(rights: &Rights) {
    if rights.rootless() && VETH.load(Ordering::Relaxed) {
        // The victim starts inside our user namespace, where opening the packet socket of its veth is refused.
        println!("skipped: kill -9 of hosts with veths in a nested user namespace: not permitted");
        return;
    }
    let marker = format!("marker-{}-kill", std::process::id());
    let before = network_namespaces();
    let me = std::env::current_exe().expect("the kernel knows the file that runs");
    let mut command = Command::new(me);
    command
        .args([ROLE, "victim", &marker])
        .stdout(Stdio::piped());
    if VETH.load(Ordering::Relaxed) {
        command.env(VICTIM_HAS_VETH, "1");
    }
    let mut victim = command.spawn().expect("this executable");
    let mut ready = [0; 6];
    victim
        .stdout
        .as_mut()
        .expect("it is piped")
        .read_exact(&mut ready)
        .expect("it makes its hosts");
    assert_eq!(&ready, b"ready\n");
    // Two programs, two daemons, and the victim itself.
    assert_eq!(running(&marker), 5);
    victim.kill().expect("it is ours");
    victim.wait().expect("a child");
    let start = Instant::now();
    while running(&marker) > 0 || network_namespaces() > before {
        assert!(
            start.elapsed() < LONG,
            "{} processes left",
            running(&marker)
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// Processes with this argument, except zombies.
fn running(marker: &str) -> usize {
    let has = |process: &Path| {
        fs::read(process.join("cmdline")).is_ok_and(|line| {
            line.split(|b| *b == 0)
                .any(|argument| argument == marker.as_bytes())
        })
    };
    fs::read_dir("/proc")
        .expect("/proc is mounted")
        .flatten()
        .filter(|entry| has(&entry.path()))
        .count()
}

/// Network namespaces of the processes visible to us.
fn network_namespaces() -> usize {
    let mut all: Vec<_> = fs::read_dir("/proc")
        .expect("/proc is mounted")
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok())
        .collect();
    all.sort();
    all.dedup();
    all.len()
}
