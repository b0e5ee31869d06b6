//! The machines that send.
