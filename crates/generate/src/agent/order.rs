//! What a controller is asked for.

use swell_base::Dur;

use super::api::TrafficPart;
use super::remote::{Dial, RemoteError, Trust};

/// Where an agent is.
#[derive(Clone)]
pub struct Address {
    /// What it is called in results: as a rule `HOST:PORT`.
    pub name: String,
    /// Where it is, `HOST:PORT`, if its name does not say so.
    pub at: Option<String>,
    /// How it is reached, if not by that.
    pub dial: Option<Dial>,
    /// Whom to trust to be it, if that is not what holds for all.
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

/// What is to be played, and between which hosts.
#[derive(Clone)]
pub struct Order {
    /// Agents that are clients.
    pub clients: Vec<Address>,
    /// Agents that are servers.
    pub servers: Vec<Address>,
    /// What all of them know.
    pub token: String,
    /// Whom to trust to be they, where an address says nothing else.
    pub trust: Trust,
    /// What is played.
    pub traffic: TrafficPart,
    /// How long an agent goes on without hearing from here.
    pub lease: Dur,
    /// Threads of every agent.
    pub threads: u16,
    /// Every transfer is logged.
    pub flows: bool,
    /// Connections stay open for further transfers.
    pub keep: bool,
    /// Code points in turns.
    pub dscp: Vec<u8>,
    /// Congestion controls in turns.
    pub congestion: Vec<String>,
}

/// Why a run did not come about.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// An agent is not there, or refused.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// It takes both.
    #[error("a run takes at least one client and one server")]
    Nobody,
    /// An agent of another version.
    #[error("{agent} is version {theirs}, this is {own}: let them be the same")]
    Version {
        /// Which one.
        agent: String,
        /// Its version.
        theirs: String,
        /// This program's.
        own: &'static str,
    },
    /// An agent's addresses are none.
    #[error("{agent}: {reason}")]
    Addresses {
        /// Which one.
        agent: String,
        /// What is wrong.
        reason: String,
    },
    /// Clients and servers did not find each other.
    #[error(
        "{client} and its servers did not agree within 10 s: {parties} of {servers} did; is the way \
         from it to their ports open?"
    )]
    Agreement {
        /// Which client.
        client: String,
        /// Servers that it agrees with.
        parties: u64,
        /// Servers that there are.
        servers: usize,
    },
    /// No runtime, no random number.
    #[error("{0}")]
    System(std::io::Error),
}
