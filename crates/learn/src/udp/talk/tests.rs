use super::*;

const MS: u64 = 1_000_000;
const QUIET: u64 = 500 * MS;

/// A page over QUIC: RTTs are 40 ms to the server and 4 ms to the client, the think time is 15 ms.
/// Responses have `sizes` datagrams; requests are a second apart.
fn page(sizes: &[u32]) -> Talk {
    let mut talk = Talk::default();
    talk.push(0, true, 1_212, QUIET);
    talk.push(40 * MS, false, 1_212, QUIET);
    talk.push(41 * MS, false, 1_212, QUIET);
    talk.push(44 * MS, true, 80, QUIET);
    for (i, &n) in (0..).zip(sizes) {
        let mut at = (1_000 * (i + 1)) * MS;
        talk.push(at, true, 312, QUIET);
        at += 55 * MS;
        for k in 0..n {
            talk.push(at + u64::from(k) * MS, false, 1_212, QUIET);
            if k % 2 == 1 {
                talk.push(at + u64::from(k) * MS + 4 * MS, true, 35, QUIET);
            }
        }
    }
    talk
}

#[test]
fn a_page_is_requests_and_responses() {
    let talk = page(&[10, 200]);
    assert_eq!(talk.rtt, [Some(40 * MS), Some(4 * MS)]);
    let (exchange, wire) = talk.finish(false).expect("a talk");
    let Exchange::Sequential(turns) = &exchange else {
        panic!("{exchange:?}");
    };
    let sizes: Vec<_> = turns.iter().map(|t| (t.request, t.response)).collect();
    assert_eq!(
        sizes,
        [(1_200, 2_400), (68, 0), (300, 12_000), (300, 240_000)]
    );
    // As the tap saw them; path delays are subtracted later.
    let thinks: Vec<_> = turns
        .iter()
        .map(|t| t.server_think.as_nanos() / MS)
        .collect();
    assert_eq!(thinks, [40, 0, 55, 55]);
    let pauses: Vec<_> = turns
        .iter()
        .map(|t| t.client_think.as_nanos() / MS)
        .collect();
    assert_eq!(pauses, [3, 956, 936, 0]);
    assert_eq!(wire.ends.map(|e| e.mss), [1_200, 1_200]);
    assert_eq!((wire.ends[0].ack_every, wire.timestamps), (2, Some(false)));
    assert_eq!(exchange.bytes(), talk.bytes());
}

/// The same page as a host shows it that sends and receives ten datagrams at once.
#[test]
fn joined_datagrams_count_one_by_one() {
    for single in [false, true] {
        let mut talk = page(&[]);
        for i in 0..40 {
            let at = 1_000 * (i + 1) * MS;
            talk.push(at, true, 312, QUIET);
            talk.push(at + 55 * MS, false, 12_120, QUIET);
            talk.push(at + 55 * MS + 1, false, 12_120, QUIET);
            if single {
                talk.push(at + 55 * MS + 2, false, 1_212, QUIET);
            }
        }
        let (exchange, wire) = talk.finish(false).expect("a talk");
        assert_eq!(wire.ends[1].mss, 1_200);
        let per_turn = 24_000 + 1_200 * u64::from(single);
        assert_eq!(exchange.bytes()[1], 2_400 + 40 * per_turn);
    }
    // Nothing tells the size of these.
    let mut talk = Talk::default();
    talk.push(0, true, 1_212, QUIET);
    talk.push(40 * MS, false, 12_120, QUIET);
    let (_, wire) = talk.finish(false).expect("a talk");
    assert_eq!(wire.ends.map(|e| e.mss), [1_200, 0]);
}

/// A request during a response: data within an RTT after it still belong to that response.
#[test]
fn what_comes_too_soon_is_no_answer() {
    let mut talk = page(&[20]);
    // The response to the first request began at 1055 ms. It continues until the second request can
    // have arrived.
    talk.push(1_070 * MS, true, 212, QUIET);
    for k in 0..10 {
        talk.push((1_076 + k) * MS, false, 1_212, QUIET);
    }
    talk.push(1_115 * MS, false, 712, QUIET);
    let (exchange, _) = talk.finish(false).expect("a talk");
    let Exchange::Sequential(turns) = exchange else {
        panic!("no turns");
    };
    let last: Vec<_> = turns[2..].iter().map(|t| (t.request, t.response)).collect();
    assert_eq!(last, [(300, 36_000), (200, 700)]);
    assert_eq!(turns[2].client_think, Dur::ZERO);
}

