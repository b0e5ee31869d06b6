//! The view from inside a host: its name, its files, and what is hidden. Set up by its first process in separate
//! mount and UTS (host name) namespaces. Nothing is ever written to the machine's disks.

use super::sys::devices as sys;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_move,
};
use rustix::thread::UnshareFlags;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A failed step, to be reported to the other side.
pub struct Failed {
    /// The step.
    pub step: String,
    /// The error number.
    pub code: i32,
}

impl Failed {
    /// Turns errors of this step into a [`Failed`].
    pub fn step<E: Into<io::Error>>(step: impl Into<String>) -> impl Fn(E) -> Failed {
        let step = step.into();
        move |error| Failed {
            step: step.clone(),
            code: error.into().raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// Directories below /run in which some systems keep parts of the system itself, not only sockets.
const KEPT: [&str; 4] = [
    "/run/current-system",
    "/run/wrappers",
    "/run/opengl-driver",
    "/run/host",
];

/// Gives the calling process its own view: the host name, the files of name resolution, and an empty /run, so that no
/// local daemon can be asked. It also gets its own /proc and /sys if the kernel permits them.
pub fn furnish(name: &str, hosts: &str, resolv: &str, nsswitch: &str) -> Result<(), Failed> {
    sys::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC)
        .map_err(Failed::step("make mount and host name namespaces"))?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(Failed::step("make mounts private"))?;
    rustix::system::sethostname(name.as_bytes()).map_err(Failed::step("set the host name"))?;
    // A symbolic link /etc/resolv.conf usually points into /run, so it must be resolved before /run is replaced.
    let files = [
        ("/etc/hosts", hosts.to_owned()),
        ("/etc/resolv.conf", resolv.to_owned()),
        ("/etc/nsswitch.conf", with_hosts_line(nsswitch)),
    ]
    .map(|(path, text)| (resolved(Path::new(path)), text));
    hide_run()?;
    for (place, text) in files {
        if let Some(place) = place {
            put(&place, &text)?;
        }
    }
    own_proc_and_sys();
    Ok(())
}

/// The machine's nsswitch.conf with a different source of host names. The rest is kept, because users and groups may
/// come from anywhere.
fn with_hosts_line(line: &str) -> String {
    let before = fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
    let kept = before
        .lines()
        .filter(|l| !l.trim_start().starts_with("hosts:"));
    let mut text: String = kept.map(|l| format!("{l}\n")).collect();
    text.push_str(line);
    text
}

/// The real path of the file; `None` if there is none (a machine without the C library's nsswitch.conf).
fn resolved(path: &Path) -> Option<PathBuf> {
    if let Ok(place) = fs::canonicalize(path) {
        return Some(place);
    }
    // A dangling link, because the daemon that creates the file is not running.
    let target = fs::read_link(path).ok()?;
    let place = path.parent()?.join(target);
    let directory = place.parent()?;
    Some(
        fs::canonicalize(directory)
            .unwrap_or_else(|_| directory.to_owned())
            .join(place.file_name()?),
    )
}

const SCRATCH: &str = "/run/swell";

fn hide_run() -> Result<(), Failed> {
    let step = "hide /run";
    if !Path::new("/run").is_dir() {
        return Err(Failed::step("find /run")(io::Error::from_raw_os_error(
            libc::ENOENT,
        )));
    }
    let fresh = |path: &str| {
        mount(
            "swell",
            path,
            "tmpfs",
            MountFlags::NOSUID | MountFlags::NODEV,
            Some(c"mode=755"),
        )
    };
    // Directories that must remain are held open while the one above them is replaced.
    let kept: Vec<(&str, fs::File)> = KEPT
        .iter()
        .filter_map(|path| Some((*path, fs::File::open(path).ok()?)))
        .collect();
    let real_var_run = fs::symlink_metadata("/var/run").is_ok_and(|m| m.is_dir());
    fresh("/run").map_err(Failed::step(step))?;
    if real_var_run {
        fresh("/var/run").map_err(Failed::step("hide /var/run"))?;
    }
    fs::create_dir_all(SCRATCH).map_err(Failed::step(step))?;
    for (path, directory) in kept {
        use std::os::fd::AsRawFd;
        fs::create_dir_all(path).map_err(Failed::step(format!("keep {path}")))?;
        let from = format!("/proc/self/fd/{}", directory.as_raw_fd());
        mount_bind_recursive(from.as_str(), path).map_err(Failed::step(format!("keep {path}")))?;
    }
    Ok(())
}

/// Makes the file at `place` contain this text.
fn put(place: &Path, text: &str) -> Result<(), Failed> {
    let step = || format!("put {} in place", place.display());
    // Below /run there is a file system of our own. Elsewhere a file of ours is mounted over the machine's.
    if !place.exists() {
        if let Some(directory) = place.parent() {
            fs::create_dir_all(directory).map_err(Failed::step(step()))?;
        }
        return fs::write(place, text).map_err(Failed::step(step()));
    }
    let name = place.file_name().unwrap_or_default();
    let ours = Path::new(SCRATCH).join(name);
    fs::write(&ours, text).map_err(Failed::step(step()))?;
    mount_bind(&ours, place).map_err(Failed::step(step()))
}

/// If this is refused, as in containers that cover parts of /proc, programs see the machine's /proc and /sys. These
/// are correct for themselves, but also show other processes and devices.
fn own_proc_and_sys() {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount("proc", "/proc", "proc", flags, None);
    let cgroups = "/sys/fs/cgroup";
    let aside = format!("{SCRATCH}/cgroup");
    let saved = fs::create_dir(&aside).is_ok() && mount_bind_recursive(cgroups, &aside).is_ok();
    let _ = mount("sysfs", "/sys", "sysfs", flags, None);
    if saved {
        let _ = mount_move(aside.as_str(), cgroups);
    }
}
