//! Counters of a generator, and warnings derived from them.

use std::collections::BTreeMap;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use swell_base::{Code, Dur, Warning};

use swell_host::Late;
use swell_sockets::{datagrams_refused, hint, no_descriptors, strangers};

macro_rules! counts {
    ($(#[doc = $doc:literal] $name:ident,)*) => {
        /// Event counters.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Counts {
            $(#[doc = $doc] pub $name: u64,)*
        }

        impl Counts {
            /// Adds `other`.
            pub fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
            }

            /// Counts a datagram of a stranger.
            pub(super) fn stranger_datagram(&mut self) {
                self.strangers += 1;
                self.stranger_datagrams += 1;
            }

            /// Transfers and datagram sources in progress.
            pub fn in_progress(&self) -> u64 {
                let ended = self.done + self.failed + self.unfinished;
                let sources = self.sources_begun.saturating_sub(self.sources_ended);
                self.begun.saturating_sub(ended) + sources
            }

            /// Name and value of each counter.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Name and meaning of each counter; the meaning is a sentence.
            pub fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
                [$((stringify!($name), $doc.trim_ascii())),*].into_iter()
            }
        }
    };
}

counts! {
    /// Transfers begun.
    begun,
    /// Transfers that ended with everything there.
    done,
    /// Transfers that failed.
    failed,
    /// Transfers that were under way when the run ended.
    unfinished,
    /// Connections opened or accepted.
    connections,
    /// TCP payload handed to the kernel, bytes.
    sent_bytes,
    /// TCP payload that arrived, bytes.
    received_bytes,
    /// Datagram sources begun.
    sources_begun,
    /// Datagram sources that ended.
    sources_ended,
    /// Datagram sources that ended without success: no datagram of theirs was sent, or none of their requests was answered.
    sources_failed,
    /// Datagrams handed to the kernel.
    datagrams_sent,
    /// Their payload, bytes.
    datagram_bytes_sent,
    /// Datagrams that arrived.
    datagrams_received,
    /// Their payload, bytes.
    datagram_bytes_received,
    /// Datagrams that the kernel did not take.
    datagrams_refused,
    /// Transfers and exchanges left out because their server had not agreed, or is gone.
    withheld,
    /// Connections and datagrams of strangers; the connections were closed.
    strangers,
    /// The datagrams among them.
    stranger_datagrams,
    /// Parties that went away before the run's end.
    lost_parties,
    /// Transfers and datagram sources for which there were no descriptors.
    without_descriptors,
    /// Sockets that did not get the congestion control that was asked for.
    congestion_refused,
    /// Times that sending waited, and datagrams that were left out, because the agent sends no more.
    limited,
}

/// The state of a generator.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Counters, summed over all threads.
    pub counts: Counts,
    /// Active sessions.
    pub sessions: u64,
    /// Open connections.
    pub open: u64,
    /// How late transfers and exchanges began: quantiles of the thread with the largest lateness, and the maximum of all.
    pub late: Late,
    /// Parties with a valid lease.
    pub parties: u64,
    /// The congestion controls that were asked for.
    pub congestion: Vec<String>,
    /// Indices of parties without one, at most 16.
    pub absent: Vec<u16>,
    /// Why connections were refused because of their addresses, at most eight reasons.
    pub refused: Vec<String>,
    /// All threads share one descriptor table, so more threads do not give more descriptors.
    pub one_table: bool,
    /// Number of threads that ended by a fault of the program.
    pub panicked: u16,
    /// Error numbers of failed transfers, with their counts.
    pub failures: BTreeMap<i32, u64>,
    /// The same of datagram sources that failed because of an error.
    pub source_failures: BTreeMap<i32, u64>,
}

/// A 99th percentile of start lateness above this causes a warning.
const LATE: Dur = Dur::from_millis(5);

impl Statistics {
    /// Adds the statistics of another thread.
    pub(super) fn add(&mut self, other: &Statistics) {
        self.counts.add(&other.counts);
        self.sessions += other.sessions;
        self.open += other.open;
        for (&error, n) in &other.failures {
            *self.failures.entry(error).or_default() += n;
        }
        for (&error, n) in &other.source_failures {
            *self.source_failures.entry(error).or_default() += n;
        }
        let worse = if other.late.p99 >= self.late.p99 {
            other.late
        } else {
            self.late
        };
        self.late = Late {
            count: self.late.count + other.late.count,
            max: self.late.max.max(other.late.max),
            ..worse
        };
    }

    /// Whether starts are too late for the results to be trusted.
    pub fn is_behind(&self) -> bool {
        self.late.p99 > LATE
    }

