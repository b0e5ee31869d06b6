//! An agent that does not answer, beside others that do.

use super::*;

/// A quarter of the lease in these tests. If a machine stalls threads for longer, leases can expire on agents that
/// should not be affected.
const STALL: Duration = Duration::from_millis(250);

/// Sets the flag when dropped, also during a panic.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs `work`. Also returns the longest time for which a thread that sleeps in short steps was delayed in the
/// meantime.
fn watched<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let step = Duration::from_millis(10);
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Acquire) {
                let before = Instant::now();
                std::thread::sleep(step);
                longest = longest.max(before.elapsed().saturating_sub(step));
            }
            longest
        });
        let end = Over(&over);
        let result = work();
        drop(end);
        (result, watch.join().unwrap())
    })
}

#[test]
fn an_agent_that_is_silent_costs_the_others_nothing() {
    for _ in 0..10 {
        let (held, stall) = watched(silence);
        match held {
            Ok(()) => return,
            // The stall of the machine may have caused the failure, so it proves nothing.
            Err(why) => assert!(
                stall > STALL,
                "{why}, and no thread waited longer than {stall:?}"
            ),
        }
    }
    panic!("threads are kept waiting for longer than {STALL:?} again and again");
}

/// One of two clients becomes silent. Checks that the other client and the server are not affected.
fn silence() -> Result<(), String> {
    let (one, two, server) = (Running::new(None), Running::new(None), Running::new(None));
    let way = Way::to(one.address);
    let mut order = order(&[&one, &two], &[&server], Trust::Loopback);
    order.clients[0] = way.address.to_string().as_str().into();
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    until(|| done(&controller) > 0);
    way.lost.store(true, Ordering::Release);
    let state = |agent: &Running| agent.get("/v1/status")["runs"][0]["state"].clone();
    until(|| state(&one) == "expired");
    // Several leases long, in which the controller's own thread waits for the one that is silent.
    for _ in 0..4 {
        controller.flows();
        std::thread::sleep(Duration::from_millis(500));
    }
    let states = [state(&two), state(&server)];
    if states.iter().any(|s| s != "playing") || controller.is_over() {
        return Err(format!("the others are {states:?}"));
    }
    let (clients, _) = controller.standing();
    assert!(clients[0].trouble.is_some());
    if let Some(trouble) = &clients[1].trouble {
        return Err(format!("the other had trouble: {trouble}"));
    }
    controller.stop();
    while controller.flows().iter().any(|batch| batch.client == 1) {}
    let (clients, _) = controller.standing();
    assert_eq!((clients[1].lost, clients[1].waiting), (0, 0));
    controller.end();
    assert_eq!(two.get("/v1/status")["runs"], json!([]));
    Ok(())
}
