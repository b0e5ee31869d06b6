//! What one process at each end can do.

use serde::{Deserialize, Serialize};
use swell_base::Rate;

/// What was measured of a client's and a server's process, driven by a third.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Payload of one stream; none if it was not measured.
    #[serde(with = "bits")]
    pub bulk: Option<Rate>,
    /// Sessions that were asked for.
    pub sessions: u64,
    /// Sessions that were active.
    pub active: u64,
    /// Transfers that were done, and that failed.
    pub done: u64,
    /// See there.
    pub failed: u64,
    /// By how much one transfer in a hundred was late at least, seconds.
    pub late: f64,
    /// Most resident memory of client and server with the sessions, bytes.
    pub memory: Option<[u64; 2]>,
    /// The same before anything was played, MB.
    pub idle: [f64; 2],
    /// Sessions before and after the load was doubled while playing.
    pub reloaded: Option<[u64; 2]>,
    /// Both stopped when asked to.
    pub stopped: bool,
}

mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use swell_base::Rate;

    pub fn serialize<S: Serializer>(rate: &Option<Rate>, s: S) -> Result<S::Ok, S::Error> {
        rate.map(Rate::bps).serialize(s)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(d: D) -> Result<Option<Rate>, D::Error> {
        Ok(Option::<u64>::deserialize(d)?.map(Rate::from_bps))
    }
}
