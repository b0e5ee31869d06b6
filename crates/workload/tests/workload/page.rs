//! Pages that are given up.

use std::sync::Arc;

use swell_base::{Dur, Time};
use swell_workload::{
    Access, Action, Conn, End, Event, Info, Object, Opening, Outcome, Page, PageConfig, Record,
    Workload,
};

fn page() -> Page {
    let object = Object {
        size: 100_000,
        request: 300,
        parent: None,
        wait: Dur::ZERO,
        host: 0,
    };
    Page::new(PageConfig {
        objects: Arc::new(vec![object]),
        connections: 6,
        streams: false,
        turns: false,
        opening: Opening::Tcp,
        keep: false,
        clients: 1,
        every: Some(Dur::from_secs(1)),
        think: Dur::ZERO,
        start: Dur::ZERO,
        client: Access::default(),
        server: Access::default(),
    })
}

fn told(page: &mut Page, seconds: u64, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    page.handle(Time::ZERO + Dur::from_secs(seconds), event, &mut actions);
    actions
}

fn timer(actions: &[Action], pause: Dur) -> Event {
    let found = actions.iter().find_map(|a| match a {
        Action::Timer(after, token) if *after == pause => Some(Event::Timer(*token)),
        _ => None,
    });
    found.expect("a timer")
}

fn lost(n: u32) -> Info {
    Info {
        server_retransmissions: n,
        ..Info::default()
    }
}

/// A page is given up because much was lost, so this must show.
#[test]
fn retransmissions_of_pages_that_are_given_up_count() {
    let mut page = page();
    let start = told(&mut page, 0, Event::Start);
    let first = told(&mut page, 0, timer(&start, Dur::ZERO));
    told(&mut page, 0, Event::Connected(Conn(0), End::Client));
    let every = timer(&first, Dur::from_secs(1));
    let asks = told(&mut page, 1, every);
    assert!(asks.contains(&Action::Ask(Conn(0))), "{asks:?}");
    assert_eq!(told(&mut page, 1, Event::Info(Conn(0), lost(7))), []);
    let next = told(&mut page, 1, timer(&asks, Dur::ZERO));
    assert_eq!(next[0], Action::Abort(Conn(0)));
    assert!(matches!(next[1], Action::Connect(Conn(1), _)), "{next:?}");
    // The run ends during the second page.
    page.finish(&|conn| lost(if conn == Conn(1) { 3 } else { 0 }));
    let records = page.take_records();
    let seen: Vec<_> = records
        .iter()
        .map(|r| match r {
            Record::Request(r) => (r.outcome, r.retransmissions),
            Record::Flow(f) => panic!("{f:?}"),
        })
        .collect();
    assert_eq!(seen, [(Outcome::Unfinished, 7), (Outcome::Unfinished, 3)]);
}
