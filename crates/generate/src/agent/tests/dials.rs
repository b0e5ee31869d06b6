//! Agents that dial in to their controller.

use std::path::Path;
use std::sync::Mutex;

use rustls::pki_types::ServerName;
use swell_host::scratch::Scratch;
use tokio_rustls::TlsConnector;

use super::*;
use crate::agent::lobby::Lobby;
use crate::agent::request::Sender;
use crate::agent::tls;

/// What an agent said about its connections.
type Said = Arc<Mutex<Vec<String>>>;

/// An agent that dials `to` and does not listen.
fn dialling(identity: &Identity, to: SocketAddr, trust: Trust) -> (Running, Said) {
    dialling_with(TOKEN, identity, to, trust)
}

fn dialling_with(
    token: &str,
    identity: &Identity,
    to: SocketAddr,
    trust: Trust,
) -> (Running, Said) {
    let (config, said) = dial_config(token, identity, to, trust);
    (Running::of(config), said)
}

fn dial_config(
    token: &str,
    identity: &Identity,
    to: SocketAddr,
    trust: Trust,
) -> (AgentConfig, Said) {
    let said = Said::default();
    let heard = Arc::clone(&said);
    let config = AgentConfig {
        listen: None,
        identity: Some(identity.clone()),
        token: token.into(),
        dial: Some(DialOut {
            to: to.to_string(),
            trust,
            tell: Box::new(move |text| heard.lock().unwrap().push(text.to_owned())),
        }),
        ..plain()
    };
    (config, said)
}

/// An agent that dials out, for whose controller's name `resolve` finds the addresses.
fn resolving(
    identity: &Identity,
    trust: Trust,
    resolve: impl Fn() -> Vec<SocketAddr> + Send + Sync + 'static,
) -> (Running, Said) {
    let nowhere = ([127, 0, 0, 1], 1).into();
    let (config, said) = dial_config(TOKEN, identity, nowhere, trust);
    let mut agent = Agent::new(config).unwrap();
    agent.dialler.as_mut().unwrap().resolve = Arc::new(move |_| Ok(resolve()));
    (Running::serving(agent), said)
}

fn trust(identity: &Identity) -> Trust {
    Trust::Fingerprints(vec![identity.fingerprint()])
}

/// A rendezvous, and the fingerprint that agents trust.
fn rendezvous() -> (Arc<Rendezvous>, Trust) {
    let own = Identity::made().unwrap();
    let trusted = trust(&own);
    let made = Rendezvous::new(([127, 0, 0, 1], 0).into(), own).unwrap();
    (Arc::new(made), trusted)
}

/// The agent `name`, which dials in.
fn member(name: &str, trust: Option<Trust>) -> Address {
    Address {
        dials_in: true,
        trust,
        ..Address::from(name)
    }
}

/// A runtime on a thread of its own, which ends when this is dropped.
struct Runtime(
    tokio::runtime::Handle,
    #[expect(dead_code, reason = "its drop ends the runtime")] oneshot::Sender<()>,
);

impl std::ops::Deref for Runtime {
    type Target = tokio::runtime::Handle;

    fn deref(&self) -> &tokio::runtime::Handle {
        &self.0
    }
}

/// A lobby that is open as long as the runtime lives.
fn lobby(at: &Rendezvous, agents: &[Address], all: &Trust) -> (Runtime, Arc<Lobby>) {
    let (handle, stop) = crate::agent::controller::runtime().unwrap();
    let agents: Vec<&Address> = agents.iter().collect();
    let opened = handle.block_on(async { Lobby::open(at, &agents, all, TOKEN) });
    (Runtime(handle, stop), opened.unwrap())
}

/// Whether an agent has dialled in within five seconds.
fn comes(runtime: &Runtime, lobby: &Lobby, name: &str) -> bool {
    takes(runtime, lobby, name).is_some()
}

