//! Peers without an agreement get nothing.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use super::*;
use crate::wire::{Message, Request, Stamp, Stamps};

/// Number of bytes that a stranger receives before the end of the connection.
fn probe(port: u16, bytes: &[u8]) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(bytes).unwrap();
    let mut back = Vec::new();
    // A reset also counts as the end.
    let _ = stream.read_to_end(&mut back);
    back.len()
}

/// A request for a kilobyte.
fn download() -> Message {
    Message::Request(Request {
        client: 0,
        keep: false,
        dscp: 0,
        congestion: 0,
        limit: 0,
        up: 0,
        down: 1_000,
    })
}

#[test]
fn strangers_get_nothing_and_are_counted() {
    let server = server();
    let port = server.port();
    let request = download();
    // Another protocol; another key; the right key without a lease; an unknown client.
    assert_eq!(
        probe(
            port,
            b"GET / HTTP/1.0\r\nHost: x\r\nUser-Agent: somebody\r\n\r\n"
        ),
        0
    );
    assert_eq!(probe(port, &request.encode(&Key::new([8; 16]))), 0);
    assert_eq!(probe(port, &request.encode(&KEY)), 0);
    let hello = Message::Hello {
        client: 9,
        nonce: [1; 16],
    };
    assert_eq!(probe(port, &hello.encode(&KEY)), 0);
    // A client's request for a lease without the key is answered. But its proof then shows that it lacks the key.
    let mut talk = Message::Hello {
        client: 0,
        nonce: [1; 16],
    }
    .encode(&KEY)
    .to_vec();
    talk.extend(Message::Proof([0; 16]).encode(&KEY));
    assert_eq!(probe(port, &talk), 48);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .send_to(&[0; 100], ("127.0.0.1", server.datagram_port()))
        .unwrap();
    until(|| server.statistics().counts.strangers == 6);
    let statistics = server.statistics();
    assert_eq!(
        (statistics.counts.begun, statistics.counts.datagrams_sent),
        (0, 0)
    );
    assert_eq!(statistics.parties, 0);

    // From an address that belongs to no client.
    let role = Role::Server(Server {
        clients: vec![pool("127.3.0.0/16")],
        ..Server::default()
    });
    let server = Run::new(config(role)).unwrap();
    assert_eq!(probe(server.port(), &request.encode(&KEY)), 0);
    until(|| server.statistics().counts.strangers == 1);
}

#[test]
fn a_client_sends_nothing_to_who_has_not_agreed() {
    // A listener that is not a server of the run answers, but cannot prove that it has the key.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 48];
        stream.read_exact(&mut hello).unwrap();
        let forged = Message::Welcome {
            nonce: [1; 16],
            proof: [2; 16],
        };
        stream.write_all(&forged.encode(&KEY)).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        rest.len()
    });
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = Target {
        address,
        datagrams: socket.local_addr().unwrap().port(),
        pool: Addresses::default(),
    };
    let mut traffic = transfers(2, 49, Dur::from_millis(10), |_| (1_000, 0));
    let (gap, span) = (Dur::from_millis(10), Dur::from_millis(500));
    let (up, down) = (burst(1.0, 1_000), burst(0.0, 0));
    traffic
        .0
        .push(source(UdpKind::Periodic, gap, span, up, down));
    let role = Role::Client(client_of(vec![server], traffic, Play::default()));
    let client = Run::new(config(role)).unwrap();
    client.start();
    until(|| client.is_played());
    assert_eq!(
        heard.join().unwrap(),
        0,
        "not a byte after a forged welcome"
    );
    let counts = client.stop().counts;
    assert_eq!((counts.begun, counts.datagrams_sent), (0, 0));
    assert_eq!((counts.withheld, counts.strangers), (2 * 49 + 50, 1));
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut [0; 10]).is_err());
}

#[test]
fn who_agreed_to_other_addresses_is_not_sent_traffic() {
    let role = Role::Server(Server {
        clients: vec![pool("127.0.0.0/8")],
        pool: pool("127.9.0.0/16"),
        port: 0,
    });
    let server = Run::new(config(role)).unwrap();
    let role = Role::Client(client_of(
        vec![Target {
            pool: pool("127.8.0.0/16"),
            ..target(&server)
        }],
        transfers(1, 10, Dur::from_millis(10), |_| (100, 100)),
        Play::default(),
    ));
    let client = Run::new(config(role)).unwrap();
    client.start();
    until(|| client.is_played());
    let counts = client.stop().counts;
    assert_eq!((counts.begun, counts.withheld), (0, 10));
    assert_eq!(server.stop().counts.begun, 0);
}

/// Where the run does not say where a client is, it may move: the proof of its next lease counts, not its address.
#[test]
fn a_client_whose_address_changed_agrees_again() {
    let role = Role::Server(Server {
        clients: vec![Addresses::default()],
        ..Server::default()
    });
    let server = Run::new(config(role)).unwrap();
    for address in ["127.0.0.2", "127.0.0.3"] {
        let role = Role::Client(Client {
            pool: pool(address),
            ..client_of(
                vec![target(&server)],
                transfers(1, 5, Dur::from_millis(10), |_| (100, 100)),
                Play::default(),
            )
        });
        let (counts, _) = play(&Run::new(config(role)).unwrap());
        assert_eq!((counts.done, counts.failed), (5, 0), "{address}");
    }
    // Other addresses still get no traffic.
    let request = download();
    assert_eq!(probe(server.port(), &request.encode(&KEY)), 0);
    assert_eq!(server.stop().counts.done, 10);
}

/// The last datagrams and requests of a client may arrive after its bye. They are counted as its own, and not answered.
#[test]
fn what_arrives_after_the_bye_is_no_strangers() {
    let server = server();
    let client = client(&server, Script(Vec::new()), Play::default());
    agreed(&client);
    agreed(&server);
    client.start();
    client.stop();
    until(|| server.statistics().parties == 0);
    let stamp = Stamp {
        client: 0,
        answer: 100,
        answers: 1,
        dscp: 0,
        sequence: 0,
    };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let datagram = Stamps::new(&KEY).encode(stamp);
    socket
        .send_to(&datagram, ("127.0.0.1", server.datagram_port()))
        .unwrap();
    assert_eq!(probe(server.port(), &download().encode(&KEY)), 0);
    until(|| {
        let counts = server.statistics().counts;
        counts.datagrams_received == 1 && counts.unfinished == 1
    });
    let counts = server.stop().counts;
    assert_eq!((counts.strangers, counts.datagrams_sent), (0, 0));
    assert_eq!(counts.in_progress(), 0);
}
