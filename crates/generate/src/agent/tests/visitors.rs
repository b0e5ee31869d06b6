//! Visitors without the token.

use super::*;
use crate::agent::visitors::ANONYMOUS;

/// The head of an answer to a request on a connection that stays open, and its body.
fn ask_and_stay(stream: &mut TcpStream) -> io::Result<String> {
    let text =
        format!("GET /v1/status HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(text.as_bytes())?;
    let mut back = Vec::new();
    let mut some = [0; 4_096];
    loop {
        let n = stream.read(&mut some)?;
        back.extend(&some[..n]);
        // The status is an object, and the end of it the end of the answer.
        if n == 0 || back.trim_ascii_end().ends_with(b"}") {
            return Ok(String::from_utf8_lossy(&back).into_owned());
        }
    }
}

#[test]
fn a_crowd_without_the_token_keeps_nobody_out_and_does_not_stay() {
    let agent = Running::new(None);
    let connect = || {
        let stream = TcpStream::connect(agent.address).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        stream
    };
    let mut controller = connect();
    let answer = ask_and_stay(&mut controller).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"));
    // More than there are slots; some send requests without a token, and none closes its connection.
    let mut crowd: Vec<TcpStream> = (0..400).map(|_| connect()).collect();
    for stream in crowd.iter_mut().step_by(7) {
        // It may already have been closed.
        let _ = stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    assert_eq!(agent.get("/v1/status")["runs"], json!([]));
    // A connection that has shown the token is kept.
    let answer = ask_and_stay(&mut controller).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"));
    // The agent closes all others: reading them ends, or they are reset.
    for stream in &mut crowd {
        let mut back = Vec::new();
        let ended = stream.read_to_end(&mut back);
        let timed_out = ended.is_err_and(|e| {
            matches!(
                e.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            )
        });
        assert!(!timed_out, "a silent connection stays");
    }
}

/// A stream to the agent from another loopback address.
fn connect_from(own: [u8; 4], agent: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((own, 0))).unwrap();
    connect(&socket, &agent).unwrap();
    let stream = TcpStream::from(socket);
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Sets the flag when dropped, also during a panic.
struct Set<'a>(&'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_crowd_that_keeps_coming_keeps_nobody_else_out() {
    let agent = Running::new(None);
    let come = AtomicU64::new(0);
    let enough = AtomicBool::new(false);
    let crowd = || {
        let mut streams: VecDeque<TcpStream> = VecDeque::new();
        while !enough.load(Ordering::Relaxed) {
            streams.extend(TcpStream::connect(agent.address).ok());
            come.fetch_add(1, Ordering::Relaxed);
            // Drop the oldest ones. The agent has already closed them, or its queue is full of them.
            if streams.len() > 400 {
                streams.pop_front();
            }
        }
    };
    let (mut kept, mut tried) = (false, 0);
    let well = |stream: &mut TcpStream| {
        ask_and_stay(stream).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    };
    std::thread::scope(|scope| {
        scope.spawn(crowd);
        let _end = Set(&enough);
        until(|| come.load(Ordering::Relaxed) > 400);
        while !kept && tried < 10 {
            let begun = Instant::now();
            let mut controller = connect_from([127, 0, 0, 2], agent.address);
            let before = come.load(Ordering::Relaxed);
            until(|| come.load(Ordering::Relaxed) > before + 600);
            // Connections are accepted in order: once this one is served, the 600 before it have been accepted.
            let mut another = connect_from([127, 0, 0, 2], agent.address);
            kept = well(&mut another) && well(&mut controller);
            // On a machine so slow that the controller itself timed out, the result proves nothing.
            if begun.elapsed() < ANONYMOUS {
                break;
            }
            tried += 1;
        }
    });
    assert!(kept, "a controller lost its place to the crowd");
}
