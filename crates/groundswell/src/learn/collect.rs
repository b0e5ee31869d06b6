//! Collects flow records from exporters.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use swell_capture::flow::CollectingProcess;
use swell_learn::FlowLearner;

use super::counts::{Counted, FileCounts};
use super::flows::doubts;
use super::ipfix::Ipfix;
use super::options::{Learnt, Options, provenance};
use crate::Error;
use crate::model::AnyModel;

/// Largest payload of a datagram (RFC 768).
const LARGEST: usize = 65_535;
/// How often `over` is called.
const LOOK: Duration = Duration::from_millis(100);

/// Maximum number of datagrams still read at the end: more than a socket buffer normally holds.
const AT_LAST: u32 = 1 << 16;

/// Collects NetFlow, IPFIX and sFlow until `over` returns true, and makes a model. `over` is called at least every
/// 100 ms. Messages of any number of exporters and protocols may be mixed; memory is bounded whatever they send.
/// Datagrams that have arrived by then are included. The socket is left nonblocking.
///
/// # Errors
/// If the socket fails, the IPFIX file cannot be created, or nothing arrived to make a model from.
pub fn collect(
    socket: &UdpSocket,
    options: &Options,
    over: impl Fn() -> bool,
) -> Result<Learnt, Error> {
    let local = socket.local_addr().map_err(Error::failed)?;
    let failed = |e: std::io::Error| Error::failed(format!("{local}: {e}"));
    socket.set_read_timeout(Some(LOOK)).map_err(failed)?;
    let mut learner = FlowLearner::new(options.flows);
    let mut written = Ipfix::new(options.ipfix.as_deref())?;
    let mut process = CollectingProcess::new();
    let mut records = Vec::new();
    let mut datagram = vec![0; LARGEST];
    let mut left = None;
    while left != Some(0) {
        left = left.map(|n: u32| n - 1);
        if left.is_none() && over() {
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
            // Error of an earlier send on this socket. We never send, so it is harmless.
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
        // Errors in messages are counted.
        let _ = process.message(from.ip(), now, &datagram[..length], &mut records);
        for record in records.drain(..) {
            learner.push(&record);
            written.record(&record);
        }
    }
    let unwritten = written.finish();
    let counts = process.counts().clone();
    let what = format!("udp:{local}");
    for doubt in doubts(&what, &counts) {
        learner.doubt(doubt);
    }
    let mut provenance = provenance(&[], &options.note);
    provenance.sources.push(what.clone());
    let read = FileCounts {
        file: what,
        format: "collected",
        counts: Counted::Flows(Box::new(counts)),
    };
    let name = options.name.as_deref().unwrap_or("collected");
    let model = learner
        .finish(name, provenance)
        .map_err(|e| Error::usage(e).hint(&read))?;
    Ok(Learnt {
        model: AnyModel::Flows(Box::new(model)),
        files: vec![read],
        unwritten,
    })
}
