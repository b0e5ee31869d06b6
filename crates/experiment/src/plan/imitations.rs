//! Backgrounds that are learnt from the flow records of others.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Plan, Traces};
use crate::backend::{Backend as _, RunSpec};
use crate::exporter::{Exported, Exporter};
use crate::file::Background;
use crate::hash::Hash;
use crate::kinds::{Data, Input, Part};
use crate::simulate::Simulator;
use crate::store::ModelFacts;

/// What is wrong with one: its place in the file, and why.
type Wrong = (usize, String);

/// Whether everything that is imitated can be.
pub(super) fn check(plan: &Plan) -> Result<(), Wrong> {
    for (i, part) in plan.file.background.iter().enumerate() {
        if let Some((of, _)) = part.as_keys().imitates() {
            original(plan, of).map_err(|why| (i, why))?;
        }
    }
    Ok(())
}

/// Simulates what is imitated, and learns from its flow records.
pub(super) fn resolve(plan: &mut Plan, known: &Traces) -> Result<(), Wrong> {
    for (i, part) in plan.file.background.clone().iter().enumerate() {
        if let Some((of, exporter)) = part.as_keys().imitates() {
            let original = original(plan, of).map_err(|why| (i, why))?;
            let key = key(plan, original, part);
            let path = PathBuf::from(format!("imitation {key}"));
            let learnt = known.model(path, || learnt(plan, original, part, exporter, key));
            let input = learnt.map_err(|why| (i, why))?;
            plan.inputs.insert(part.name().to_owned(), input);
        }
    }
    Ok(())
}

/// The background of this name, if it can be simulated by itself.
fn original<'p>(plan: &'p Plan, of: &str) -> Result<&'p Background, String> {
    let all = &plan.file.background;
    let Some(original) = all.iter().find(|b| b.name() == of) else {
        return Err(format!("no background is called `{of}`"));
    };
    let keys = original.as_keys();
    let simple = keys.parts().is_empty() && keys.imitates().is_none() && !original.is_none();
    match simple && original.matches().is_none() && !original.is_scaled() {
        true => Ok(original),
        false => Err(format!(
            "`{of}` is not imitated: it sends nothing, is scaled to a rate, or follows from other backgrounds"
        )),
    }
}

/// What a model depends on.
fn key(plan: &Plan, original: &Background, part: &Part) -> String {
    let mut file = plan.file.clone();
    file.foreground.clear();
    file.background = vec![original.clone(), Background(part.clone())];
    let input = plan.inputs.get(original.name());
    let hash = Hash::new()
        .part(file.to_toml().as_bytes())
        .part(plan.rtt().to_string().as_bytes())
        .part(input.map_or("", |i| &i.facts.hash).as_bytes());
    hash.hex()
}

fn learnt(
    plan: &Plan,
    original: &Part,
    part: &Part,
    exporter: &Exporter,
    hash: String,
) -> Result<Input, String> {
    let spec = RunSpec {
        records: Some(exporter.clone()),
        ..plan.alone(original, 0, None, &BTreeMap::new())
    };
    let run = Simulator.run(&spec, &|_| {}, &|| false);
    let run = run.map_err(|e| e.to_string())?;
    // Where it has the least room there is one record of each flow.
    let [_, down] = spec.slowest();
    let mut exported = run.exported.iter();
    let exported: Option<&Arc<Exported>> =
        exported.find(|seen| seen.link == spec.links[down.link].name);
    let exported = exported.ok_or("nothing was exported")?;
    let model = part.as_keys().learn(exported)?;
    Ok(Input {
        facts: ModelFacts {
            name: part.name().to_owned(),
            source: format!("flow records of background {}", original.name()),
            hash,
            note: String::new(),
            warnings: model.warnings.clone(),
        },
        data: Data::Flows(Arc::new(model)),
        copy: None,
    })
}
