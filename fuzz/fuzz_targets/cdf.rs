//! The measured distributions of a site.
//!
//! A line `> N` begins file N of the list below; a file that the input lacks holds a small value.
#![no_main]

#[path = "../../crates/learn/examples/isi/model.rs"]
mod isi;

use swell_traffic::{Model, Provenance};

/// Every file a model is made of.
const FILES: [&str; 36] = [
    "www.in.sess.inter.cdf",
    "www.in.pagecnt.cdf",
    "www.in.idle.cdf",
    "www.in.pagesize.cdf",
    "www.in.req.cdf",
    "www.inbound.winc.cdf",
    "www.inbound.wins.cdf",
    "www.inbound.delay.cdf",
    "www.inbound.BW.cdf",
    "www.inbound.server.cdf",
    "www.out.sess.inter.cdf",
    "www.out.pagecnt.cdf",
    "www.out.idle.cdf",
    "www.out.pagesize.cdf",
    "www.out.req.cdf",
    "www.outbound.winc.cdf",
    "www.outbound.wins.cdf",
    "www.outbound.delay.cdf",
    "www.outbound.BW.cdf",
    "ftp.inbound.sess.inter.cdf",
    "ftp.inbound.fileno.cdf",
    "ftp.inbound.file.inter.cdf",
    "ftp.inbound.size.cdf",
    "ftp.inbound.winc.cdf",
    "ftp.inbound.wins.cdf",
    "ftp.inbound.delay.cdf",
    "ftp.inbound.BW.cdf",
    "ftp.inbound.server.cdf",
    "ftp.outbound.sess.inter.cdf",
    "ftp.outbound.fileno.cdf",
    "ftp.outbound.file.inter.cdf",
    "ftp.outbound.size.cdf",
    "ftp.outbound.winc.cdf",
    "ftp.outbound.wins.cdf",
    "ftp.outbound.delay.cdf",
    "ftp.outbound.BW.cdf",
];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // A session every twenty minutes, so that most of an input's time is its own.
    let mut files: Vec<(String, String)> = FILES
        .iter()
        .map(|f| {
            let small = if f.contains("sess") {
                "1200 1 1"
            } else {
                "2 1 1"
            };
            (format!("fuzz.{f}"), small.into())
        })
        .collect();
    let mut at = 0;
    let mut own = [false; FILES.len()];
    for line in text.lines() {
        if let Some(n) = line.strip_prefix("> ") {
            at = n.parse::<usize>().unwrap_or(0) % FILES.len();
            continue;
        }
        if !std::mem::replace(&mut own[at], true) {
            files[at].1.clear();
        }
        files[at].1 += line;
        files[at].1.push('\n');
    }
    match isi::model(&files, "fuzz", Provenance::default(), 1) {
        Ok(model) => {
            assert!(
                model.check().is_ok(),
                "a model that was made is one that may be written"
            );
            // What is written is read in thirty times its memory: large ones would be slow.
            if model.sessions.len() < 1000 {
                let again = Model::from_slice(model.to_json().as_bytes());
                assert_eq!(
                    again.ok().as_ref(),
                    Some(&model),
                    "what is written is what was made"
                );
            }
        }
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
});
