//! The agents at the end of the traffic, and why it ended.

use swell_generate::agent::Standing;

/// Why the traffic ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// The model ended.
    Played,
    /// The duration elapsed.
    Duration,
    /// The caller interrupted it.
    Interrupted,
    /// All clients are lost.
    Gone,
}

impl EndCause {
    /// The word for it in manifests.
    pub fn word(self) -> &'static str {
        match self {
            EndCause::Played => "played",
            EndCause::Duration => "duration",
            EndCause::Interrupted => "interrupted",
            EndCause::Gone => "gone",
        }
    }
}

/// The final state of all agents.
pub struct Agents {
    /// The clients.
    pub clients: Vec<Standing>,
    /// The servers.
    pub servers: Vec<Standing>,
    /// Names of the agents that were lost and did not return.
    pub lost: Vec<String>,
    /// Whether every transfer was to have a row.
    pub(super) logged: bool,
}

impl Agents {
    /// How long clients generated traffic, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        let elapsed = self.clients.iter().flat_map(|c| &c.statistics);
        elapsed.map(|s| s.run.elapsed_s).fold(0.0, f64::max)
    }

    /// Transfers and datagram sources that were in progress when the client was lost or started anew, so that they have no
    /// row.
    pub(super) fn cut_off(&self, s: &Standing) -> u64 {
        let client = self.clients.iter().any(|c| c.agent == s.agent);
        let gone = s.returns > 0 || self.lost.contains(&s.agent);
        match &s.statistics {
            Some(statistics) if self.logged && client && gone => statistics.counts.in_progress(),
            _ => 0,
        }
    }

    /// The agents as JSON: clients, then servers.
    pub fn to_json(&self) -> [serde_json::Value; 2] {
        [&self.clients, &self.servers].map(|all| all.iter().map(|s| self.agent(s)).collect())
    }

    fn agent(&self, s: &Standing) -> serde_json::Value {
        serde_json::json!({
            "agent": s.agent,
            "statistics": s.statistics,
            "flows_lost": s.lost + s.waiting + self.cut_off(s),
            "lost": self.lost.contains(&s.agent),
            "away_s": s.away.as_secs_f64(),
            "returns": s.returns,
            "clock": s.beginning.map(|b| serde_json::json!({
                "offset_s": b.offset_s, "uncertainty_s": b.uncertainty_s,
            })),
        })
    }
}
