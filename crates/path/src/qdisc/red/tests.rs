//! Red against the paper and against ns-2.
