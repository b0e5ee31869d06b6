//! A model from the measured distributions of a busy link.
