//! Report of a run over sockets.

use std::collections::BTreeMap;

use rustix::io::Errno;
use swell_base::{Code, Dur, Warning};

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

/// A 99th percentile of timer lateness above this gives a warning, because packets then do not follow the source's
/// distribution.
const LATE: Dur = Dur::from_millis(5);

impl Report {
    pub(super) fn new(
        counts: Counts,
        late: Late,
        failures: &BTreeMap<i32, u64>,
        refusals: &BTreeMap<i32, u64>,
        shared: impl Iterator<Item = (Prefix, u64)>,
        descriptors: u64,
        mut warnings: Vec<Warning>,
    ) -> Report {
        let c = counts;
        for (&number, times) in failures {
            let error = Errno::from_raw_os_error(number);
            warnings.push(Warning::warning(
                Code::ConnectionsFailed,
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
            warnings.push(Warning::note(Code::AddressesShared, text));
        }
        let mut say = |n: u64, code, what: String| {
            if n > 0 {
                warnings.push(Warning::warning(code, format!("{n} {what}")));
            }
        };
        let room = format!("; the process may have {descriptors}, and each takes two");
        let (code, text) = no_descriptors("connections or datagram flows", &room);
        say(c.without_descriptors, code, text);
        say(
            c.access_not_applied,
            Code::AccessNotApplied,
            "ends of connections or datagram flows have an access path with a delay, rate or loss, \
             which kernel sockets do not apply"
                .into(),
        );
        say(
            c.ipv6_as_ipv4,
            Code::Ipv6AsIpv4,
            "connections should have been IPv6 and were IPv4: a side has no IPv6 prefix".into(),
        );
        say(
            c.numbers_in_use,
            Code::NumbersInUse,
            "connections were begun under the number of an open one and ignored".into(),
        );
        say(
            c.windows_not_capped,
            Code::WindowsNotCapped,
            "receive windows could not be capped".into(),
        );
        let unknown = strangers("connections");
        say(c.strangers, unknown.0, unknown.1);
        for (&number, &times) in refusals {
            let refused = datagrams_refused(Some(Errno::from_raw_os_error(number)));
            say(times, refused.0, refused.1);
        }
        say(
            c.acknowledgements_by_looking,
            Code::LateAcknowledgements,
            "ends of connections are not told of acknowledgements by the kernel: they are looked for, up to two \
             seconds late"
                .into(),
        );
        say(
            c.late_notices,
            Code::LateAcknowledgements,
            "acknowledgements were told one to two seconds late: the kernel had no memory for the \
             notice"
                .into(),
        );
        if late.p99 > LATE {
            warnings.push(Warning::warning(
                Code::TimersLate,
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

/// Code and text of the warning that `what` did not come about for lack of descriptors. Their number precedes the
/// text, and `more` ends it. Also for other programs over sockets, as the next two.
pub fn no_descriptors(what: &str, more: &str) -> (Code, String) {
    let text = format!(
        "{what} did not come about for want of descriptors; raise the hard limit (`ulimit -Hn`){more}"
    );
    (Code::NoDescriptors, text)
}

/// Code and text of the warning that the kernel did not take datagrams, with its error if that is known.
pub fn datagrams_refused(error: Option<Errno>) -> (Code, String) {
    let why = error.map_or_else(String::new, |e| format!(": {e}"));
    let text = format!("datagrams were not taken by the kernel{why}");
    (Code::DatagramsRefused, text)
}

/// Code and text of the warning that `what` came from unknown peers.
pub fn strangers(what: &str) -> (Code, String) {
    let text = format!("{what} came from strangers and were refused");
    (Code::Strangers, text)
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
        Errno::TIMEDOUT => {
            "; packets between the two sides are lost, or the other side does not run"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel refuses datagrams for many reasons, of which full buffers are one. Access paths are counted for each
    /// connection, not for each host.
    #[test]
    fn warnings_say_what_is_known() {
        let refusals = [(Errno::PERM, 1), (Errno::AGAIN, 3)];
        let refusals = refusals.map(|(error, times)| (error.raw_os_error(), times));
        let counts = Counts {
            datagrams_refused: 4,
            access_not_applied: 2,
            ..Counts::default()
        };
        let report = Report::new(
            counts,
            Late::default(),
            &BTreeMap::new(),
            &BTreeMap::from(refusals),
            std::iter::empty(),
            100,
            Vec::new(),
        );
        let told = |code: Code| -> Vec<String> {
            let of_code = report.warnings.iter().filter(|w| w.code == code);
            of_code.map(|w| w.message.clone()).collect()
        };
        let text = "datagrams were not taken by the kernel";
        let each = [
            format!("1 {text}: {}", Errno::PERM),
            format!("3 {text}: {}", Errno::AGAIN),
        ];
        assert_eq!(told(Code::DatagramsRefused), each);
        let [access] = &told(Code::AccessNotApplied)[..] else {
            panic!("{:?}", report.warnings)
        };
        assert!(access.starts_with("2 ends of connections"), "{access}");
    }
}
