//! The fleet file, which lists agents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use swell_generate::agent::{Address, Trust};

use crate::Error;

/// The agents of a lab.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// The token that all agents share. Paths are relative to the file's own directory.
    token_file: Option<PathBuf>,
    /// Certificate authorities (PEM) for agents without a fingerprint here.
    ca: Option<PathBuf>,
    agents: Vec<Member>,
    /// The directory of the file.
    #[serde(skip)]
    dir: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    /// Its name in results; default: its address.
    name: Option<String>,
    /// `HOST:PORT`, unless it dials in.
    address: Option<String>,
    /// Whether it dials in to the controller.
    #[serde(default)]
    dial: bool,
    role: Role,
    /// Fingerprint of its certificate.
    fingerprint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    Client,
    Server,
}

impl Fleet {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, or its agents are not clients and servers with names and addresses.
    pub fn read(path: &Path) -> Result<Fleet, Error> {
        let wrong = |e: &dyn std::fmt::Display| Error::usage(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| wrong(&e))?;
        let mut fleet: Fleet = toml::from_str(&text).map_err(|e| wrong(&e))?;
        fleet.check().map_err(|e| wrong(&e))?;
        fleet.dir = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(fleet)
    }

    fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for member in &self.agents {
            match (&member.name, &member.address, member.dial) {
                (None, _, true) => return Err("an agent that dials in needs a name".into()),
                (Some(name), Some(_), true) => {
                    return Err(format!("{name}: an agent that dials in has no address"));
                }
                (Some(name), None, false) => {
                    return Err(format!("{name}: neither an address nor `dial = true`"));
                }
                (None, None, false) => {
                    return Err("an agent has an address, or a name and `dial = true`".into());
                }
                _ => {}
            }
            if !names.insert(member.name()) {
                return Err(format!("two agents are called {}", member.name()));
            }
            if let Some(address) = &member.address {
                is_address(address)?;
            }
        }
        if let Some(address) = twice(self.agents.iter().flat_map(|a| a.address.as_deref())) {
            return Err(format!("two agents have the address {address}"));
        }
        // Agents that dial in are told apart by their certificates.
        let dialling = self.agents.iter().filter(|a| a.dial);
        if let Some(print) = twice(dialling.flat_map(|a| a.fingerprint.as_deref())) {
            return Err(format!("two agents have the fingerprint {print}"));
        }
        for (role, word) in [(Role::Client, "client"), (Role::Server, "server")] {
            if !self.agents.iter().any(|a| a.role == role) {
                return Err(format!("no agent has the role \"{word}\""));
            }
        }
        Ok(())
    }

    /// The addresses of clients and servers.
    pub fn addresses(&self) -> (Vec<Address>, Vec<Address>) {
        let of = |role| {
            let own = self.agents.iter().filter(|a| a.role == role);
            own.map(Member::address).collect()
        };
        (of(Role::Client), of(Role::Server))
    }

    /// Whether an agent dials in.
    pub fn dials(&self) -> bool {
        self.agents.iter().any(|a| a.dial)
    }

    /// The file with the token that all agents share.
    pub fn token_file(&self) -> Option<PathBuf> {
        self.token_file.as_ref().map(|p| self.dir.join(p))
    }

    /// The file with the certificate authorities.
    pub fn ca(&self) -> Option<PathBuf> {
        self.ca.as_ref().map(|p| self.dir.join(p))
    }
}

/// Checks that a text is `HOST:PORT`, with an IPv6 address in brackets.
///
/// # Errors
/// What is wrong with it.
pub fn is_address(text: &str) -> Result<(), String> {
    let bare = text.parse::<std::net::Ipv6Addr>().is_ok();
    match text.rsplit_once(':') {
        _ if bare => Err(format!(
            "{text}: an address is HOST:PORT, with IPv6 addresses in brackets: [{text}]:8471"
        )),
        None => Err(format!(
            "{text}: `:PORT` is missing: an address is HOST:PORT, and agents listen on port 8471 by default"
        )),
        Some((host, port)) => match port.parse::<u16>() {
            Ok(1..) if !host.is_empty() => Ok(()),
            _ => Err(format!(
                "{text}: an address is HOST:PORT, with a port from 1 to 65535"
            )),
        },
    }
}

