//! Which hosts open TCP connections.

use swell_capture::Tcp;

use super::Hosts;

/// How far the connections came that a host opened, the farthest of them. Scans and spoofed floods have more
/// senders than a network has clients, and few of them come farther than a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Opening {
    #[default]
    No,
    /// It sent a SYN.
    Asked,
    /// A SYN/ACK came back.
    Answered,
    /// It went on, so it exists, and got the answer.
    Opened,
}

/// Hosts that open connections, by side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opens {
    /// Those on the one side minus those on the other.
    pub(super) sum: i64,
    pub(super) all: i64,
}

impl Opens {
    pub(super) fn add(&mut self, opens: bool, own: i64) {
        self.sum += i64::from(opens) * own;
        self.all += i64::from(opens);
    }

    /// Whether they leave open which side is inside: more than a third of them are on the other side, or some are
    /// and most private hosts, of which `private` more are on the one side than on the other.
    pub(super) fn contested(self, private: i64) -> bool {
        let both = self.sum.abs() < self.all;
        let against = self.sum.signum() * private.signum() < 0;
        3 * self.sum.abs() < self.all || (both && against)
    }
}

impl Hosts {
    /// Notes what a TCP packet from `a` to `b` says about who opens connections.
    pub(crate) fn handshake(&mut self, a: u32, b: u32, h: &Tcp) {
        let (who, before, after) = match (h.has(Tcp::SYN), h.has(Tcp::ACK)) {
            (true, false) => (a, Opening::No, Opening::Asked),
            (true, true) => (b, Opening::Asked, Opening::Answered),
            // A host that only scans, or did not ask, answers a SYN/ACK with a RST.
            (false, true) if !h.has(Tcp::RST) => (a, Opening::Answered, Opening::Opened),
            _ => return,
        };
        let opening = &mut self.hosts[who as usize].opening;
        if *opening == before {
            *opening = after;
        }
    }

    /// How far those hosts came that count as openers: the farthest of all. Where one direction does not pass the
    /// tap, nobody gets farther than a SYN.
    pub(super) fn openers(&self) -> Opening {
        let farthest = self.hosts.iter().map(|h| h.opening).max();
        farthest.unwrap_or_default().max(Opening::Asked)
    }
}
