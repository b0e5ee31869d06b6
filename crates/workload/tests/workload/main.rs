//! Tests of workloads over an ideal network.

mod common;
mod structural;
mod swarm;
mod web;
mod wild;
