//! Permission to create namespaces: as root, or otherwise in a new user namespace.

use super::error::Error;
use super::sys::devices as sys;
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use std::fs;
use std::io;

/// Proof that this process may create hosts; see [`Rights::obtain`].
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    rootless: bool,
}

impl Rights {
    /// Root has the rights. Other users enter a new user namespace in which only their own user and group exist. That
    /// must happen before any other thread starts. Files, processes and sockets stay accessible as before. Programs
    /// started in a host run as the same user, without privileges.
    pub fn obtain() -> Result<Rights, Error> {
        let held =
            rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |c| c.effective);
        if held.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN) {
            return Ok(Rights {
                rootless: own_namespace(),
            });
        }
        enter_user_namespace()?;
        Ok(Rights { rootless: true })
    }

    /// Whether the rights come from a user namespace of this process.
    pub fn rootless(&self) -> bool {
        self.rootless
    }
}

/// Whether the process is in a user namespace other than the initial one, which maps every ID to itself.
fn own_namespace() -> bool {
    fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"])
}

fn enter_user_namespace() -> Result<(), Error> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(Error::Threads(threads));
    }
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    sys::unshare(UnshareFlags::NEWUSER).map_err(|e| refused(e.into()))?;
    // user_namespaces(7): without privileges outside, only one's own IDs can be mapped, and the group only after
    // setgroups is disabled.
    let map = || -> io::Result<()> {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
    };
    map().map_err(refused)?;
    keep_for_helpers().map_err(|e| refused(e.into()))
}

/// The capabilities of helpers executed from here. On execve, a user who is not root loses every other capability
/// (capabilities(7), "Transformation of capabilities during execve").
const FOR_HELPERS: [CapabilitySet; 3] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_CHROOT,
    CapabilitySet::NET_ADMIN,
];

fn keep_for_helpers() -> rustix::io::Result<()> {
    let held = rustix::thread::capabilities(None)?;
    let inheritable = FOR_HELPERS
        .iter()
        .fold(held.inheritable, |all, one| all | *one);
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            inheritable,
            ..held
        },
    )?;
    for capability in FOR_HELPERS {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// The error for a refusal by the kernel, with reason and advice.
pub(super) fn refused(error: io::Error) -> Error {
    let reading = |path: &str| fs::read_to_string(path).map(|s| s.trim().to_owned());
    let is = |path: &str, value: &str| reading(path).is_ok_and(|v| v == value);
    let (reason, advice) = if is("/proc/sys/user/max_user_namespaces", "0") {
        (
            "user.max_user_namespaces is 0".to_owned(),
            "`sysctl user.max_user_namespaces=10000` as root allows it",
        )
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        (
            "kernel.unprivileged_userns_clone is 0".to_owned(),
            "`sysctl kernel.unprivileged_userns_clone=1` as root allows it",
        )
    } else if is(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        (
            "AppArmor restricts unprivileged user namespaces".to_owned(),
            "give the program an AppArmor profile that has `userns,`, or \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as root",
        )
    } else if seccomp() {
        (
            format!("a seccomp filter, as containers have, is in force ({error})"),
            "start the container with a profile that allows `unshare` (docker: `--security-opt \
             seccomp=unconfined`, or `--privileged`)",
        )
    } else {
        (
            error.to_string(),
            "see whether `unshare --user --net true` works here",
        )
    };
    Error::Refused {
        reason,
        advice: advice.into(),
    }
}

fn seccomp() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status
            .lines()
            .any(|l| l.split_whitespace().collect::<Vec<_>>() == ["Seccomp:", "2"])
    })
}
