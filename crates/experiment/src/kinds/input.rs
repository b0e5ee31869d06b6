//! What parts read: models, traces and pages.

use std::sync::{Arc, Mutex, PoisonError};

use swell_traffic::flowlevel::FlowModel;
use swell_traffic::{Knobs, Model};
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
    Model(Arc<LearntModel>),
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

/// A traffic model as read. A study resolves hundreds of settings with the same few, so what is slow to derive from it
/// is kept.
#[derive(Debug)]
pub struct LearntModel {
    /// The model.
    pub model: Arc<Model>,
    /// Mean rates of its variants, by parameters and seed.
    rates: Mutex<Vec<(Knobs, u64, [f64; 2])>>,
}

impl PartialEq for LearntModel {
    fn eq(&self, other: &LearntModel) -> bool {
        self.model == other.model
    }
}

impl LearntModel {
    /// Nothing is derived yet.
    pub fn new(model: Model) -> LearntModel {
        LearntModel {
            model: Arc::new(model),
            rates: Mutex::default(),
        }
    }

    /// The model with these parameters applied: [`Model::varied`].
    pub fn varied(&self, knobs: &Knobs, seed: u64) -> Arc<Model> {
        match knobs.keep_the_model() {
            true => Arc::clone(&self.model),
            false => Arc::new(self.model.varied(knobs, seed)),
        }
    }

    /// Its mean rates with these parameters ([`Model::rates`]), bits per second, left to right and right to left.
    pub fn rates(&self, knobs: &Knobs, seed: u64) -> [f64; 2] {
        // Only removed dependencies are drawn.
        let drawn = if knobs.independent.is_empty() {
            0
        } else {
            seed
        };
        let known = || self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known()
            .iter()
            .find(|k| (&k.0, k.1) == (knobs, drawn))
            .map(|k| k.2);
        found.unwrap_or_else(|| {
            let rates = self.varied(knobs, seed).rates();
            known().push((knobs.clone(), drawn, rates));
            rates
        })
    }
}
