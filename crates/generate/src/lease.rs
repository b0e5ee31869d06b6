//! The lease between a client and a server: one connection that shows that both still consent to the traffic.
//!
//! The client sends a nonce of its own. The server answers with its nonce and proves that it has the run's key and
//! what it agreed to. The client then proves that it has the key. From then on each side sends a byte periodically. A
//! side that receives nothing for the length of the lease, or whose connection breaks, ends all traffic between the
//! two.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType, recv, send};
use swell_base::{Dur, Time};

use super::config::Role;
use super::connect::{begin_connect, socket};
use super::state::{Conn, Lease, Stage, State, Wake};
use super::wire::{HEADER, Key, Message, client_proof, same, server_proof};
use super::worker::Worker;

/// Delay before another attempt to get a lease.
const AGAIN: Dur = Dur::from_millis(500);
/// Keep-alive bytes per length of a lease.
const BEATS: u64 = 5;
/// Keep-alive byte.
const HERE: [u8; 1] = [0];
/// Byte that announces a regular end.
const BYE: [u8; 1] = [1];

impl Worker {
    /// A client requests a lease from server `party`.
    pub fn begin_lease(&mut self, party: u16) {
        let Some(playing) = &self.playing else {
            return;
        };
        let Some(target) = playing.servers().get(usize::from(party)) else {
            return;
        };
        let to = target.address;
        let Role::Client(client) = &self.shared.config.role else {
            return;
        };
        let from = client.pool.host_of(0, to.is_ipv6());
        let now = self.now();
        let fd = match socket(to.ip(), from, SocketType::STREAM) {
            Ok(fd) => fd,
            Err(error) => {
                self.failed(error);
                self.queue.push(now + AGAIN, Wake::Lease(party));
                return;
            }
        };
        let token = self.conns.insert(Conn {
            keep: true,
            party,
            ..Conn::new(fd, State::Lease, now)
        });
        let lease = Lease {
            party,
            stage: Stage::Connecting,
            nonces: [nonce(), [0; 16]],
            since: now,
            agreement: 0,
        };
        self.leases.all.insert(token, lease);
        let begun = self.watch(token).and_then(|()| {
            let conn = self.conns.get_mut(token);
            conn.map_or(Ok(()), |conn| begin_connect(&conn.fd, &to))
        });
        if let Err(error) = begun {
            self.failed(error);
            self.break_lease(token);
        }
    }

    /// A server answers a client's request for a lease.
    pub fn welcome(&mut self, token: u64, client: u16, theirs: [u8; 16]) {
        let own = nonce();
        let config = &self.shared.config;
        let Role::Server(server) = &config.role else {
            return;
        };
        let pool = server.pool.texts().join(",");
        let proof = server_proof(&config.key, client, &theirs, &own, &pool);
        let message = Message::Welcome { nonce: own, proof }.encode(&config.key);
        let now = self.now();
        let Some(conn) = self.conns.get_mut(token) else {
            return;
        };
        conn.state = State::Lease;
        conn.keep = true;
        conn.party = client;
        let lease = Lease {
            party: client,
            stage: Stage::Asked,
            nonces: [theirs, own],
            since: now,
            agreement: 0,
        };
        self.leases.all.insert(token, lease);
        self.say(token, &message);
        self.lease_event(token);
    }

    /// Handles events on a lease's connection.
    pub fn lease_event(&mut self, token: u64) {
        let key = self.shared.config.key;
        let Some(lease) = self.leases.all.get_mut(&token) else {
            return;
        };
        if lease.stage == Stage::Connecting {
            let Some(conn) = self.conns.get_mut(token) else {
                return;
            };
            match rustix::net::sockopt::socket_error(&conn.fd) {
                Ok(Ok(())) if rustix::net::getpeername(&conn.fd).is_ok() => {}
                Ok(Ok(())) => return,
                _ => {
                    self.break_lease(token);
                    return;
                }
            }
            lease.stage = Stage::Asked;
            let hello = Message::Hello {
                client: self
                    .playing
                    .as_ref()
                    .map_or(0, super::playing::Playing::index),
                nonce: lease.nonces[0],
            };
            self.say(token, &hello.encode(&key));
        }
        // Bounded, because a message is a header and a few bytes.
        for _ in 0..64 {
            let now = self.leases.all.get(&token);
            let Some((stage, party, agreement)) = now.map(|l| (l.stage, l.party, l.agreement))
            else {
                return;
            };
            let Some(conn) = self.conns.get_mut(token) else {
                return;
            };
            if stage == Stage::Agreed {
                let mut bytes = [0; 64];
                match recv(&conn.fd, &mut bytes, RecvFlags::DONTWAIT).map(|(_, n)| n) {
                    Err(Errno::AGAIN) => return,
                    Ok(0) | Err(_) => {
                        self.break_lease(token);
                        return;
                    }
                    Ok(n) if bytes[..n].contains(&BYE[0]) => {
                        self.shared.hear_bye(party, agreement);
                        self.drop_lease(token);
                        return;
                    }
                    Ok(_) => self.shared.hear(party),
                }
                continue;
            }
            let (mut got, mut bytes) = self.partial.remove(&token).unwrap_or((0, [0; HEADER]));
            match recv(&conn.fd, &mut bytes[got..], RecvFlags::DONTWAIT).map(|(_, n)| n) {
                Err(Errno::AGAIN) => {
                    if got > 0 {
                        self.partial.insert(token, (got, bytes));
                    }
                    return;
                }
                Ok(0) | Err(_) => {
                    self.break_lease(token);
                    return;
                }
                Ok(n) => got += n,
            }
            if got < HEADER {
                self.partial.insert(token, (got, bytes));
            } else if !self.lease_message(token, &key, Message::decode(&bytes, &key)) {
                self.counts.strangers += 1;
                self.break_lease(token);
                return;
            }
        }
        self.later(token);
    }

