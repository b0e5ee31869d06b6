//! Measures with several numbers (`each`).

use super::format::{Measure, StudyFile};

/// Expands each such measure into one measure per number. A line may still ask for all of them by the common name.
pub(super) fn expand(study: &mut StudyFile) {
    let numbered = |m: &Measure| -> Vec<Measure> {
        let one = |x: &u32| Measure {
            name: format!("{}_{x}", m.name),
            label: m.label.as_ref().map(|label| format!("{label}, {x}")),
            value: format!("{{ let x = {x}.0; {} }}", m.value),
            each: Vec::new(),
            ..m.clone()
        };
        match m.each.is_empty() {
            true => vec![m.clone()],
            false => m.each.iter().map(one).collect(),
        }
    };
    let names = |name: &String| -> Vec<String> {
        let known = study.measure.iter().find(|m| m.name == *name);
        match known {
            Some(m) => numbered(m).into_iter().map(|m| m.name).collect(),
            None => vec![name.clone()],
        }
    };
    for line in &mut study.line {
        if let Some(only) = &mut line.measures {
            *only = only.iter().flat_map(names).collect();
        }
    }
    study.measure = study.measure.iter().flat_map(numbered).collect();
}
