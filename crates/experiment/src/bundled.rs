//! What the program carries inside: traffic models and example experiments.

mod list {
    include!(concat!(env!("OUT_DIR"), "/bundled.rs"));
}

/// Names of the bundled models, sorted.
pub fn models() -> impl Iterator<Item = &'static str> {
    list::MODELS.iter().map(|m| m.0)
}

/// The file of a bundled model.
pub fn model(name: &str) -> Option<&'static [u8]> {
    list::MODELS.iter().find(|m| m.0 == name).map(|m| m.1)
}

/// Names of the bundled experiments, sorted.
pub fn experiments() -> impl Iterator<Item = &'static str> {
    list::EXPERIMENTS.iter().map(|e| e.0)
}

/// The text of a bundled experiment.
pub fn experiment(name: &str) -> Option<&'static str> {
    let (_, bytes) = list::EXPERIMENTS.iter().find(|e| e.0 == name)?;
    std::str::from_utf8(bytes).ok()
}