    /// Handles the next message of a handshake; false if it is not a valid one.
    fn lease_message(&mut self, token: u64, key: &Key, message: Option<Message>) -> bool {
        let shared = std::sync::Arc::clone(&self.shared);
        let Some(lease) = self.leases.all.get_mut(&token) else {
            return false;
        };
        let party = lease.party;
        match (&shared.config.role, message) {
            (Role::Client(client), Some(Message::Welcome { nonce, proof })) => {
                lease.nonces[1] = nonce;
                let [own, theirs] = lease.nonces;
                let target = &client.servers[usize::from(party)];
                let pool = target.pool.texts().join(",");
                if !same(
                    &proof,
                    &server_proof(key, client.index, &own, &theirs, &pool),
                ) {
                    return false;
                }
                lease.stage = Stage::Agreed;
                lease.agreement = shared.agree(party);
                let shown = client_proof(key, client.index, &own, &theirs);
                self.say(token, &Message::Proof(shown).encode(key));
            }
            (Role::Server(_), Some(Message::Proof(proof))) => {
                let [theirs, own] = lease.nonces;
                if !same(&proof, &client_proof(key, party, &theirs, &own)) {
                    return false;
                }
                lease.stage = Stage::Agreed;
                lease.agreement = shared.agree(party);
                if let Some(conn) = self.conns.get_mut(token) {
                    shared.set_address(party, conn.flow.source);
                }
                // The client sends nothing until it has received this.
                self.say(token, &HERE);
                shared.hear(party);
            }
            _ => return false,
        }
        true
    }

    fn say(&mut self, token: u64, bytes: &[u8]) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if let Some(conn) = self.conns.get_mut(token) {
            // If the kernel cannot accept the byte now, it is lost. That is harmless: the lease tolerates missing
            // bytes.
            let _ = send(&conn.fd, bytes, flags);
        }
    }

    /// Sends keep-alive bytes, and drops leases of parties that were silent for too long.
    pub fn lease_look(&mut self, now: Time) {
        let lease = self.shared.config.lease;
        if now >= self.leases.next {
            self.leases.next = now + lease / BEATS;
            let agreed = self.leases.all.iter();
            let agreed = agreed.filter(|(_, l)| l.stage == Stage::Agreed);
            let tokens: Vec<u64> = agreed.map(|(t, _)| *t).collect();
            for token in tokens {
                self.say(token, &HERE);
            }
        }
        let silent = |l: &Lease| match l.stage {
            // The client agrees before it first hears from the server.
            Stage::Agreed => {
                let here = self.shared.is_here(l.party);
                let replaced = !self.shared.is_latest(l.party, l.agreement);
                now.since(l.since) > lease && (!here || replaced)
            }
            Stage::Connecting | Stage::Asked => now.since(l.since) > lease,
        };
        let dead = self.leases.all.iter().filter(|(_, l)| silent(l));
        let dead: Vec<u64> = dead.map(|(t, _)| *t).collect();
        for token in dead {
            self.break_lease(token);
        }
    }

    /// Announces the regular end on every lease.
    pub fn say_bye(&mut self) {
        let tokens: Vec<u64> = self.leases.all.keys().copied().collect();
        for token in tokens {
            self.say(token, &BYE);
        }
    }

    /// A lease broke unexpectedly.
    pub fn break_lease(&mut self, token: u64) {
        let lost = self.drop_lease(token);
        self.counts.lost_parties += u64::from(lost);
    }

    /// Removes a lease, and with it everything that it permitted. Returns true if there was an agreement that no
    /// later one has replaced.
    fn drop_lease(&mut self, token: u64) -> bool {
        let Some(lease) = self.leases.all.remove(&token) else {
            return false;
        };
        self.forget(token);
        let latest = self.shared.is_latest(lease.party, lease.agreement);
        let agreed = lease.stage == Stage::Agreed && latest;
        if agreed {
            self.shared.lose(lease.party, lease.agreement);
        }
        if self.playing.is_some() {
            let at = self.now() + AGAIN;
            self.queue.push(at, Wake::Lease(lease.party));
        }
        agreed
    }
}

/// A number that is never used twice.
fn nonce() -> [u8; 16] {
    let mut bytes = [0; 16];
    // Up to 256 bytes are always returned in one call and without interruption (getrandom(2)).
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes
}
