//! `swell learn --listen`: flow records from exporters as they send them.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use swell_base::Dur;
use swell_capture::flow::CollectingProcess;
use swell_learn::FlowLearner;
use swell_traffic::Provenance;

use super::flows::{LearntFlows, doubts, options};
use super::ipfix::Ipfix;
use crate::cli::FlowArgs;
use crate::fail::Fail;
use crate::{interrupt, out, tables};

/// Largest payload of a datagram (RFC 768).
const LARGEST: usize = 65_535;
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Datagrams that are still taken at the end, at most: more than a socket's buffer holds unless somebody made it huge.
const AT_LAST: u32 = 1 << 16;

/// Collects until Ctrl-C or for `duration`, and makes a model of it. Messages of any number of exporters and
/// protocols may come mixed; memory is bounded whatever they send. What has arrived by then is taken.
pub(super) fn collect(
    address: SocketAddr,
    duration: Option<Dur>,
    name: &str,
    mut provenance: Provenance,
    args: &FlowArgs,
) -> Result<LearntFlows, Fail> {
    let failed = |e: std::io::Error| Fail::failed(format!("{address}: {e}"));
    let socket = UdpSocket::bind(address).map_err(failed)?;
    socket.set_read_timeout(Some(LOOK)).map_err(failed)?;
    let local = socket.local_addr().map_err(failed)?;
    interrupt::wishes();
    out::say(&format!(
        "collecting on {local}; Ctrl-C ends it and makes the model"
    ));
    let begun = Instant::now();
    let over = || duration.is_some_and(|d| begun.elapsed().as_nanos() >= u128::from(d.as_nanos()));
    let mut learner = FlowLearner::new(options(args));
    let mut written = Ipfix::new(args.ipfix.as_deref())?;
    let mut process = CollectingProcess::new();
    let mut records = Vec::new();
    let mut datagram = vec![0; LARGEST];
    let mut left = None;
    while left != Some(0) {
        left = left.map(|n: u32| n - 1);
        if left.is_none() && (interrupt::wished() || over()) {
            left = Some(AT_LAST);
            socket.set_nonblocking(true).map_err(failed)?;
        }
        let (length, from) = match socket.recv_from(&mut datagram) {
            Ok(received) => received,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if left.is_some() {
                    break;
                }
                continue;
            }
            // An earlier answer of ours was refused (there is none).
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::Interrupted | ErrorKind::ConnectionRefused
                ) =>
            {
                continue;
            }
            Err(e) => return Err(failed(e)),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |t| i64::try_from(t.as_nanos()).unwrap_or(i64::MAX));
        // What was wrong with a message is in the counts.
        let _ = process.message(from.ip(), now, &datagram[..length], &mut records);
        for record in records.drain(..) {
            learner.push(&record);
            written.record(&record)?;
        }
    }
    written.finish()?;
    let counts = process.counts().clone();
    let what = format!("udp:{local}");
    for doubt in doubts(&what, &counts) {
        learner.doubt(doubt);
    }
    provenance.sources.push(what.clone());
    let read = (what, "collected", counts);
    let model = learner
        .finish(name, provenance)
        .map_err(|e| Fail::usage(e).hint(tables::flows::counts_line(&read)))?;
    Ok(LearntFlows {
        model,
        files: vec![read],
    })
}