#[test]
fn a_stream_pauses_by_itself_and_a_call_is_none() {
    let mut talk = page(&[10]);
    for k in 0..10 {
        talk.push((3_000 + k) * MS, false, 1_212, QUIET);
    }
    let Some((Exchange::Sequential(turns), _)) = talk.finish(false) else {
        panic!("no turns");
    };
    let last = turns.last().expect("a turn");
    assert_eq!((last.request, last.response), (0, 12_000));
    assert_eq!(last.server_think, Dur::from_millis(3_000 - 1_064));
    let mut call = Talk::default();
    for k in 0..200 {
        call.push(20 * k * MS, true, 172, QUIET);
        call.push((20 * k + 9) * MS, false, 172, QUIET);
    }
    assert_eq!(call.doubt(), Some(Doubt::AtOnce));
    // The same server without requests, in a flow that does not begin like QUIC.
    let stream = |begins: bool, first: u32, bursts: u64| {
        let mut stream = Talk::new(begins);
        stream.push(0, true, first, QUIET);
        for burst in 0..bursts {
            for k in 0..200 {
                let at = (20 + 10_000 * burst + 5 * k) * MS;
                stream.push(at, false, 1_250, QUIET);
                if k % 10 == 9 {
                    stream.push(at, true, 40, QUIET);
                }
            }
        }
        stream.finish(false).is_some()
    };
    assert!(!stream(true, 40, 5) && !stream(true, 40, 1));
    assert!(stream(true, 1_200, 5), "QUIC is under congestion control");
    // Data in flight before the trace may have been requested; the later bursts were not.
    assert!(stream(false, 40, 1) && !stream(false, 40, 2));
    let mut nobody = Talk::default();
    nobody.push(0, true, 1_212, QUIET);
    nobody.push(1_000 * MS, true, 1_212, QUIET);
    assert!(nobody.finish(false).is_none());
}

/// Requests once a second for longer than turns are kept one by one: the flow keeps its bytes and its
/// time, and no response holds those of many requests.
#[test]
fn endless_flows_need_bounded_memory_and_keep_their_bytes_and_time() {
    let mut talk = page(&[]);
    let before = talk.bytes();
    let n = 3 * MOST as u64;
    for k in 0..n {
        let at = (2_000 + 1_000 * k) * MS;
        talk.push(at, true, 112, QUIET);
        for datagram in 0..9 {
            talk.push(at + (50 + datagram) * MS, false, 1_012, QUIET);
        }
    }
    assert!(talk.turns.len() <= MOST && talk.merged());
    assert_eq!(talk.bytes(), [before[0] + 100 * n, before[1] + 9_000 * n]);
    let Some((Exchange::Sequential(turns), _)) = talk.finish(false) else {
        panic!("no turns");
    };
    // Each response takes 8 ms to send.
    let took = Dur::from_millis(2_000 + 1_000 * (n - 1) + 50 - 8 * (n - 1));
    let pauses = turns.iter().map(|t| t.server_think + t.client_think);
    let off = pauses.sum::<Dur>().as_secs_f64() / took.as_secs_f64() - 1.0;
    assert!(off.abs() < 0.001, "{off}");
    let most = turns.iter().map(|t| t.response).max();
    assert!(most <= Some(8 * 9_000), "{most:?}");
}

/// Merging makes no requests and responses of a call, or of what a server sends by itself.
#[test]
fn endless_calls_and_streams_are_no_talks() {
    let mut call = Talk::default();
    let mut stream = Talk::new(true);
    stream.push(0, true, 40, QUIET);
    for k in 0..4 * MOST as u64 {
        call.push(20 * k * MS, true, 172, QUIET);
        call.push((20 * k + 9) * MS, false, 172, QUIET);
        // Every third burst follows a request.
        if k % 3 == 0 {
            stream.push((10_000 * k + 1) * MS, true, 100, QUIET);
        }
        for datagram in 0..9 {
            stream.push((10_000 * k + 20 + datagram) * MS, false, 1_000, QUIET);
        }
    }
    assert!(call.merged() && stream.merged());
    assert_eq!(call.doubt(), Some(Doubt::AtOnce));
    assert_eq!(stream.doubt(), Some(Doubt::Streams));
}

/// A flow that the server begins, one that it answers after seconds, and one that it only acknowledges
/// do not consist of requests and responses.
#[test]
fn what_nobody_asked_or_answered_is_no_talk() {
    let first = |from_client: bool, later: u64, payload: u32| {
        let mut talk = Talk::default();
        talk.push(0, from_client, 1_212, QUIET);
        talk.push(later * MS, !from_client, payload, QUIET);
        talk.push((later + 5) * MS, true, 312, QUIET);
        talk.push((later + 60) * MS, false, payload, QUIET);
        assert_eq!(talk.finish(false).is_none(), talk.doubt().is_some());
        talk.doubt()
    };
    assert_eq!(first(true, 40, 1_212), None);
    assert_eq!(first(false, 40, 1_212), Some(Doubt::Unasked));
    assert_eq!(first(true, 3_000, 1_212), None);
    assert_eq!(first(true, 3_001, 1_212), Some(Doubt::Unanswered));
    assert_eq!(first(true, 40, 64), None);
    assert_eq!(first(true, 40, 63), Some(Doubt::Unanswered));
}

/// A silence of the server of more than 1.5 RTTs plus a delayed ACK is its own: here 66 and 40 ms.
#[test]
fn pauses_longer_than_the_networks_are_the_servers() {
    for (silence, turns) in [(105, 4), (106, 4), (107, 5)] {
        let mut talk = page(&[10, 1]);
        talk.push((2_055 + silence) * MS, false, 1_212, QUIET);
        let Some((Exchange::Sequential(found), _)) = talk.finish(false) else {
            panic!("no turns");
        };
        assert_eq!(found.len(), turns, "{silence} ms");
    }
}
