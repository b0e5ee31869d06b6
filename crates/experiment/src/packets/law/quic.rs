//! QUIC: requests and responses are inferred from sizes and times alone. Sizes and think times are recovered.

use swell_traffic::Class;

use super::*;

const PAGES: u32 = 40;

/// Every user makes three requests from its own host. The size of the second request identifies it.
fn pages() -> Model {
    let model = world();
    let sessions = model.sessions[..PAGES as usize].iter().zip(0..);
    let sessions = sessions.map(|(s, i): (&Session, u32)| {
        let turn = |n: u32| Turn {
            request: u64::from(if n == 1 { 1_000 + i } else { 300 }),
            server_think: Dur::from_millis(u64::from(20 + i)),
            response: u64::from([3_000 + 50 * i, 150_000 + 7 * i, 900][n as usize]),
            client_think: Dur::from_millis(u64::from(if n == 2 { 0 } else { 400 + 20 * i })),
        };
        let mut s = s.clone();
        let c = &mut s.groups[0].connections[0];
        c.exchange = Exchange::Sequential((0..3).map(turn).collect());
        (c.client_window, c.server_window) = (4 << 20, 4 << 20);
        c.wire = Wire {
            timestamps: Some(false),
            sack: Some(true),
            ..Wire::default()
        };
        s
    });
    Model {
        sessions: sessions.collect(),
        classes: vec![Class {
            name: "quic".into(),
            udp: true,
        }],
        ..model
    }
}

#[test]
fn quic_keeps_its_sizes_and_think_times() {
    let scratch = tempfile::tempdir().unwrap();
    let model = pages();
    let place = scratch.path().join("quic");
    let found = learnt_again(&model, Config::linux(), fast(), &place).model;
    assert_eq!(found.sessions.len(), PAGES as usize);
    let classes: Vec<_> = found.classes.iter().map(|c| (&c.name[..], c.udp)).collect();
    assert_eq!(classes, [("quic", true)]);
    let mut seen = Vec::new();
    for s in &found.sessions {
        let (_, turns) = only(s);
        let i = turns[1].request as usize - 1_000;
        let (_, asked) = only(&model.sessions[i]);
        let of = format!("user {i}");
        assert_eq!(s.outside, model.sessions[i].outside, "{of}");
        assert_eq!(turns.len(), 3, "{of}: {turns:?}");
        for (n, (a, b)) in turns.iter().zip(asked).enumerate() {
            // Bytes of the handshake count as part of the first request.
            let opening = if n == 0 { 40 } else { 0 };
            assert!(
                (b.request..=b.request + opening).contains(&a.request),
                "{of}: {a:?} for {b:?}"
            );
            // A last datagram of less than 64 bytes is mistaken for an ACK.
            let lost = b.response.saturating_sub(a.response);
            assert!(
                a.response <= b.response && lost < 52,
                "{of}: {a:?} for {b:?}"
            );
            let error = Dur::from_millis(2);
            near(&of, a.server_think, b.server_think, error);
            near(&of, a.client_think, b.client_think, error);
        }
        seen.push(i);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), PAGES as usize);
}