/// The first address that was there before, if any. Host names have no case (RFC 4343).
pub(super) fn twice<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    let mut addresses = addresses.into_iter();
    addresses.find(|a| !seen.insert(a.to_ascii_lowercase()))
}

impl Member {
    fn name(&self) -> &str {
        let address = self.address.as_deref();
        // Every agent has one or the other.
        self.name.as_deref().or(address).unwrap_or_default()
    }

    fn address(&self) -> Address {
        let pin = |print: &String| Trust::Fingerprints(vec![print.clone()]);
        Address {
            at: self.address.clone(),
            dials_in: self.dial,
            trust: self.fingerprint.as_ref().map(pin),
            ..Address::from(self.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<Fleet, String> {
        let fleet: Fleet = toml::from_str(text).map_err(|e| e.to_string())?;
        fleet.check()?;
        Ok(fleet)
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for good in ["a:1", "10.0.0.1:8471", "[::1]:65535"] {
            assert_eq!(is_address(good), Ok(()));
        }
        for (bad, says) in [
            ("a", "`:PORT` is missing"),
            ("10.0.0.1", "`:PORT` is missing"),
            ("fd09::1", "[fd09::1]:8471"),
            ("a:", "1 to 65535"),
            ("a:0", "1 to 65535"),
            ("a:65536", "1 to 65535"),
            (":1", "1 to 65535"),
        ] {
            let said = is_address(bad).unwrap_err();
            assert!(said.starts_with(bad) && said.contains(says), "{said}");
        }
    }

    #[test]
    fn an_agent_that_dials_in_has_a_name_instead_of_an_address() {
        let fleet = checked(
            "[[agents]]\nname = \"a\"\ndial = true\nrole = \"client\"\nfingerprint = \"00\"\n\
             [[agents]]\naddress = \"b:1\"\nrole = \"server\"\n",
        );
        let fleet = fleet.unwrap();
        assert!(fleet.dials());
        let (clients, servers) = fleet.addresses();
        assert_eq!(clients[0].name, "a");
        assert!(clients[0].dials_in && clients[0].at.is_none() && !servers[0].dials_in);
    }

    #[test]
    fn a_file_names_clients_and_servers_or_says_what_is_wrong() {
        let client = "[[agents]]\nname = \"a\"\naddress = \"10.0.0.1:1\"\nrole = \"client\"\n";
        let server = "[[agents]]\naddress = \"b:1\"\nrole = \"server\"\nfingerprint = \"00\"\n";
        let fleet = checked(&format!("{client}{server}")).unwrap();
        let (clients, servers) = fleet.addresses();
        assert_eq!((clients.len(), servers.len()), (1, 1));
        assert_eq!(
            (clients[0].name.as_str(), clients[0].at.as_deref()),
            ("a", Some("10.0.0.1:1"))
        );
        assert!(clients[0].trust.is_none());
        assert!(matches!(&servers[0].trust, Some(Trust::Fingerprints(p)) if p == &["00"]));
        for (text, says) in [
            (client.to_owned(), "role \"server\""),
            (format!("{client}{client}{server}"), "called a"),
            (
                format!("{client}{server}{server}").replacen("b:1", "B:1\"\nname = \"c", 1),
                "the address b:1",
            ),
            (format!("{client}{server}").replace("b:1", "b"), "HOST:PORT"),
            (
                format!("{client}{server}").replace("\"server\"", "\"both\""),
                "both",
            ),
            (format!("tokens = 1\n{client}{server}"), "tokens"),
            (
                format!("{client}{server}").replace("address = \"b:1\"", "dial = true"),
                "needs a name",
            ),
            (
                format!("{client}dial = true\n{server}"),
                "a: an agent that dials in has no address",
            ),
            (
                format!("{client}{server}").replace("address = \"10.0.0.1:1\"\n", ""),
                "a: neither an address nor",
            ),
            (
                format!("{client}{server}").replace("address = \"b:1\"\n", ""),
                "an agent has an address, or",
            ),
            (
                ["x", "y"]
                    .map(|n| {
                        format!("{server}name = \"{n}\"\n")
                            .replace("address = \"b:1\"", "dial = true")
                    })
                    .concat()
                    + client,
                "the fingerprint 00",
            ),
        ] {
            let said = checked(&text).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
