//! What parts read: models, traces and pages.

use std::sync::Arc;

use swell_traffic::Model;
use swell_traffic::flowlevel::FlowModel;
use swell_workload::Object;

use crate::captures::Trace;
use crate::store::ModelFacts;

/// The input that a part has read.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its contents.
    pub data: Data,
    /// Facts about it for the manifest.
    pub facts: ModelFacts,
    /// Name and contents of its copy in the run directory; `None` for bundled files, and for captures, which may be
    /// large and private.
    pub copy: Option<(String, Vec<u8>)>,
}

/// A model or a trace.
#[derive(Clone, Debug)]
pub enum Data {
    /// A traffic model.
    Model(Arc<Model>),
    /// A flow-level model.
    Flows(Arc<FlowModel>),
    /// Packets.
    Trace(Arc<Trace>),
    /// Objects of a page.
    Page(Arc<Vec<Object>>),
}

impl Data {
    /// Its name in messages.
    pub fn word(&self) -> &'static str {
        match self {
            Data::Model(_) | Data::Flows(_) => "model",
            Data::Trace(_) => "trace",
            Data::Page(_) => "page",
        }
    }
}
