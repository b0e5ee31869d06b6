//! The parameters of a controller's run.

use std::sync::Arc;

use swell_base::Dur;

use super::api::TrafficPart;
use super::errors::RemoteError;
use super::rendezvous::Rendezvous;
use super::request::Dial;
use super::tls::Trust;

/// How to reach an agent.
#[derive(Clone)]
pub struct Address {
    /// Its name in results, usually `HOST:PORT`.
    pub name: String,
    /// Its location, `HOST:PORT`, if that is not its name.
    pub at: Option<String>,
    /// How to connect to it, if not by its location.
    pub dial: Option<Dial>,
    /// It dials in to the order's rendezvous instead. Its certificate has the fingerprint in `trust`, or is an
    /// authority's for the host `name`.
    pub dials_in: bool,
    /// How to authenticate it, if not like all other agents.
    pub trust: Option<Trust>,
}

impl From<&str> for Address {
    fn from(name: &str) -> Address {
        Address {
            name: name.into(),
            at: None,
            dial: None,
            dials_in: false,
            trust: None,
        }
    }
}

/// The traffic, and the hosts that generate it.
#[derive(Clone)]
pub struct Order {
    /// Agents that are clients.
    pub clients: Vec<Address>,
    /// Agents that are servers.
    pub servers: Vec<Address>,
    /// The token that all agents share.
    pub token: String,
    /// How to authenticate agents whose address does not say otherwise.
    pub trust: Trust,
    /// Where agents dial in, if any do.
    pub rendezvous: Option<Arc<Rendezvous>>,
    /// The traffic.
    pub traffic: TrafficPart,
    /// How long an agent continues without hearing from the controller.
    pub lease: Dur,
    /// Number of threads of every agent.
    pub threads: u16,
    /// Whether every transfer is logged.
    pub flows: bool,
    /// Whether connections stay open for further transfers.
    pub keep: bool,
    /// DSCPs that connections use in rotation.
    pub dscp: Vec<u8>,
    /// Congestion controls that connections use in rotation.
    pub congestion: Vec<String>,
}

/// Why a run could not be created.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// An agent could not be reached, or refused.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A run needs at least one client and one server.
    #[error("a run takes at least one client and one server")]
    Nobody,
    /// The traffic cannot have another load.
    #[error("{0}")]
    Load(String),
    /// Agents would dial in, but nobody listens.
    #[error("{0} dials in: say where by --listen ADDR:PORT")]
    NoRendezvous(String),
    /// An agent that dials in could not be told from others.
    #[error("{agent}: {reason}")]
    Unrecognized {
        /// The agent.
        agent: String,
        /// What is missing.
        reason: &'static str,
    },
    /// Agents have not dialled in.
    #[error("{agents} did not dial in to {listen} within 30 s{refused}")]
    Absent {
        /// Their names.
        agents: String,
        /// The address.
        listen: std::net::SocketAddr,
        /// What was refused meanwhile; empty, or a clause that begins with `; `.
        refused: String,
    },
    /// An agent has another version.
    #[error("{agent} is version {theirs}, this is {own}: let them be the same")]
    Version {
        /// The agent.
        agent: String,
        /// Its version.
        theirs: String,
        /// This program's version.
        own: &'static str,
    },
    /// An agent's addresses are invalid.
    #[error("{agent}: {reason}")]
    Addresses {
        /// The agent.
        agent: String,
        /// What is wrong.
        reason: String,
    },
    /// Clients and servers could not agree.
    #[error(
        "{client} and its servers did not agree within 10 s: {parties} of {servers} did; is the way \
         from it to their ports open?"
    )]
    Agreement {
        /// The client.
        client: String,
        /// Number of servers that it has agreed with.
        parties: u64,
        /// Number of servers in the run.
        servers: usize,
    },
    /// A server refused the client's connections.
    #[error("{client} and {server} did not agree within 10 s: {server} refuses it: {why}")]
    Unwelcome {
        /// The client.
        client: String,
        /// The server.
        server: String,
        /// The server's reason.
        why: String,
    },
    /// A client cannot connect to a server.
    #[error(
        "{client} did not reach {server} at {address} within 10 s: is the way from it to this port open?{refused}"
    )]
    Unreachable {
        /// The client.
        client: String,
        /// The server.
        server: String,
        /// The address and port of the server.
        address: String,
        /// Whom the server refused meanwhile; empty, or a clause that begins with `; `.
        refused: String,
    },
    /// The same, with a server that dials in, so it may be behind NAT.
    #[error(
        "{client} did not reach {server} at {address} within 10 s: {server} dials in, so it may be behind NAT \
         or a firewall; let it be a client, or forward a port to it (--port) and say where (--address){refused}"
    )]
    Behind {
        /// The client.
        client: String,
        /// The server.
        server: String,
        /// The address and port at which the server was sought.
        address: String,
        /// Whom the server refused meanwhile; empty, or a clause that begins with `; `.
        refused: String,
    },
    /// The caller cancelled it.
    #[error("interrupted before any traffic was sent")]
    Cancelled,
    /// The system provides no runtime or no random number.
    #[error("{0}")]
    System(std::io::Error),
}
