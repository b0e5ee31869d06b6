//! The roles that traffic has in an experiment.

/// The role of a part in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The application under study.
    Foreground,
    /// Other traffic on the network.
    Background,
}

impl Role {
    /// Its name in sentences.
    pub fn word(self) -> &'static str {
        match self {
            Role::Foreground => "foreground",
            Role::Background => "background",
        }
    }
}
