//! Comparison with ns-2.
