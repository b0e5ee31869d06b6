//! The parameters of a controller's run.

use swell_base::Dur;

use super::api::TrafficPart;
use super::remote::{Dial, RemoteError, Trust};

/// How to reach an agent.
#[derive(Clone)]
pub struct Address {
    /// Its name in results, usually `HOST:PORT`.
    pub name: String,
    /// Its location, `HOST:PORT`, if that is not its name.
    pub at: Option<String>,
    /// How to connect to it, if not by its location.
    pub dial: Option<Dial>,
    /// How to authenticate it, if not like all other agents.
    pub trust: Option<Trust>,
}

impl From<&str> for Address {
    fn from(name: &str) -> Address {
        Address {
            name: name.into(),
            at: None,
            dial: None,
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
    /// The system provides no runtime or no random number.
    #[error("{0}")]
    System(std::io::Error),
}
