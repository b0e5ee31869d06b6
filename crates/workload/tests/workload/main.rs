//! Tests of workloads over an ideal network.

mod common;
mod lasting;
mod page;
mod pauses;
mod structural;
mod swarm;
mod web;
mod wild;
