//! Export messages inside captures.

use super::FlowSkip;
use super::process::CollectingProcess;
use super::record::FlowRecord;
use crate::dissect::ip_payload;
use crate::{Frame, Transport, dissect};

/// Usual destination ports of exports: registered for IPFIX (4739) and sFlow (6343), and common for NetFlow. On other
/// ports, a datagram is only accepted as a message if all its lengths agree.
const PORTS: [u16; 6] = [2055, 2056, 4739, 6343, 9995, 9996];

/// Reads the records of the export message in a frame, if there is one.
pub(crate) fn frame(
    frame: &Frame<'_>,
    place: u64,
    process: &mut CollectingProcess,
    out: &mut Vec<FlowRecord>,
) {
    let Some((exporter, to_usual_port, payload)) = payload(frame) else {
        return process.counts.skip(FlowSkip::NotAnExport, place);
    };
    if to_usual_port || CollectingProcess::is_message(payload) {
        // Problems are recorded in the counts.
        let _ = process.message_at(exporter, Some(frame.time), payload, place, out);
    } else {
        process.counts.skip(FlowSkip::NotAnExport, place);
    }
}

/// The captured payload of a UDP datagram, its sender, and whether it was sent to one of the usual ports.
fn payload<'a>(frame: &Frame<'a>) -> Option<(std::net::IpAddr, bool, &'a [u8])> {
    let packet = dissect(frame).ok()?;
    let Transport::Udp {
        dst_port, payload, ..
    } = packet.transport
    else {
        return None;
    };
    let udp = ip_payload(frame)?.data.get(8..)?;
    let len = udp.len().min(payload as usize);
    Some((packet.src, PORTS.contains(&dst_port), &udp[..len]))
}
