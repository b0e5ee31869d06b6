//! Models learnt at links that are full all the time.

use swell_base::{Code, Direction, Dur};
use swell_experiment::observe::Observations;
use swell_traffic::Model;

mod tapped;

use tapped::{learn, played, run, web};

const BBR: &str = "tcp = { congestion = \"bbr\" }";

fn link(mbit: u32, rtt: u32) -> String {
    format!(
        "rtt = \"{rtt}ms\"\n[[links]]\nname = \"tapped\"\nrate = \"{mbit}Mbit\"\ndelay = \"10ms\"\nqueue = \"1BDP\"\n"
    )
}

fn warned(m: &Model, code: Code) -> bool {
    m.warnings.iter().any(|w| w.code == code)
}

/// Mbit/s of the background down, and the median time of a fetch.
fn beside(links: &str, background: &str) -> [f64; 2] {
    let fetch = "kind = \"web\"\nobject = \"100kB\"\nthink = \"500ms\"";
    let observed: Observations = run(links, fetch, background, 120, None);
    let down = observed
        .links
        .iter()
        .find(|l| l.direction == Direction::Down);
    let rate = down.map_or(0.0, |l| l.departed[1] as f64 * 8e-6 / l.duration);
    let requests = observed.requests.iter().filter(|r| r.start.is_finite());
    let mut times: Vec<f64> = requests.map(|r| r.observed_until - r.start).collect();
    times.sort_by(f64::total_cmp);
    [rate, times[times.len() / 2]]
}

/// Senders with BBR show their shares of the line, which are not the rates of their own lines: on a faster link they are faster.
#[test]
fn a_share_of_a_full_line_is_no_line() {
    let dir = tempfile::tempdir().unwrap();
    for (clients, mbit, rtt) in [(6, 10, 50), (3, 6, 90)] {
        let truth = web(clients, &format!("object = \"1GB\"\n{BBR}"));
        let m = learn(&link(mbit, rtt), &truth, [20, 80], None);
        assert_eq!(m.client_paths.len(), clients as usize);
        // The access lines, half of them on this side.
        let own = Dur::from_millis(u64::from(rtt - 20) / 2);
        for path in &m.client_paths {
            assert_eq!((path.up, path.down), (None, None), "{path:?}");
            let off = (path.rtt.as_secs_f64() - own.as_secs_f64()).abs();
            assert!(off < 1e-3, "{path:?}");
        }
        assert!(warned(&m, Code::PacedSenders), "{:?}", m.warnings);
        // They leave the queue empty every ten seconds, so it is not in the round trips.
        assert!(!warned(&m, Code::LinkDelay), "{:?}", m.warnings);
        let learnt = played(&m, &dir.path().join("model.json"), BBR);
        let faster = link(2 * mbit, rtt);
        let [was, is] = [&truth, &learnt].map(|users| beside(&faster, users));
        assert!(is[0] > 0.95 * was[0], "{clients}: {is:?} of {was:?}");
        assert!(
            (0.3..3.0).contains(&(is[1] / was[1])),
            "{clients}: {is:?} of {was:?}"
        );
    }
}

