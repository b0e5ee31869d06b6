//! Tests of workloads over an ideal network.

mod common;
mod structural;
mod web;
mod wild;
