//! Options of the configurator.

use swell_base::Dur;

use super::super::model::Profile;

/// The order of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By last packet or export time: a long flow comes after flows that began later.
    #[default]
    End,
    /// By first packet.
    Start,
}

/// Hosts whose numbers begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The number of one of them.
    pub host: u128,
    /// Number of equal bits, from the highest on; at most 128.
    pub prefix: u32,
}

impl Network {
    fn contains(&self, host: u128) -> bool {
        self.prefix == 0 || (self.host ^ host) >> (128 - self.prefix.min(128)) == 0
    }
}

/// Options of the configurator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Which arithmetic to follow.
    pub profile: Profile,
    /// Length of an interval; whole microseconds, at least one.
    pub interval: Dur,
    /// Reference time on the clock of the records. Intervals begin at multiples of their length from it.
    /// Models can be merged only if their intervals line up.
    pub origin: i64,
    /// How records are ordered.
    pub order: Order,
    /// A longer gap between two connections of a pair of hosts ends the session (60 s in the paper).
    pub session_gap: Dur,
    /// Silence after which the same addresses and ports mean another connection.
    pub idle: Dur,
    /// The networks of the clients, if known. If one of two hosts is in them, it is the client, whatever the records
    /// show. [`Profile::Harpoon`] has no clients.
    pub clients: Option<[Network; 2]>,
    /// Minimum payload of a file in bytes, per direction; a connection without a file is dropped (100 in
    /// the paper). With zero, every connection that was accepted or carries payload counts.
    pub min_file: u64,
    /// Maximum number of entries in each table: connections, pairs, hosts, sources. Each entry in use
    /// takes some 200 bytes. At most 2^31.
    pub capacity: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            profile: Profile::Fixed,
            interval: Dur::from_secs(300),
            origin: 0,
            order: Order::End,
            session_gap: Dur::from_secs(60),
            idle: Dur::from_secs(60),
            clients: None,
            min_file: 0,
            capacity: 1 << 22,
        }
    }
}

impl Options {
    /// Which of two hosts is the client, if it is known from their networks.
    pub(super) fn client_of(&self, hosts: &[u128; 2]) -> Option<usize> {
        let networks = self.clients.as_ref()?;
        let [a, b] = hosts.map(|host| networks.iter().any(|n| n.contains(host)));
        (a != b).then_some(usize::from(b))
    }
}
