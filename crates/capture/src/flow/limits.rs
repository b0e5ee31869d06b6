//! Bounds on the memory that untrusted exporters can make a collecting process use.

/// Bounds on the state that is kept between messages. Data beyond them is refused or dropped, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Observation domains of all exporters together.
    pub domains: usize,
    /// Templates of all domains together.
    pub templates: usize,
    /// Fields of one template.
    pub template_fields: usize,
    /// Stored fields of all templates together. Each template counts as one additional field.
    pub fields: usize,
    /// Samplers of all domains together.
    pub samplers: usize,
    /// Data sets that wait for their templates. Beyond this and `waiting_bytes`, the oldest are dropped.
    pub waiting_sets: usize,
    /// Bytes of data sets that wait for their templates.
    pub waiting_bytes: usize,
}

impl Default for Limits {
    /// At most about 25 MB, and more than the largest collectors need: 4096 domains, 65 536 templates of 1024 fields
    /// each, a million fields, 65 536 samplers, and 4096 waiting sets of 1 MiB in total.
    fn default() -> Limits {
        Limits {
            domains: 4096,
            templates: 65_536,
            template_fields: 1024,
            fields: 1 << 20,
            samplers: 65_536,
            waiting_sets: 4096,
            waiting_bytes: 1 << 20,
        }
    }
}
