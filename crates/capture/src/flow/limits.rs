//! How much memory strangers may make a collecting process use.

/// Bounds on what is kept between messages. What goes beyond is refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Observation domains, of all exporters together.
    pub domains: usize,
    /// Templates, of all domains together.
    pub templates: usize,
    /// Fields of one template.
    pub template_fields: usize,
    /// Fields kept, of all templates together; a template costs one more than it has.
    pub fields: usize,
    /// Samplers, of all domains together.
    pub samplers: usize,
    /// Data sets that wait for their template.
    pub waiting_sets: usize,
    /// Bytes in data sets that wait for their template.
    pub waiting_bytes: usize,
}

impl Default for Limits {
    /// At most about 20 MB, and more than the largest collectors see: 4096 domains, 65 536 templates
    /// of 1024 fields each, a million fields, 65 536 samplers, 4096 sets of together 1 MiB waiting.
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
