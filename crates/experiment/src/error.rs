//! Why a run gave no results.

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The backend cannot run this.
    #[error("{0}")]
    Failed(#[from] Box<dyn std::error::Error + Send + Sync>),
}
