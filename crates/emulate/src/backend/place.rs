//! Addresses and ports of the hosts of a run, and its directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use swell_base::{Rate, Side};
use swell_experiment::RunSpec;
use swell_experiment::kinds::Plays;
use swell_host::scratch::Scratch;
use swell_workload::Access;
use swell_world::{PathId, PortConfig};

/// A host's addresses.
pub type Addresses = [IpAddr; 2];

/// Addresses reserved for benchmarking (RFC 2544 appendix C.2.2; RFC 5180 section 8).
const fn addresses(side: u8) -> Addresses {
    [
        IpAddr::V4(Ipv4Addr::new(198, 17 + side, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, side as u16, 0, 0, 0, 1)),
    ]
}

/// The client's addresses.
pub const CLIENT: Addresses = addresses(1);
/// The server's addresses.
pub const SERVER: Addresses = addresses(2);

/// Whether the request came from one of the client's addresses.
pub(super) fn is_client(address: IpAddr) -> bool {
    CLIENT.contains(&address)
}

/// Addresses of additional host number `index`, besides client and server.
pub(super) fn peer(side: Side, index: usize) -> Addresses {
    let number = index as u16 + 2;
    let side = match side {
        Side::Left => 1,
        Side::Right => 2,
    };
    [
        IpAddr::V4(Ipv4Addr::new(198, 17 + side, 0, number as u8)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, side.into(), 0, 0, 0, number)),
    ]
}

/// The networks of the many background hosts on one side, separate from the addresses above. The last address of each
/// belongs to the namespace itself, not to a background host.
pub(super) fn networks(side: Side) -> [IpNet; 2] {
    let side = match side {
        Side::Left => 0,
        Side::Right => 1,
    };
    let v4 = Ipv4Addr::new(198, 18 + side, 128, 0);
    let v6 = Ipv6Addr::new(0x2001, 2, 0, 0x101 + u16::from(side), 0, 0, 0, 0);
    [
        Ipv4Net::new_assert(v4, 17).into(),
        Ipv6Net::new_assert(v6, 64).into(),
    ]
}

/// Every host of a run by name, with its addresses: the client first, then the server.
pub(super) fn everybody(foreground: &dyn Plays) -> Vec<(String, Addresses)> {
    let mut all = vec![("client".to_owned(), CLIENT), ("server".to_owned(), SERVER)];
    if let Some(program) = foreground.program() {
        let peers = program.host.iter().enumerate();
        all.extend(peers.map(|(i, p)| (p.name.clone(), peer(p.side, i))));
    }
    all
}

/// Rate of a host's first hop, like a real network card: packets that its kernel hands over as one burst arrive one
/// after the other.
pub(super) const FIRST_HOP: Rate = Rate::from_bps(10_000_000_000);

/// The port of every host at an end of the path, in the order of [`everybody`].
pub(super) fn ports(foreground: &dyn Plays, path: PathId) -> Vec<PortConfig> {
    let delay = foreground.delay();
    let port = |right| PortConfig {
        right,
        access: Access {
            delay,
            up: Some(FIRST_HOP),
            ..Access::default()
        },
        path,
    };
    on_the_right(foreground).map(port).collect()
}

/// Whether each host is on the right side, in the order of [`everybody`].
pub(super) fn on_the_right(foreground: &dyn Plays) -> impl Iterator<Item = bool> {
    let peers = foreground.program().map_or(&[][..], |p| &p.host[..]);
    let peers = peers.iter().map(|p| p.side == Side::Right);
    [false, true].into_iter().chain(peers)
}

/// The values of the placeholders in commands.
pub(super) fn placeholders(spec: &RunSpec, directory: &Path) -> BTreeMap<String, String> {
    let hosts = spec
        .foreground
        .as_ref()
        .map(|f| everybody(&*f.traffic))
        .unwrap_or_default();
    let addresses = hosts.into_iter().flat_map(|(name, [v4, v6])| {
        let six = (format!("{{{name}6}}"), v6.to_string());
        [(format!("{{{name}}}"), v4.to_string()), six]
    });
    let mut all: BTreeMap<String, String> = addresses.collect();
    all.insert("{seed}".into(), spec.cell.seed.to_string());
    all.insert("{dir}".into(), directory.display().to_string());
    all
}

/// Replaces all placeholders in a text.
pub(super) fn filled(text: &str, placeholders: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in placeholders {
        text = text.replace(name, value);
    }
    text
}

/// The run's own directory, or a temporary one.
pub(super) enum RunDirectory {
    Kept(PathBuf),
    Passing(Scratch),
}

impl RunDirectory {
    pub fn new(kept: Option<&Path>) -> io::Result<RunDirectory> {
        match kept {
            // Programs may run in other working directories, so the path must be absolute.
            Some(path) => path.canonicalize().map(RunDirectory::Kept),
            None => Scratch::new().map(RunDirectory::Passing),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            RunDirectory::Kept(path) => path,
            RunDirectory::Passing(scratch) => scratch.path(),
        }
    }
}

/// Removes everything in a directory. Links are removed, not what they point to.
pub(super) fn emptied(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let removed = match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_emptied_and_what_links_point_to_stays() {
        let [scratch, elsewhere] = [(); 2].map(|()| Scratch::new().unwrap());
        let (dir, other) = (scratch.path(), elsewhere.path());
        fs::write(dir.join("measures.jsonl"), "{\"m\": 9}\n").unwrap();
        fs::create_dir_all(dir.join("logs/old")).unwrap();
        fs::write(dir.join("logs/old/a"), "x").unwrap();
        fs::write(other.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(other, dir.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.join("dangling")).unwrap();
        emptied(dir).unwrap();
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
        assert!(other.join("kept").exists());
        assert!(emptied(&dir.join("absent")).is_err());
    }
}
