//! Flow records: reads the traffic reports of exporters into [`FlowRecord`]s.
//!
//! [`FlowReader`] reads a file in any supported format: a capture of export messages, an IPFIX file, an nfdump file,
//! a table. For callers that receive data themselves, [`CollectingProcess`] takes single messages, and
//! [`MeteringProcess`] takes frames. [`IpfixWriter`] writes records. [`FlowCounts`] reports what was read, what was
//! skipped and why, and which samplings were in force. [`holds_flow_records`] distinguishes such files from captures
//! of packets. `docs/flow-records.md` lists the formats, and what is not supported.
//!
//! Nothing panics, memory use is bounded by [`Limits`] whatever exporters send, and unknown values of a record differ
//! from zero.

mod behind;
mod collect;
mod counts;
mod draft;
mod element;
mod error;
mod export;
mod ipfix_writer;
mod limits;
mod messages;
mod meter;
mod metered;
mod nfdump;
mod process;
mod reader;
mod record;
mod samplers;
mod sets;
mod sflow;
mod sniff;
mod template;
pub(crate) mod text;
mod v5;
mod waiting;

pub use counts::{BadRow, FlowCounts, FlowSkip, SamplingSeen, Skipped};
pub use error::{FlowError, FlowProblem};
pub use ipfix_writer::IpfixWriter;
pub use limits::Limits;
pub use meter::{MeterCounts, Metering, MeteringProcess, PacketSampling};
pub use process::{CollectingProcess, Refused};
pub use reader::{FlowFormat, FlowReader};
pub use record::{
    EndReason, FlowDirection, FlowRecord, Layer, Reverse, Sampling, SamplingSource, Times,
};
pub use sniff::{ENOUGH_TO_TELL, holds_flow_records};

/// The protocols of export messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Protocol {
    /// NetFlow version 1.
    NetFlow1,
    /// NetFlow version 5.
    NetFlow5,
    /// NetFlow version 7.
    NetFlow7,
    /// NetFlow version 9 (RFC 3954).
    NetFlow9,
    /// IPFIX (RFC 7011).
    Ipfix,
    /// sFlow version 5.
    Sflow5,
}

impl Protocol {
    /// All protocols, in the order of their numbers.
    pub const ALL: [Protocol; 6] = [
        Protocol::NetFlow1,
        Protocol::NetFlow5,
        Protocol::NetFlow7,
        Protocol::NetFlow9,
        Protocol::Ipfix,
        Protocol::Sflow5,
    ];

    /// The usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::NetFlow1 => "NetFlow v1",
            Protocol::NetFlow5 => "NetFlow v5",
            Protocol::NetFlow7 => "NetFlow v7",
            Protocol::NetFlow9 => "NetFlow v9",
            Protocol::Ipfix => "IPFIX",
            Protocol::Sflow5 => "sFlow v5",
        }
    }
}
