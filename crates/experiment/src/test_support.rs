//! Helpers for the tests of several modules.

/// A model file of one session that fetched `down` bytes in 80 seconds.
pub(crate) fn model(down: u64) -> String {
    format!(
        r#"{{"format":"swell-traffic-model","version":3,"name":"tiny","provenance":
{{"made_by":"by hand","sources":[],"digests":[],"note":"one session"}},"warnings":[],"duration":80000000,
"parameters":{{"group_timeout":30000000,"session_timeout":300000000,"quiet":500000}},
"totals":{{"packets":[1000,14000],"bytes":[400000,{down}],"tcp_connections":1,"tcp_handshakes":1,
"udp_flows":0,"unmodelled_packets":0,"unmodelled_bytes":0}},
"load":{{"bin":100000,"bytes":[[],[]],"lsd_bin":1000,"lsd":[[],[]]}},
"classes":[{{"name":"http","udp":false}}],
"client_paths":[[2000,null,10000000,0,0,9,12,40]],
"server_paths":[[50000,null,null,0,0.01,9,0,40]],
"sessions":[{{"class":0,"start":4000000,"client":0,"groups":[{{"think":0,"connections":
[{{"gap":0,"server":0,"window":[65535,65535],"turns":[[300,20000,{down},0]]}}]}}]}}]}}"#
    )
}

/// An experiment with the backgrounds none, poisson and learnt, the last from `tiny.json`.
pub(crate) fn experiment(replications: u32) -> String {
    format!(
        r#"
name = "test"
[network]
rate = "20Mbit"
rtt = "40ms"
[[foreground]]
name = "web"
kind = "web"
object = "100kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "match:learnt"
[[background]]
name = "learnt"
kind = "learnt"
model = "tiny.json"
rate = "8Mbit"
[run]
replications = {replications}
warmup = "2s"
duration = "22s"
seed = 7
"#
    )
}
