//! The backend of an experiment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What runs an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// Everything is simulated, in virtual time.
    #[default]
    Simulated,
    /// The network and the background are, against the wall clock; the applications under study are
    /// real programs on real TCP.
    Emulated,
}

/// Whose TCP the background runs on where the backend is the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// Simulated endpoints in the queues of the world: thousands cost a fraction of a processor.
    #[default]
    Simulated,
    /// Sockets of the kernel in hosts of their own, each connection from its host's address and behind
    /// its host's access path: the check on the simulated ones. The warm-up takes its time.
    Kernel,
}
