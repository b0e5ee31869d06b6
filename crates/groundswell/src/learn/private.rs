//! Models that hide whether a session was in the trace.

use std::io::Read;

use swell_learn::private::{Cost, Private, release};

use crate::Error;
use crate::model::AnyModel;

/// Adds noise to the model and returns the cost of that. The presence of any one session in the trace then changes the
/// odds of the model by a factor of at most exp(`epsilon`) (differential privacy). The model must have been learnt with
/// [`apart`](swell_learn::Options::apart). The key of the noise comes from the operating system and is not stored.
///
/// # Errors
/// If the model was learnt from flow records, or the system gives no random numbers.
pub fn protect(model: &AnyModel, epsilon: f64) -> Result<(AnyModel, Cost), Error> {
    let AnyModel::Packets(model) = model else {
        let message = "--private protects models of packets: this is one of flow records";
        return Err(Error::usage(message));
    };
    let private = Private {
        epsilon,
        seed: entropy()?,
    };
    let protected = release(model, &private);
    let cost = Cost::of(model, &protected);
    Ok((AnyModel::Packets(Box::new(protected)), cost))
}

fn entropy() -> Result<[u8; 32], Error> {
    let mut bytes = [0u8; 32];
    let file = std::fs::File::open("/dev/urandom");
    let read = file.and_then(|mut f| f.read_exact(&mut bytes));
    read.map_err(|e| Error::failed(format!("/dev/urandom: {e}")))?;
    Ok(bytes)
}
