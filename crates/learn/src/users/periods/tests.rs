use super::*;

const MS: u64 = 1_000_000;

/// Numbers without a pattern.
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// Requests at these times, milliseconds, and how long each is under way.
fn talk(times: &[(u64, u64)], leads: bool) -> Talk {
    let spans = times.iter().enumerate().map(|(i, &(at, takes))| Span {
        turn: i as u32,
        first: at * MS,
        last: (at + takes) * MS,
    });
    Talk {
        spans: spans.collect(),
        rtt: 10 * MS,
        opens: true,
        leads,
        ..Talk::default()
    }
}

/// Pages over kept connections: HTML on the first, then an object on each.
fn pages(connections: usize, pages: usize, noise: &mut Noise) -> Vec<Talk> {
    let mut times = vec![Vec::new(); connections];
    let mut at = 0;
    for _ in 0..pages {
        let html = 30 + noise.below(40);
        times[0].push((at, html));
        let objects = at + html + 12;
        let mut ended = objects;
        for own in &mut times {
            let takes = 20 + noise.below(400);
            own.push((objects + noise.below(3), takes));
            ended = ended.max(objects + takes + 3);
        }
        at = ended + 1_000 + noise.below(6_000);
    }
    let talks = times.iter().enumerate();
    talks.map(|(c, own)| talk(own, c == 0)).collect()
}

/// A client that asks now and then.
fn independent(requests: usize, mean: u64, noise: &mut Noise) -> Talk {
    let mut at = noise.below(mean);
    let mut times = Vec::new();
    for _ in 0..requests {
        let takes = 30 + noise.below(300);
        times.push((at, takes));
        at += takes + 1 + noise.below(2 * mean);
    }
    talk(&times, false)
}

#[test]
fn pages_wait_for_all_connections_and_objects_for_the_html() {
    let mut noise = Noise(1);
    for connections in [2, 3, 6] {
        let talks = pages(connections, 12, &mut noise);
        let found = waits(&talks);
        // The HTML and the objects of each page are a period each.
        let last = found.iter().flatten().map(|w| w.page).max();
        assert_eq!(last, Some(23));
        for (c, own) in found.iter().enumerate() {
            assert_eq!(own.len(), if c == 0 { 24 } else { 12 });
            assert_eq!(own[0].turn, 0);
            let objects = own.iter().filter(|w| w.page % 2 == 1);
            assert!(objects.clone().all(|w| w.pause <= Dur::from_millis(15)));
            assert_eq!(objects.count(), 12);
        }
    }
}

/// Between pages, the user was away for 40 s. That is no wait, and the others remain.
#[test]
fn long_silences_are_no_waits() {
    let mut talks = pages(3, 20, &mut Noise(3));
    let away = talks[0].spans[20].first;
    for span in talks.iter_mut().flat_map(|t| &mut t.spans) {
        if span.first >= away {
            span.first += 40_000 * MS;
            span.last += 40_000 * MS;
        }
    }
    let found = waits(&talks);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [39, 20, 20]);
    let longest = found.iter().flatten().map(|w| w.pause).max();
    assert!(longest < Some(Dur::from_secs(10)), "{longest:?}");
    // A connection that opens after the silence waits for nothing.
    talks[2].spans.retain(|s| s.first > away);
    for (turn, span) in talks[2].spans.iter_mut().enumerate() {
        span.turn = turn as u32;
    }
    talks[0].spans.retain(|s| s.first < away || s.turn > 21);
    talks[1].spans.retain(|s| s.first < away || s.turn > 10);
    let late = waits(&talks);
    assert!(!late[0].is_empty() && late[2].is_empty(), "{late:?}");
}

#[test]
fn independent_clients_do_not_wait_for_each_other() {
    for seed in 0..300 {
        let mut noise = Noise(seed);
        let clients = 2 + seed as usize % 3;
        let mean = 300 + noise.below(4_000);
        let talks: Vec<Talk> = (0..clients)
            .map(|_| independent(60, mean, &mut noise))
            .collect();
        assert!(waits(&talks).iter().all(Vec::is_empty), "seed {seed}");
    }
}

#[test]
fn a_heartbeat_and_a_long_download_keep_out_of_pages() {
    let mut noise = Noise(7);
    let mut talks = pages(3, 20, &mut noise);
    let beats: Vec<(u64, u64)> = (0..12).map(|i| (1_777 + i * 10_000, 20)).collect();
    talks.push(talk(&beats, false));
    talks.push(talk(&[(2_500, 90_000)], false));
    let found = waits(&talks);
    assert!(found[..3].iter().all(|own| own.len() >= 20), "{found:?}");
    assert!(found[3].is_empty() && found[4].is_empty(), "{found:?}");
    // Without pages nothing waits.
    let alone = waits(&talks[3..]);
    assert!(alone.iter().all(Vec::is_empty));
}

/// A program that opens connections by a timer does so whatever has become of the ones before. (Where the answers end just
/// before the timer each time, nobody can tell.)
#[test]
fn what_a_timer_begins_waits_for_nothing() {
    for seed in 0..100 {
        let mut noise = Noise(seed);
        let takes = [100, 540, 800][seed as usize % 3];
        let every = 1_030;
        let mut talks = Vec::new();
        // Two that are kept, and a dozen new ones each time.
        let mut kept = vec![Vec::new(); 2];
        for volley in 0..20 {
            let at = 500 + volley * every;
            for own in &mut kept {
                own.push((at + noise.below(3), takes + noise.below(60)));
            }
            for _ in 0..12 {
                let once = (at + noise.below(8), takes + noise.below(60));
                talks.push(talk(&[once], false));
            }
        }
        talks.extend(kept.iter().map(|times| talk(times, false)));
        let found = waits(&talks);
        assert!(found.iter().all(Vec::is_empty), "seed {seed}");
    }
}
