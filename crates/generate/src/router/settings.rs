//! What is tested, and why it may fail.

use std::error::Error;

use swell_base::Dur;
use swell_host::TokenBucket;

/// The router, and the duration of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of routes to the sink: a power of two, 1 to 65 536.
    pub routes: u32,
    /// Rate limit of the line to the sink; if `None`, the machine is the limit.
    pub limit: Option<TokenBucket>,
    /// Permit receive windows beyond 64 KB (RFC 7323 section 2), as the kernel does by default.
    pub window_scaling: bool,
    /// How long packets are sent.
    pub span: Dur,
    /// Interval between readings of the counters.
    pub every: Dur,
}

/// Why a router could not be tested. If hosts cannot be created, it is a [`swell_host::Error`].
pub type BenchError = Box<dyn Error + Send + Sync>;
