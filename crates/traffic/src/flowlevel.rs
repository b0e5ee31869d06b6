//! The flow-level model of Harpoon (J. Sommers & P. Barford, "Self-configuring network traffic
//! generation", IMC 2004): what flow records alone reveal about traffic, in a form that can be played.
//!
//! A [`Configurator`] takes flow [`Record`]s one by one and returns a [`FlowModel`]. The model holds the
//! sizes of files, the gaps between the connections of a client, and the popularity of sources and
//! destinations by rank. It also holds the number of sessions that must be active in each interval to
//! carry the bytes. It says which UDP sources send at a constant rate, periodically, at exponential
//! intervals, or otherwise. Addresses never enter the model. A [`Player`] says what to transfer next.
//!
//! Its file is versioned JSON ([`FlowModel::from_slice`], [`FlowModel::to_json`]). Models of pieces of a
//! trace can be merged ([`FlowModel::merge`]). Packet-sampled records give a model of all packets, with
//! the accuracy of the estimates ([`Sampled`]).
//!
//! Profile [`Profile::Fixed`] follows the intent of the paper. [`Profile::Harpoon`] repeats the arithmetic
//! of the released program, for comparison. Configurations of that program can be read and written
//! ([`FlowModel::from_harpoon`], [`FlowModel::to_harpoon`]).
//!
//! Not modelled: dependence between sizes, gaps and hosts (each is drawn independently); RTTs and TCP
//! rates, which result from the network that carries the traffic.

mod configure;
mod file;
mod histogram;
mod law;
mod merge;
mod model;
mod play;
mod playback;
mod record;
mod tuning;
mod xml;

pub use configure::{Configurator, ConfigureError, Network, Options, Order};
pub use file::{FORMAT, VERSION};
pub use histogram::{Bucket, Histogram};
pub use law::{Law, Sizes, Stratified};
pub use merge::MergeError;
pub use model::{
    Estimate, FlowModel, FlowTotals, Interval, LARGE, Popularity, Profile, RatesBySize, Sampled,
    TcpSessions, UdpKind, UdpSources,
};
pub use play::{
    Burst, Due, Exchange, Pacer, Plan, PlanError, Player, Share, Transfer, UdpSource, randomly,
};
pub use playback::Playback;
pub use record::{Record, Uniflow};
pub use xml::XmlError;

#[cfg(test)]
mod tests;