    /// Warnings about the results.
    pub fn doubts(&self) -> Vec<Warning> {
        let c = &self.counts;
        let mut doubts = Vec::new();
        let ms = |late: Dur| late.as_secs_f64() * 1e3;
        let late = format!(
            "the generator is behind its schedule: one start in a hundred was {:.1} ms late or more, the \
             latest {:.1} ms; give it more processors, less to do or real-time priority (--precise)",
            ms(self.late.p99),
            ms(self.late.max)
        );
        if self.is_behind() {
            doubts.push(Warning::warning(Code::GeneratorBehind, late));
        }
        let mut say = |n: u64, code: Code, what: String| {
            if n > 0 {
                doubts.push(Warning::warning(code, format!("{n} {what}")));
            }
        };
        for (&number, &times) in &self.failures {
            let error = Errno::from_raw_os_error(number);
            // The other end gives up a connection that waits for too long. No other error comes from waiting.
            let gave_up = matches!(error, Errno::CONNRESET | Errno::TIMEDOUT);
            let waited = match gave_up && c.limited > 0 {
                false => "",
                true => {
                    "; the other end is gone, or this agent's limit (`agent-limit`) kept them waiting"
                }
            };
            let text = format!("transfers failed: {error}{}{waited}", hint(error));
            say(times, Code::TransfersFailed, text);
        }
        for (&number, &times) in &self.source_failures {
            let error = Errno::from_raw_os_error(number);
            let text = format!("datagram sources failed: {error}{}", hint(error));
            say(times, Code::SourcesFailed, text);
        }
        let more = if self.one_table {
            "; more threads do not help, for the kernel, or a filter of system calls, gives them no tables of their own"
        } else {
            ", or play with more threads (`--threads`), each of which may have so many"
        };
        let (code, text) = no_descriptors("transfers or datagram sources", more);
        say(c.without_descriptors, code, text);
        say(
            c.withheld,
            Code::Withheld,
            "transfers or exchanges were left out: their server had not agreed or was gone".into(),
        );
        say(
            c.lost_parties,
            Code::LostParties,
            match c.lost_parties {
                1 => "other agent of the run went away before its end".into(),
                _ => "other agents of the run went away before its end".into(),
            },
        );
        let refused = datagrams_refused(None);
        say(c.datagrams_refused, refused.0, refused.1);
        say(
            c.limited,
            Code::AgentLimit,
            "times sending waited or a datagram was left out: the agent sends no more (--max-rate)"
                .into(),
        );
        say(
            self.panicked.into(),
            Code::ThreadPanicked,
            "of the generator's threads ended by a fault of the program: their share of the traffic is missing".into(),
        );
        let unknown = strangers("connections or datagrams");
        say(c.strangers, unknown.0, unknown.1);
        if c.congestion_refused > 0 {
            let names = self.congestion.join(", ");
            let modules: Vec<String> = self.congestion.iter().map(|n| format!("tcp_{n}")).collect();
            let missing = format!(
                "connections did not get a congestion control that was asked for ({names}): `modprobe -a {}`, or add \
                 it to net.ipv4.tcp_allowed_congestion_control",
                modules.join(" ")
            );
            doubts.push(Warning::warning(Code::CongestionControlMissing, missing));
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_name_the_congestion_controls_and_agree_in_number() {
        let mut statistics = Statistics {
            congestion: vec!["bbr".into(), "vegas".into()],
            ..Statistics::default()
        };
        statistics.counts.congestion_refused = 7;
        statistics.counts.lost_parties = 1;
        let texts: Vec<String> = statistics.doubts().into_iter().map(|d| d.message).collect();
        assert!(
            texts[0].starts_with("1 other agent of the run went"),
            "{texts:?}"
        );
        assert!(
            texts[1].contains("`modprobe -a tcp_bbr tcp_vegas`"),
            "{texts:?}"
        );
    }

    #[test]
    fn the_latest_start_of_all_threads_is_the_latest() {
        let late = |p99: u64, max: u64| Statistics {
            late: Late {
                count: 10,
                p99: Dur::from_millis(p99),
                max: Dur::from_millis(max),
                ..Late::default()
            },
            ..Statistics::default()
        };
        for [first, second] in [[(9, 20), (6, 80)], [(6, 80), (9, 20)]] {
            let mut both = late(first.0, first.1);
            both.add(&late(second.0, second.1));
            let expected = late(9, 80).late;
            assert_eq!(
                both.late,
                Late {
                    count: 20,
                    ..expected
                }
            );
            let [doubt] = &both.doubts()[..] else {
                panic!("{both:?}")
            };
            assert!(
                doubt
                    .message
                    .contains("9.0 ms late or more, the latest 80.0 ms")
            );
        }
    }

    #[test]
    fn a_limit_of_the_agent_is_named_as_a_cause_of_failures() {
        let cases = [
            (0, Errno::CONNRESET, false),
            (7, Errno::CONNRESET, true),
            (7, Errno::TIMEDOUT, true),
            (7, Errno::MFILE, false),
        ];
        for (limited, error, named) in cases {
            let mut statistics = Statistics::default();
            statistics.counts.limited = limited;
            statistics.failures.insert(error.raw_os_error(), 3);
            let doubts = statistics.doubts();
            assert_eq!(doubts[0].code, Code::TransfersFailed);
            assert_eq!(doubts[0].message.contains("agent-limit"), named, "{error}");
        }
    }

    #[test]
    fn sources_that_failed_are_not_called_transfers() {
        let mut statistics = Statistics::default();
        let mut other = Statistics::default();
        other.source_failures.insert(Errno::MFILE.raw_os_error(), 3);
        statistics.add(&other);
        let [doubt] = &statistics.doubts()[..] else {
            panic!("{statistics:?}")
        };
        assert_eq!(doubt.code, Code::SourcesFailed);
        assert!(
            doubt.message.starts_with("3 datagram sources failed: "),
            "{}",
            doubt.message
        );
    }

    #[test]
    fn what_has_begun_and_not_ended_is_in_progress() {
        let counts = Counts {
            begun: 9,
            done: 3,
            failed: 2,
            unfinished: 1,
            sources_begun: 5,
            sources_ended: 1,
            ..Counts::default()
        };
        assert_eq!(counts.in_progress(), 7);
    }

    #[test]
    fn more_threads_are_advised_only_where_they_help() {
        for one_table in [false, true] {
            let mut statistics = Statistics {
                one_table,
                ..Statistics::default()
            };
            assert!(statistics.doubts().is_empty());
            statistics.counts.without_descriptors = 3;
            let [doubt] = &statistics.doubts()[..] else {
                panic!("{statistics:?}")
            };
            assert!(doubt.message.contains("ulimit -Hn"), "{}", doubt.message);
            assert_eq!(doubt.message.contains("--threads"), !one_table);
        }
    }
}
