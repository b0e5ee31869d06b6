//! Warnings about a model made from flow records.

use swell_base::{Code, Warning};

use super::super::model::{ENOUGH, FlowModel, MAX_INTERVALS};

/// Numbers of connections with a larger relative standard error are doubtful.
const COARSE: f64 = 0.05;

/// One late record in so many does not change a model noticeably.
const MANY_LATE: u64 = 100;
/// With fewer connections, those with a single side say little.
const FEW_SIDES: u64 = 20;

/// Numbers of records that give reason to doubt a model.
#[derive(Debug, Default)]
pub(super) struct Doubtful {
    /// Packet-sampled ones.
    pub(super) sampled: u64,
    pub(super) without_flags: u64,
    /// Left out because a model has no interval for them.
    pub(super) beyond: u64,
    /// Left out because they are far ahead of the others.
    pub(super) ahead: u64,
    /// Behind the clock by so much that their connections had been closed.
    pub(super) late: u64,
    /// Equal to an earlier one of about the same time.
    pub(super) repeated: u64,
    /// Connections by the sides that sent packets: the client alone, the server alone, both.
    pub(super) sides: [u64; 3],
}

/// All warnings.
pub(super) fn doubts(model: &FlowModel, of: &Doubtful) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let t = &model.totals;
    let files = model.tcp.down.count();
    let &Doubtful {
        sampled,
        without_flags,
        ..
    } = of;
    if of.beyond > 0 {
        doubts.push(Warning::warning(Code::OutOfReach, format!(
            "{} of {} records are left out: a model has at most {MAX_INTERVALS} intervals, here of {}, and these records \
             are too far from the others; if their times are right, a longer --interval takes them in",
            of.beyond, t.records, model.interval
        )));
    }
    if of.ahead > 0 {
        doubts.push(Warning::warning(Code::TimesAhead, format!(
            "{} of {} records are left out: they begin more than a day after all others until then, so their times are \
             taken to be wrong",
            of.ahead, t.records
        )));
    }
    if of.late.saturating_mul(MANY_LATE) > t.records {
        doubts.push(Warning::warning(Code::LateRecords, format!(
            "{} of {} records come so long after later ones that their connections had been closed: numbers of \
             connections, sizes and gaps are wrong; sort the records by time, and give files in order of time",
            of.late, t.records
        )));
    }
    // More than half of the records are in pairs of equal ones.
    if of.repeated.saturating_mul(4) > t.records {
        doubts.push(Warning::warning(Code::RepeatedRecords, format!(
            "{} of {} records equal an earlier one of the same time in addresses, ports, packets and bytes: if two \
             exporters saw the same packets, or records are there twice, all volumes are too large",
            of.repeated, t.records
        )));
    }
    let [client, server, both] = of.sides;
    let one = client.saturating_add(server);
    if one > both && one >= FEW_SIDES && client.min(server).saturating_mul(10) > one {
        doubts.push(Warning::note(Code::SidesApart, format!(
            "{client} connections have packets of the client alone, {server} of the server alone, and {both} of both: the \
             two directions took different paths, or come from exporters whose clocks are more than a second apart, and \
             then there are twice as many connections as there were"
        )));
    }
    if sampled > 0 {
        doubts.extend(sampling_doubts(model, sampled));
    }
    if without_flags > 0 {
        doubts.push(Warning::note(Code::NoFlags, format!(
            "{without_flags} records have no TCP flags: connections are separated by silence, their ends \
             and clients inferred from times and ports"
        )));
    }
    if t.censored * 20 > files && t.censored > 0 {
        doubts.push(Warning::warning(Code::Censored, format!(
            "{} of {files} connections were not seen whole: the sizes of the largest are estimates", t.censored
        )));
    }
    if files > 0 && (model.tcp.up.sum() == 0) != (model.tcp.down.sum() == 0) {
        let way = if model.tcp.up.sum() > 0 {
            "client"
        } else {
            "server"
        };
        doubts.push(Warning::note(Code::OneWay, format!(
            "all files come from the {way}: the records are of one direction, or of both together"
        )));
    }
    if t.evicted > 0 {
        doubts.push(Warning::warning(
            Code::Evicted,
            format!(
                "{} entries were given up early because a table was full: --table-entries makes room for more",
                t.evicted
            ),
        ));
    }
    if files > 0 && model.tcp.gaps.is_empty() {
        doubts.push(Warning::warning(Code::NoGaps, format!(
            "no client opened two of the {files} connections to one server within the session gap: a \
             session opens one connection per interval"
        )));
    }
    let mut begun: Vec<u64> = model.tcp.intervals.iter().map(|i| i.connections).collect();
    begun.retain(|&n| n > 0);
    begun.sort_unstable();
    if let Some(&middling) = begun.get(begun.len() / 2)
        && middling < ENOUGH
        && files >= 100
    {
        doubts.push(Warning::note(Code::FewPerInterval, format!(
            "a middling interval has {middling} connections: played as it is, the volume of single intervals is more \
             than 5 % off where there are fewer than {ENOUGH}, that of all together is not; a longer --interval has more"
        )));
    }
    if files > 0 && files < 100 {
        doubts.push(Warning::warning(
            Code::FewConnections,
            format!("{files} connections are few for a law of sizes"),
        ));
    }
    doubts
}

/// Warnings about what sampling leaves unknown.
fn sampling_doubts(model: &FlowModel, records: u64) -> Vec<Warning> {
    let mut doubts = vec![Warning::note(
        Code::Sampled,
        format!(
            "{records} of {} records are packet-sampled. Volumes are multiplied out; gaps, sessions and the \
             popularity of hosts are those of connections with a sampled packet; UDP flows without one are not \
             counted",
            model.totals.records
        ),
    )];
    for s in &model.sampled {
        let n = s.interval;
        doubts.push(match s.connections {
            Some(connections) => {
                let [low, high] = connections.interval();
                let (severity, hint): (fn(Code, String) -> Warning, _) =
                    if connections.relative() > COARSE {
                        (Warning::warning, ": more records would tell")
                    } else {
                        (Warning::note, "")
                    };
                severity(
                    Code::SampledSizes,
                    format!(
                        "sampled 1 in {n}: {:.0} connections by their SYNs (95 %: {low:.0} to {high:.0}){hint}; \
                         the law of sizes below {} bytes is a smooth guess that meets their number and volume",
                        connections.value, s.resolved
                    ),
                )
            }
            None => Warning::warning(
                Code::SampledCounts,
                format!(
                    "sampled 1 in {n} without a TCP flag that tells a SYN: connections without a sampled packet \
                     are not counted, so there are too few connections and sizes are too large; volumes are right"
                ),
            ),
        });
    }
    doubts
}
