//! Tests of the learner: known truth, odd and real traffic, sampled records.

mod common;
mod coverage;
mod disorder;
mod flow_folder;
mod odd;
mod points;
mod quic;
mod sampled;
mod sides;
mod synth;
mod traces;
mod truth;
mod wild;
