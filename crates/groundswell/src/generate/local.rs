//! Two hosts on this machine with an agent each, joined by a cable.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use swell_generate::agent::Address;
use swell_generate::wire::Key;
use swell_host::scratch::Scratch;
use swell_host::{CABLE, CableEnd, Host, HostConfig, Program, Rights, Stream, cable};

use crate::{Error, memory};

/// Port on which agents listen, each on the loopback of its own host.
const PORT: u16 = 8471;
/// The private networks (RFC 1918) of the two hosts.
const NETWORKS: [(&str, [u8; 4]); 2] = [("client", [10, 201, 0, 0]), ("server", [10, 202, 0, 0])];
/// How long an agent may take to answer after its start.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two hosts with agents. Dropping the value removes everything.
pub struct Local {
    hosts: [Arc<Host>; 2],
    /// The agents' processes, client's and server's.
    agents: Vec<u32>,
    token: String,
    _scratch: Scratch,
}

impl Local {
    /// Creates the hosts. `program` is the `swell` binary, which they run as `swell agent`.
    ///
    /// # Errors
    /// If hosts cannot be created, or an agent does not answer.
    pub fn new(rights: &Rights, program: &Path) -> Result<Local, Error> {
        let scratch =
            Scratch::new().map_err(|e| Error::failed(format!("no temporary directory: {e}")))?;
        let token = Key::random().map_err(Error::failed)?.to_hex();
        let file = scratch.path().join("token");
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file)
            .and_then(|mut f| f.write_all(token.as_bytes()));
        written.map_err(Error::failed)?;
        let ends = NETWORKS.map(|(_, network)| {
            let [a, b, ..] = network;
            let prefix = ipnet::Ipv4Net::new(network.into(), 16);
            CableEnd {
                device: CABLE,
                address: Ipv4Addr::new(a, b, 0, 1).into(),
                prefix: prefix.expect("16 is at most 32").into(),
            }
        });
        let mut hosts = Vec::new();
        for ((name, _), end) in NETWORKS.iter().zip(ends) {
            let mut config = HostConfig::new(*name, [end.address]);
            config.local = vec![end.prefix];
            let (host, _) = Host::create(rights, &config).map_err(Error::failed)?;
            hosts.push(Arc::new(host));
        }
        let hosts: [Arc<Host>; 2] = match hosts.try_into() {
            Ok(hosts) => hosts,
            Err(_) => return Err(Error::failed("two hosts were not made")),
        };
        cable((&hosts[0], ends[0]), (&hosts[1], ends[1])).map_err(Error::failed)?;
        let mut agents = Vec::new();
        for (host, end) in hosts.iter().zip(ends) {
            let mut agent = Program::new([program.as_os_str()]);
            let listen = format!("127.0.0.1:{PORT}");
            let pool = end.prefix.to_string();
            let words = [
                "agent", "--quiet", "--plain", "--listen", &listen, "--pool", &pool,
            ];
            agent.argv.extend(words.map(Into::into));
            agent
                .argv
                .extend(["--token-file".into(), file.clone().into()]);
            agent.stderr = Stream::Inherit;
            let process = host.spawn(agent).map_err(Error::failed)?;
            agents.push(process.pid());
        }
        let local = Local {
            hosts,
            agents,
            token,
            _scratch: scratch,
        };
        local.wait()?;
        Ok(local)
    }

    /// Waits until both agents answer.
    fn wait(&self) -> Result<(), Error> {
        let begun = Instant::now();
        for host in &self.hosts {
            while let Err(error) = reach(host) {
                if begun.elapsed() > PATIENCE {
                    let name = host.name();
                    return Err(Error::failed(format!(
                        "the agent of {name} is not there: {error}"
                    )));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// The agent that is the client.
    pub fn client(&self) -> Address {
        address(&self.hosts[0])
    }

    /// The agent that is the server.
    pub fn server(&self) -> Address {
        address(&self.hosts[1])
    }

    /// Peak resident memory of each agent, client then server, in bytes ([`memory::peak`]).
    pub fn memory(&self) -> Option<[u64; 2]> {
        let [client, server] = self.agents.as_slice() else {
            return None;
        };
        Some([memory::peak(client)?, memory::peak(server)?])
    }

    /// Resident pages of the program file in each agent, client then server, in bytes ([`memory::of_files`]).
    pub fn program(&self) -> Option<[u64; 2]> {
        let [client, server] = self.agents.as_slice() else {
            return None;
        };
        Some([memory::of_files(client)?, memory::of_files(server)?])
    }

    /// The token that both agents share.
    pub fn token(&self) -> String {
        self.token.clone()
    }
}

fn address(host: &Arc<Host>) -> Address {
    let name = host.name().to_owned();
    let host = Arc::clone(host);
    Address {
        dial: Some(Arc::new(move || reach(&host))),
        ..Address::from(name.as_str())
    }
}

/// A connection to the agent of a host, over that host's loopback.
fn reach(host: &Host) -> io::Result<TcpStream> {
    let to: IpAddr = Ipv4Addr::LOCALHOST.into();
    host.enter(|| TcpStream::connect((to, PORT)))?
}
