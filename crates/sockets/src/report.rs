//! Report of a run over sockets.

use std::collections::BTreeMap;

use rustix::io::Errno;
use swell_base::{Dur, Warning};

use super::Prefix;
use swell_host::Late;

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections begun.
    pub connections: u64,
    /// Datagram flows begun.
    pub datagram_flows: u64,
    /// Payload bytes that arrived at either end.
    pub bytes: u64,
    /// Datagrams passed to the kernel.
    pub datagrams_sent: u64,
    /// Datagrams that the kernel refused.
    pub datagrams_refused: u64,
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Ends of connections that were reset, refused or given up.
    pub resets: u64,
    /// Connections and datagram flows that could not be opened, and handshakes that failed.
    pub failed: u64,
    /// Connections and datagram flows refused for lack of descriptors.
    pub without_descriptors: u64,
    /// Connections from unknown peers; closed at once.
    pub strangers: u64,
    /// Connections opened with the number of an open one.
    pub numbers_in_use: u64,
    /// Connections that should have used IPv6, but a side has no IPv6 prefix.
    pub ipv6_as_ipv4: u64,
    /// Ends of connections or flows whose access path was not applied.
    pub access_not_applied: u64,
    /// Receive windows that could not be capped.
    pub windows_not_capped: u64,
    /// Connections whose sockets do not report acknowledgements.
    pub acknowledgements_by_looking: u64,
    /// Acknowledgements found by the periodic check, up to two seconds late.
    pub late_notices: u64,
}

/// The report of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What happened how often.
    pub counts: Counts,
    /// Lateness of timers.
    pub late: Late,
    /// Warnings to consider before trusting the results.
    pub warnings: Vec<Warning>,
}

/// Code of the warning that a generator fell behind its schedule.
pub const TIMERS_LATE: &str = "timers-late";

/// A 99th percentile of timer lateness above this gives a warning, because packets then do not follow the source's
/// distribution.
const LATE: Dur = Dur::from_millis(5);

impl Report {
    pub(super) fn new(
        counts: Counts,
        late: Late,
        failures: &BTreeMap<i32, u64>,
        shared: impl Iterator<Item = (Prefix, u64)>,
        descriptors: u64,
        mut warnings: Vec<Warning>,
    ) -> Report {
        let c = counts;
        for (&number, times) in failures {
            let error = Errno::from_raw_os_error(number);
            warnings.push(Warning::warning(
                "connections-failed",
                format!(
                    "{times} connections or datagram flows failed: {error}{}",
                    hint(error)
                ),
            ));
        }
        for (prefix, times) in shared.filter(|s| s.1 > 0) {
            let hosts = prefix.hosts();
            let text = format!(
                "{times} times a host had to share the address of another: {prefix} has room for \
                 {hosts}"
            );
            warnings.push(Warning::note("addresses-shared", text));
        }
        let mut say = |n: u64, code, what: String| {
            if n > 0 {
                warnings.push(Warning::warning(code, format!("{n} {what}")));
            }
        };
        say(
            c.without_descriptors,
            "no-descriptors",
            format!(
                "connections or datagram flows did not come about: the process may have \
                 {descriptors} descriptors, and each takes two; raise the hard limit (`ulimit -Hn`)"
            ),
        );
        say(
            c.access_not_applied,
            "access-not-applied",
            "hosts have an access path with a delay, rate or loss, which kernel sockets do not \
             apply"
                .into(),
        );
        say(
            c.ipv6_as_ipv4,
            "ipv6-as-ipv4",
            "connections should have been IPv6 and were IPv4: a side has no IPv6 prefix".into(),
        );
        say(
            c.numbers_in_use,
            "numbers-in-use",
            "connections were begun under the number of an open one and ignored".into(),
        );
        say(
            c.windows_not_capped,
            "windows-not-capped",
            "receive windows could not be capped".into(),
        );
        say(
            c.strangers,
            "strangers",
            "connections came from other programs and were reset".into(),
        );
        say(
            c.datagrams_refused,
            "datagrams-refused",
            "datagrams were not taken by the kernel: its buffers were full".into(),
        );
        say(
            c.late_notices,
            "late-acknowledgements",
            "acknowledgements were told one to two seconds late: the kernel had no memory for the \
             notice"
                .into(),
        );
        if late.p99 > LATE {
            warnings.push(Warning::warning(
                TIMERS_LATE,
                format!(
                    "timers were up to {} late, one in a hundred {} or more: the generator \
                     falls behind its schedule; give it a processor of its own or less to do",
                    late.max, late.p99
                ),
            ));
        }
        Report {
            counts,
            late,
            warnings,
        }
    }
}

/// A hint for the user how to fix an error.
pub fn hint(error: Errno) -> &'static str {
    match error {
        Errno::ADDRNOTAVAIL => {
            "; make the addresses local (`ip route add local PREFIX dev lo`), or use a larger \
             prefix if the ports of one address are exhausted"
        }
        Errno::NETUNREACH | Errno::HOSTUNREACH => "; there is no route between the two sides",
        Errno::MFILE | Errno::NFILE => "; raise the limit of descriptors (`ulimit -Hn`)",
        Errno::NOBUFS | Errno::NOMEM => "; the kernel has no memory left for sockets",
        Errno::TIMEDOUT => "; packets between the two sides are lost",
        _ => "",
    }
}
