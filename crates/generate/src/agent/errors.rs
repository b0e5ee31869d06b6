//! Why agents fail, and requests to them.

use std::io;
use std::net::SocketAddr;

use super::tls::TlsError;

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The token is short enough to be guessed.
    #[error("the token has {0} bytes: make one of at least 16, such as by `openssl rand -hex 16`")]
    Token(usize),
    /// Both tokens are the same, so a reader of metrics could control the agent.
    #[error("the token for metrics is that for commands: make another one")]
    SameToken,
    /// Without TLS, anyone on the path could read the token.
    #[error("{0} is not a loopback address: plain HTTP works on those alone; leave TLS on")]
    Plain(SocketAddr),
    /// No controller could ever reach it.
    #[error("an agent listens, or dials out to a controller")]
    Nowhere,
    /// The controller that it dials could not know whom it has reached.
    #[error("an agent that dials out needs a certificate: plain HTTP is for those that listen")]
    PlainDial,
    /// The address of the controller is not valid.
    #[error("--dial {0}: this is not HOST:PORT")]
    Dial(String),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be bound, or the runtime cannot be created.
    #[error("{address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
}

/// Why an agent did not do what was requested.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It cannot be reached, or does not follow the protocol.
    #[error("{agent}: {reason}")]
    Away {
        /// The agent.
        agent: String,
        /// What went wrong.
        reason: String,
    },
    /// It answers, but TLS with it fails.
    #[error("{agent}: {reason}")]
    Secret {
        /// The agent.
        agent: String,
        /// Why.
        reason: String,
    },
    /// It is not on this host, and nothing says how to know it.
    #[error(
        "{agent}: plain HTTP is for loopback addresses alone: say whom to trust by --fingerprint or --ca"
    )]
    Untrusted {
        /// The agent.
        agent: String,
    },
    /// It refused.
    #[error("{agent}: {message} ({status})")]
    Refused {
        /// The agent.
        agent: String,
        /// HTTP status.
        status: u16,
        /// Why.
        message: String,
    },
    /// The parameters for authenticating it are invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl RemoteError {
    /// Whether the request was invalid.
    pub(super) fn is_invalid(&self) -> bool {
        matches!(self, RemoteError::Refused { status: 400, .. })
    }

    /// Whether the agent does not have what the request was about.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, RemoteError::Refused { status: 404, .. })
    }

    /// Whether the agent permits this to nobody.
    pub(super) fn is_forbidden(&self) -> bool {
        matches!(self, RemoteError::Refused { status: 403, .. })
    }
}