/// A connection to an agent that dials in within five seconds.
fn takes(runtime: &Runtime, lobby: &Lobby, name: &str) -> Option<Sender> {
    let begun = Instant::now();
    let patience = Duration::from_secs(5);
    while begun.elapsed() < patience {
        let taken = async { tokio::time::timeout(patience, lobby.take(name)).await };
        if let Ok(Some((sender, _))) = runtime.block_on(taken) {
            return Some(sender);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

#[test]
fn agents_that_dial_in_play_are_started_again_and_come_back() {
    let (at, trusted) = rendezvous();
    let [one, two] = [(); 2].map(|()| Identity::made().unwrap());
    let (mut client, said) = dialling(&one, at.address(), trusted.clone());
    let (_server, _) = dialling(&two, at.address(), trusted.clone());
    let order = Order {
        clients: vec![member("left", Some(trust(&one)))],
        servers: vec![member("right", Some(trust(&two)))],
        rendezvous: Some(Arc::clone(&at)),
        ..order(&[], &[], Trust::Loopback)
    };
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    until(|| done(&controller) > 200);
    until(|| {
        said.lock()
            .unwrap()
            .iter()
            .any(|s| s.ends_with("connected"))
    });
    client.end();
    until(|| controller.standing().0[0].missing);
    let (_again, _) = dialling(&one, at.address(), trusted);
    let mut back = Vec::new();
    until(|| {
        back.extend(controller.admit());
        !back.is_empty()
    });
    assert_eq!(back, ["left"]);
    let before = done(&controller);
    until(|| done(&controller) > before + 200);
    assert_eq!(controller.stop(), Vec::<String>::new());
    let refusals = controller.refusals();
    assert!(refusals.twice.is_empty(), "{refusals:?}");
    controller.end();
}

#[test]
fn an_agent_that_was_cut_off_dials_again_and_comes_back() {
    let (at, trusted) = rendezvous();
    let own = Identity::made().unwrap();
    let way = Way::to(at.address());
    let (_client, _) = dialling(&own, way.address, trusted);
    let server = Running::new(None);
    let mut order = Order {
        clients: vec![member("left", Some(trust(&own)))],
        rendezvous: Some(Arc::clone(&at)),
        ..order(&[], &[&server], Trust::Loopback)
    };
    order.servers[0].trust = Some(Trust::Loopback);
    let mut controller = Controller::new(&order).unwrap();
    controller.start().unwrap();
    until(|| done(&controller) > 0);
    // Everything on the present connections is discarded, and none of them is closed.
    way.lost.store(true, Ordering::Release);
    until(|| controller.standing().0[0].missing);
    way.lost.store(false, Ordering::Release);
    let mut back = Vec::new();
    until(|| {
        back.extend(controller.admit());
        !back.is_empty()
    });
    let before = done(&controller);
    until(|| done(&controller) > before);
    assert_eq!(controller.standing().0[0].returns, 1);
}

fn enrolled(authority: &Path, name: &str) -> Identity {
    enrol(authority, &[name.to_owned()], &authority.join(name), 10).unwrap()
}

#[test]
fn no_key_is_written_beside_another_certificate() {
    let scratch = Scratch::new().unwrap();
    for (file, other) in [("ca.pem", "ca.key"), ("ca.key", "ca.pem")] {
        let dir = scratch.path().join(file);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(file), "an earlier one").unwrap();
        let refused = make_authority(&dir, 10).unwrap_err().to_string();
        assert!(refused.contains(file), "{refused}");
        assert!(!dir.join(other).exists(), "{other} does not match {file}");
    }
}

#[test]
fn an_authority_vouches_for_both_ends_and_names_decide() {
    let scratch = Scratch::new().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|dir| scratch.path().join(dir));
    let ca = make_authority(&ours, 10).unwrap();
    let other = make_authority(&theirs, 10).unwrap();
    let all = Trust::Authorities(ca.clone());
    let own = enrolled(&ours, "127.0.0.1");
    let at = Rendezvous::new(([127, 0, 0, 1], 0).into(), own).unwrap();
    let agents = [member("a.example", None), member("b.example", None)];
    let (runtime, lobby) = lobby(&at, &agents, &all);
    let last = || lobby.refusals().last.unwrap_or_default();
    // Of the authority, but nobody who is to dial in; of another authority; of nobody.
    let stranger = enrolled(&ours, "c.example");
    let forged = enrolled(&theirs, "a.example");
    let both = ["a.example", "b.example"].map(String::from);
    let both = enrol(&ours, &both, &ours.join("both"), 10).unwrap();
    for (identity, says) in [
        (&stranger, "that of no agent that is to dial in"),
        (&forged, "invalid peer certificate"),
        (&Identity::made().unwrap(), "invalid peer certificate"),
        (&both, "for a.example as well as for b.example"),
    ] {
        let (_agent, _) = dialling(identity, at.address(), all.clone());
        until(|| last().contains(says));
    }
    // The right certificate, without the token.
    let right = enrolled(&ours, "a.example");
    {
        let (_agent, said) = dialling_with("0123456789abcdeg", &right, at.address(), all.clone());
        until(|| last().contains("does not accept the token"));
        let says = |s: &String| s.contains("it has another token than this agent");
        until(|| said.lock().unwrap().iter().any(says));
    }
    assert_eq!(lobby.refusals().last.unwrap().find("127.0.0.1: "), Some(0));
    // An agent that does not trust the controller sends nothing.
    {
        let (_agent, said) = dialling(&right, at.address(), Trust::Authorities(other));
        until(|| {
            said.lock()
                .unwrap()
                .iter()
                .any(|s| s.contains("invalid peer certificate"))
        });
    }
    assert!(runtime.block_on(async {
        let soon = Duration::from_millis(50);
        tokio::time::timeout(soon, lobby.take("a.example"))
            .await
            .is_err()
    }));
    let (_agent, _) = dialling(&right, at.address(), all);
    assert!(comes(&runtime, &lobby, "a.example"));
}

#[test]
fn two_agents_with_one_certificate_are_one_and_a_refusal() {
    let (at, trusted) = rendezvous();
    let own = Identity::made().unwrap();
    let agents = [member("left", Some(trust(&own)))];
    let (runtime, lobby) = lobby(&at, &agents, &Trust::Loopback);
    let (first, _) = dialling(&own, at.address(), trusted.clone());
    // All its connections are open. While it has none, another one is admitted in its place.
    until(|| lobby.unused("left") == 3);
    assert!(lobby.refusals().twice.is_empty());
    let (_second, said) = dialling(&own, at.address(), trusted);
    until(|| !lobby.refusals().twice.is_empty());
    let told = lobby.refusals().twice["left"].clone();
    assert!(told.contains("two agents claim to be left"), "{told}");
    until(|| {
        said.lock()
            .unwrap()
            .iter()
            .any(|s| s.ends_with("dialling again"))
    });
    // Once the first is gone, the second is admitted.
    drop(first);
    until(|| comes(&runtime, &lobby, "left"));
}

/// The host is reset while requests are on the way, and the agent is back before the kernel notices. Two connections are
/// in use, as in a run.
#[test]
fn an_agent_that_is_back_without_a_farewell_is_no_second_one() {
    let (at, trusted) = rendezvous();
    let own = Identity::made().unwrap();
    let agents = [member("left", Some(trust(&own)))];
    let (runtime, lobby) = lobby(&at, &agents, &Trust::Loopback);
    let way = Way::to(at.address());
    let (_before, _) = dialling(&own, way.address, trusted.clone());
    until(|| lobby.unused("left") == 3);
    let in_use = [(); 2].map(|()| takes(&runtime, &lobby, "left").unwrap());
    way.lost.store(true, Ordering::Release);
    let (_again, _) = dialling(&own, at.address(), trusted);
    // All three of its connections are admitted.
    until(|| lobby.unused("left") == 3);
    let refusals = lobby.refusals();
    assert!(refusals.twice.is_empty(), "{refusals:?}");
    drop(in_use);
}

#[test]
fn an_agent_without_connections_is_soon_reported() {
    let (at, _) = rendezvous();
    let own = Identity::made().unwrap();
    let agents = [member("left", Some(trust(&own)))];
    let (runtime, lobby) = lobby(&at, &agents, &Trust::Loopback);
    let patience = Duration::from_secs(30);
    let taken = async { tokio::time::timeout(patience, lobby.take("left")).await };
    assert!(runtime.block_on(taken).unwrap().is_none());
    // Those who ask again need not wait again.
    let begun = Instant::now();
    for _ in 0..20 {
        assert!(runtime.block_on(lobby.take("left")).is_none());
    }
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn waiting_for_agents_can_be_cancelled() {
    let (at, _) = rendezvous();
    let own = Identity::made().unwrap();
    let order = Order {
        clients: vec![member("left", Some(trust(&own)))],
        servers: vec![Address::from("127.0.0.1:1")],
        rendezvous: Some(at),
        ..order(&[], &[], Trust::Loopback)
    };
    let begun = Instant::now();
    let cancelled = || begun.elapsed() > Duration::from_millis(200);
    let error = Controller::new_unless(&order, &cancelled).err();
    assert!(matches!(error, Some(OrderError::Cancelled)), "{error:?}");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn an_address_that_never_answers_does_not_hide_the_next() {
    let (at, trusted) = rendezvous();
    let own = Identity::made().unwrap();
    let agents = [member("left", Some(trust(&own)))];
    let (runtime, lobby) = lobby(&at, &agents, &Trust::Loopback);
    // The kernel drops SYNs for a listen queue that is full.
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let dead = full.local_addr().unwrap();
    let soon = Duration::from_millis(200);
    let _waiting: Vec<TcpStream> =
        std::iter::from_fn(|| TcpStream::connect_timeout(&dead, soon).ok()).collect();
    let real = at.address();
    let (_agent, _) = resolving(&own, trusted.clone(), move || vec![dead, real]);
    until(|| comes(&runtime, &lobby, "left"));
    // If none answers, each is named.
    let (_other, said) = resolving(&own, trusted, move || vec![dead]);
    let wanted = format!("{dead}: no answer in time");
    until(|| said.lock().unwrap().iter().any(|s| s.contains(&wanted)));
}

#[test]
fn an_agent_ends_while_a_name_server_is_silent() {
    let (_, trusted) = rendezvous();
    let own = Identity::made().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let asks = Arc::clone(&asked);
    let (mut agent, _) = resolving(&own, trusted, move || {
        asks.fetch_add(1, Ordering::AcqRel);
        std::thread::sleep(Duration::from_secs(30));
        Vec::new()
    });
    until(|| asked.load(Ordering::Acquire) > 0);
    let begun = Instant::now();
    agent.end();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_crowd_at_the_rendezvous_is_refused_counted_and_keeps_nobody_out() {
    let (at, trusted) = rendezvous();
    let own = Identity::made().unwrap();
    let agents = [member("left", Some(trust(&own)))];
    let (runtime, lobby) = lobby(&at, &agents, &Trust::Loopback);
    let connect = || {
        let stream = TcpStream::connect(at.address()).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        stream
    };
    // Without a certificate: the handshake fails.
    let config = tls::anonymous(&trusted).unwrap().unwrap();
    let name = ServerName::try_from("swell-agent").unwrap();
    let answer: Result<usize, String> = runtime.block_on(async {
        use tokio::io::AsyncReadExt;
        let stream = tokio::net::TcpStream::connect(at.address()).await.unwrap();
        let connector = TlsConnector::from(config);
        let mut secret = connector
            .connect(name, stream)
            .await
            .map_err(|e| e.to_string())?;
        secret.read(&mut [0]).await.map_err(|e| e.to_string())
    });
    assert!(answer.unwrap_err().contains("CertificateRequired"));
    // Garbage.
    let mut rude = connect();
    rude.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let spoken = |what: &str| {
        let last = lobby.refusals().last;
        last.is_some_and(|l| l.contains(what))
    };
    until(|| spoken("the other side does not speak TLS"));
    // Silence, from many more connections than there are places.
    let mut crowd: Vec<TcpStream> = (0..600).map(|_| connect()).collect();
    let (_agent, _) = dialling(&own, at.address(), trusted);
    until(|| comes(&runtime, &lobby, "left"));
    for stream in &mut crowd {
        let mut back = Vec::new();
        let ended = stream.read_to_end(&mut back);
        let stays = ended.is_err_and(|e| {
            matches!(
                e.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            )
        });
        assert!(!stays, "a silent connection stays");
    }
    until(|| lobby.refusals().count >= 602);
    assert!(spoken("did not show a certificate and the token in time"));
}

#[test]
fn what_cannot_be_told_apart_or_reached_is_refused_before_anything_plays() {
    let own = Identity::made().unwrap();
    let (at, trusted) = rendezvous();
    let with = |address: Address, rendezvous| {
        let order = Order {
            clients: vec![address],
            servers: vec![Address::from("127.0.0.1:1")],
            rendezvous,
            ..order(&[], &[], Trust::Loopback)
        };
        Controller::new(&order).err().unwrap().to_string()
    };
    let said = with(member("left", Some(trust(&own))), None);
    assert!(said.contains("--listen"), "{said}");
    let said = with(member("left", None), Some(Arc::clone(&at)));
    assert!(said.contains("needs a fingerprint"), "{said}");
    let two = Trust::Fingerprints(vec![own.fingerprint(), "00".repeat(32)]);
    let said = with(member("left", Some(two)), Some(Arc::clone(&at)));
    assert!(said.contains("one fingerprint"), "{said}");
    // All certificates are checked against one list of authorities: that of the order.
    let another = Trust::Authorities("another.pem".into());
    let said = with(member("left", Some(another)), Some(Arc::clone(&at)));
    assert!(
        said.contains("cannot have an authority of its own"),
        "{said}"
    );
    let dial = |to: &str, trust, identity: Option<&Identity>| {
        let config = AgentConfig {
            listen: None,
            identity: identity.cloned(),
            dial: Some(DialOut {
                to: to.into(),
                trust,
                tell: Box::new(|_| ()),
            }),
            ..plain()
        };
        Agent::new(config).err().unwrap().to_string()
    };
    let said = dial("c.example:1", Trust::Loopback, Some(&own));
    assert!(said.contains("whom to trust?"), "{said}");
    let said = dial("c.example:1", trusted.clone(), None);
    assert!(said.contains("needs a certificate"), "{said}");
    for wrong in ["c.example", "c.example:0", ":1", "c.example:x", "a b:1"] {
        let said = dial(wrong, trusted.clone(), Some(&own));
        assert!(said.contains("not HOST:PORT"), "{wrong}: {said}");
    }
    let nowhere = AgentConfig {
        listen: None,
        ..plain()
    };
    assert!(matches!(Agent::new(nowhere), Err(AgentError::Nowhere)));
}

/// A server that says it is at an address where it is not, as one behind NAT without a forwarded port.
#[test]
fn a_server_that_clients_cannot_reach_is_named_before_anything_plays() {
    let (at, trusted) = rendezvous();
    let own = Identity::made().unwrap();
    let client = Running::new(None);
    // The kernel connects to no broadcast address, so nothing leaves this machine.
    let server = Running::of(AgentConfig {
        listen: None,
        address: Some("255.255.255.255".into()),
        identity: Some(own.clone()),
        dial: Some(DialOut {
            to: at.address().to_string(),
            trust: trusted,
            tell: Box::new(|_| ()),
        }),
        ..plain()
    });
    let mut asked = Order {
        servers: vec![member("right", Some(trust(&own)))],
        rendezvous: Some(Arc::clone(&at)),
        ..order(&[&client], &[], Trust::Loopback)
    };
    asked.flows = false;
    let said = Controller::new(&asked).err().unwrap().to_string();
    assert!(
        said.contains("did not reach right at 255.255.255.255:"),
        "{said}"
    );
    assert!(said.contains("may be behind NAT"), "{said}");
    assert_eq!(client.get("/v1/status")["runs"], json!([]));
    drop(server);
}