/// What waits in the queue of the tapped link comes to the client later, and the client asks for the next all the later. That
/// is no think time: on a faster link there is no such wait. And where the link made a session last as long as the recording,
/// its copies follow each other as fast as another link lets them.
#[test]
fn waiting_for_the_tapped_link_is_no_thinking() {
    let dir = tempfile::tempdir().unwrap();
    let pages = "object = \"50kB\"\nthink = \"1s\"";
    let reading = "object = \"500kB\"\nthink = \"2s\"";
    // Megabit per second, RTT, queue in bandwidth-delay products, what users do, how many, and their congestion control.
    for (mbit, rtt, queue, keys, clients, tcp) in [
        (10, 50, 1, "object = \"100kB\"", 6, BBR),
        (10, 50, 1, "object = \"1MB\"", 6, BBR),
        (1, 50, 4, pages, 5, ""),
        (10, 100, 1, reading, 8, ""),
    ] {
        let of = |rate: u32| link(rate, rtt).replace("1BDP", &format!("{queue}BDP"));
        let truth = web(clients, &format!("{keys}\n{tcp}"));
        let m = learn(&of(mbit), &truth, [20, 80], None);
        let learnt = played(&m, &dir.path().join("model.json"), tcp);
        let thinks = m.sessions.iter().flat_map(|s| s.groups.iter().skip(1));
        let mut thinks: Vec<f64> = thinks.map(|g| g.think.as_secs_f64()).collect();
        thinks.sort_by(f64::total_cmp);
        let think = match keys {
            _ if keys == pages => 1.0,
            _ if keys == reading => 2.0,
            _ => 0.0,
        };
        let typical = thinks[thinks.len() / 2];
        assert!((typical - think).abs() < 0.02, "{keys}: {typical} s");
        for faster in [1, 2] {
            let [was, is] = [&truth, &learnt].map(|users| beside(&of(faster * mbit), users));
            let ratios = [is[0] / was[0], is[1] / was[1]];
            let case = format!("{keys} {tcp} x{faster}: {is:?} of {was:?}");
            assert!((ratios[0] - 1.0).abs() < 0.1, "{case}");
            assert!((ratios[1] - 1.0).abs() < 0.35, "{case}");
        }
    }
}

/// Lines of hosts stay theirs, whether all of them are full together or a link beyond them is.
#[test]
fn slower_lines_of_hosts_stay() {
    for (others, congestion) in [(0, ""), (0, BBR), (3, ""), (3, BBR)] {
        let (mut links, mut users, mut names) = (String::new(), String::new(), Vec::new());
        for i in 0..3 + others {
            let (name, mut path) = (format!("user{i}"), "[\"tapped\"]".to_owned());
            if i < 3 {
                path = format!("[\"line{i}\", \"tapped\"]");
                links += &format!(
                    "[[links]]\nname = \"line{i}\"\nrate = \"1Mbit\"\ndelay = \"2ms\"\nqueue = \"20pkt\"\n"
                );
            }
            users += &format!(
                "[[background]]\nname = \"{name}\"\nkind = \"web\"\nobject = \"1GB\"\npath = {path}\n{congestion}\n"
            );
            names.push(name);
        }
        users += &format!("[[background]]\nname = \"users\"\nkind = \"mix\"\nof = {names:?}\n");
        let tapped = link(10, 50);
        let (rtt, tapped) = tapped.split_once('\n').unwrap();
        let m = learn(&format!("{rtt}\n{links}{tapped}"), &users, [20, 80], None);
        let kept = m.client_paths.iter().filter_map(|path| path.down);
        let slow = kept.filter(|line| (line.bps() as f64 / 1e6 - 1.0).abs() < 0.05);
        assert_eq!(
            slow.count(),
            3,
            "{others} {congestion}: {:?}",
            m.client_paths
        );
        let faster = m.client_paths.iter().filter(|path| path.down.is_none());
        assert_eq!(
            faster.count(),
            others,
            "{others} {congestion}: {:?}",
            m.client_paths
        );
    }
}

/// The queue of endless downloads is never empty, and the trace does not tell how much of the round trips is its delay.
/// Where users think, it does.
#[test]
fn the_delay_of_a_queue_that_is_never_empty_is_told() {
    for (keys, mbit, rtt, told) in [
        ("object = \"1GB\"", 10, 50, true),
        ("object = \"100MB\"\nthink = \"2s\"", 6, 90, true),
        ("object = \"1MB\"\nthink = \"4s\"", 10, 50, false),
    ] {
        let m = learn(&link(mbit, rtt), &web(6, keys), [20, 80], None);
        let delay = m.warnings.iter().find(|w| w.code == Code::LinkDelay);
        assert_eq!(delay.is_some(), told, "{keys}: {:?}", m.warnings);
        let own = Dur::from_millis(u64::from(rtt - 20) / 2);
        let longer = m
            .client_paths
            .iter()
            .all(|path| path.rtt > own + Dur::from_millis(10));
        assert_eq!(longer, told, "{keys}: {:?}", m.client_paths);
        assert!(!warned(&m, Code::PacedSenders), "{keys}: {:?}", m.warnings);
    }
}
