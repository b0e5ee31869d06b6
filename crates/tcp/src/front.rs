//! The state of an endpoint that every call reads.

/// The states of RFC 9293 section 3.3.2, merged where the permitted actions do not differ. The FINs tell which side
/// closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A client that has not sent its SYN.
    Idle,
    Listen,
    SynSent,
    SynReceived,
    Open,
    /// Both FINs are acknowledged. There is no TIME-WAIT.
    Closed,
    /// Aborted, reset or given up.
    Dead,
}

/// Events not yet polled, as bits in the order in which they are delivered.
pub(crate) mod pending {
    pub(crate) const CONNECTED: u8 = 1;
    pub(crate) const DRAINED: u8 = 2;
    pub(crate) const EARLY: u8 = 4;
    pub(crate) const EOF: u8 = 8;
    pub(crate) const RESET: u8 = 16;
    pub(crate) const CLOSED: u8 = 32;
}

/// State that every call reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    pub(crate) state: State,
    /// Events not yet polled.
    pub(crate) events: u8,
    /// SYN or SYN/ACK to be sent.
    pub(crate) syn_due: bool,
    /// Something is to be sent that an open connection rarely sends.
    pub(crate) seldom: bool,
}
