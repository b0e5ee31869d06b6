//! The wire format of generators: a header before every transfer and in every datagram, and the handshake of a lease.
//!
//! All numbers are big-endian. A client that has the run's key may request transfers, from an address and under a
//! lease that were agreed on. The key is sent only to a peer that has proved that it has the key.

use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::hex;

/// Bytes of every message on a connection, before the payload.
pub const HEADER: usize = 48;
/// Bytes at the beginning of every datagram.
pub const DATAGRAM: usize = 18;

/// Magic number, including the version.
const MAGIC: [u8; 4] = *b"SWG1";

/// The secret that all parties of a run share.
#[derive(Clone, Copy)]
pub struct Key([u8; 16]);

impl std::fmt::Debug for Key {
    /// Does not reveal the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A key with these bytes.
    pub const fn new(bytes: [u8; 16]) -> Key {
        Key(bytes)
    }

    /// A new random key.
    ///
    /// # Errors
    /// If the kernel provides no random numbers.
    pub fn random() -> std::io::Result<Key> {
        let mut bytes = [0; 16];
        // Up to 256 bytes are returned at once or not at all (getrandom(2)).
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        Ok(Key(bytes))
    }

    /// Parses 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Key> {
        hex::decode(text.as_bytes()).map(Key)
    }

    /// The key as 32 hexadecimal digits.
    pub fn to_hex(self) -> String {
        hex::encode(&self.0)
    }

    fn mac(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of every length");
        for part in parts {
            // The lengths keep different splits of the same bytes apart.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let full: [u8; 32] = mac.finalize().into_bytes().into();
        let (half, _) = full.split_at(16);
        half.try_into().expect("16 of 32 bytes")
    }

    /// A short value derived from the key, for datagrams, which have no space for the key itself.
    fn short(&self) -> [u8; 8] {
        let mac = self.mac(&[b"datagrams"]);
        let (half, _) = mac.split_at(8);
        half.try_into().expect("8 of 16 bytes")
    }
}

/// A client's request for a transfer on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Index of the client in the run.
    pub client: u16,
    /// The connection stays open for another request; otherwise the server closes it.
    pub keep: bool,
    /// DSCP of the server's packets.
    pub dscp: u8,
    /// Index of the congestion control for the server's end.
    pub congestion: u8,
    /// Highest rate of the bytes that the server sends, bytes per second; 0 for none, and at most [`MOST_LIMIT`].
    pub limit: u64,
    /// Bytes that the client sends after this header.
    pub up: u64,
    /// Bytes that the server sends afterwards.
    pub down: u64,
}

/// The first message on a connection, or a later one of a lease's handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A transfer.
    Request(Request),
    /// A client requests a lease.
    Hello {
        /// Index of the client in the run.
        client: u16,
        /// A number that is never used twice.
        nonce: [u8; 16],
    },
    /// The server agrees to a lease.
    Welcome {
        /// A number that is never used twice.
        nonce: [u8; 16],
        /// Proves that the server has the key, and what it agreed to.
        proof: [u8; 16],
    },
    /// Proves that the client has the key.
    Proof([u8; 16]),
}

/// The largest limit of a rate that a request can hold, bytes per second: six bytes.
pub const MOST_LIMIT: u64 = (1 << 48) - 1;

const REQUEST: u8 = 1;
const HELLO: u8 = 2;
const WELCOME: u8 = 3;
const PROOF: u8 = 4;

impl Message {
    /// Encodes the message. Only a request contains the key.
    pub fn encode(&self, key: &Key) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..4].copy_from_slice(&MAGIC);
        match *self {
            Message::Request(r) => {
                out[4] = REQUEST;
                out[5] = u8::from(r.keep);
                out[6] = r.dscp;
                out[7] = r.congestion;
                out[8..24].copy_from_slice(&key.0);
                out[24..26].copy_from_slice(&r.client.to_be_bytes());
                out[26..32].copy_from_slice(&r.limit.min(MOST_LIMIT).to_be_bytes()[2..]);
                out[32..40].copy_from_slice(&r.up.to_be_bytes());
                out[40..48].copy_from_slice(&r.down.to_be_bytes());
            }
            Message::Hello { client, nonce } => {
                out[4] = HELLO;
                out[8..24].copy_from_slice(&nonce);
                out[24..26].copy_from_slice(&client.to_be_bytes());
            }
            Message::Welcome { nonce, proof } => {
                out[4] = WELCOME;
                out[8..24].copy_from_slice(&nonce);
                out[24..40].copy_from_slice(&proof);
            }
            Message::Proof(proof) => {
                out[4] = PROOF;
                out[8..24].copy_from_slice(&proof);
            }
        }
        out
    }

    /// Decodes a message; `None` for anything that is not a message of this version, and for a request without the
    /// key.
    pub fn decode(bytes: &[u8; HEADER], key: &Key) -> Option<Message> {
        if bytes[..4] != MAGIC {
            return None;
        }
        let sixteen = |at: usize| -> [u8; 16] {
            let mut out = [0; 16];
            out.copy_from_slice(&bytes[at..at + 16]);
            out
        };
        let eight = |at: usize| {
            let mut out = [0; 8];
            out.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(out)
        };
        let client = u16::from_be_bytes([bytes[24], bytes[25]]);
        match bytes[4] {
            REQUEST => {
                if !bool::from(sixteen(8).ct_eq(&key.0)) {
                    return None;
                }
                Some(Message::Request(Request {
                    client,
                    keep: bytes[5] & 1 != 0,
                    dscp: bytes[6] & 0x3f,
                    congestion: bytes[7],
                    limit: eight(24) & MOST_LIMIT,
                    up: eight(32),
                    down: eight(40),
                }))
            }
            HELLO => Some(Message::Hello {
                client,
                nonce: sixteen(8),
            }),
            WELCOME => Some(Message::Welcome {
                nonce: sixteen(8),
                proof: sixteen(24),
            }),
            PROOF => Some(Message::Proof(sixteen(8))),
            _ => None,
        }
    }
}

/// The proof that a server has the key and accepts traffic at `pool`.
pub fn server_proof(
    key: &Key,
    client: u16,
    theirs: &[u8; 16],
    own: &[u8; 16],
    pool: &str,
) -> [u8; 16] {
    let client = client.to_be_bytes();
    key.mac(&[b"server", &client, theirs, own, pool.as_bytes()])
}

/// The proof that a client has the key.
pub fn client_proof(key: &Key, client: u16, own: &[u8; 16], theirs: &[u8; 16]) -> [u8; 16] {
    key.mac(&[b"client", &client.to_be_bytes(), own, theirs])
}

/// Compares two proofs in constant time.
pub fn same(a: &[u8; 16], b: &[u8; 16]) -> bool {
    a.ct_eq(b).into()
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Index of the client that sent it, or that it answers.
    pub client: u16,
    /// Payload bytes of each requested answer; 0 in an answer.
    pub answer: u16,
    /// Number of requested answers, at most [`MOST_ANSWERS`]; 0 in an answer.
    pub answers: u16,
    /// DSCP of the answers; 0 in an answer.
    pub dscp: u8,
    /// Number of the datagram within its source.
    pub sequence: u32,
}

/// Most answers that a datagram can request.
pub const MOST_ANSWERS: u16 = 64;

/// Encodes and decodes the datagram headers of a run.
#[derive(Clone, Copy, Debug)]
pub struct Stamps([u8; 8]);

impl Stamps {
    /// For the run with this key.
    pub fn new(key: &Key) -> Stamps {
        Stamps(key.short())
    }

    /// Encodes a header.
    pub fn encode(&self, stamp: Stamp) -> [u8; DATAGRAM] {
        let mut out = [0; DATAGRAM];
        out[..8].copy_from_slice(&self.0);
        out[8..10].copy_from_slice(&stamp.client.to_be_bytes());
        out[10..12].copy_from_slice(&stamp.answer.to_be_bytes());
        // Six bits of DSCP, ten bits of answers.
        let asked = u16::from(stamp.dscp) << 10 | stamp.answers & 0x3ff;
        out[12..14].copy_from_slice(&asked.to_be_bytes());
        out[14..].copy_from_slice(&stamp.sequence.to_be_bytes());
        out
    }

    /// Decodes a header; `None` for a datagram of a stranger.
    pub fn decode(&self, bytes: &[u8; DATAGRAM]) -> Option<Stamp> {
        if !bool::from(bytes[..8].ct_eq(&self.0)) {
            return None;
        }
        let asked = u16::from_be_bytes([bytes[12], bytes[13]]);
        Some(Stamp {
            client: u16::from_be_bytes([bytes[8], bytes[9]]),
            answer: u16::from_be_bytes([bytes[10], bytes[11]]),
            answers: (asked & 0x3ff).min(MOST_ANSWERS),
            dscp: (asked >> 10) as u8,
            sequence: u32::from_be_bytes([bytes[14], bytes[15], bytes[16], bytes[17]]),
        })
    }
}

/// Converts an IPv4-mapped IPv6 address, as IPv6 sockets report it, to IPv4.
pub fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: Key = Key([7; 16]);

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let all = [
            Message::Request(Request {
                client: 3,
                keep: true,
                dscp: 46,
                congestion: 1,
                limit: MOST_LIMIT,
                up: 1 << 40,
                down: u64::MAX,
            }),
            Message::Hello {
                client: 65_535,
                nonce: [1; 16],
            },
            Message::Welcome {
                nonce: [2; 16],
                proof: [3; 16],
            },
            Message::Proof([4; 16]),
        ];
        for message in all {
            assert_eq!(Message::decode(&message.encode(&KEY), &KEY), Some(message));
        }
        let other = Key([8; 16]);
        assert_eq!(Message::decode(&all[0].encode(&other), &KEY), None);
        let hello = all[1].encode(&KEY);
        assert!(!hello.windows(16).any(|w| w == KEY.0), "no key in a hello");
    }

    #[test]
    fn keys_are_hexadecimal() {
        let text = "000102030405060708090a0b0c0d0e0f";
        assert_eq!(Key::from_hex(text).unwrap().to_hex(), text);
        for wrong in ["", "00", &text[1..], &format!("{text}0"), &"g".repeat(32)] {
            assert!(Key::from_hex(wrong).is_none(), "{wrong}");
        }
        assert!(!format!("{:?}", Key::from_hex(text)).contains("0102"));
    }

    #[test]
    fn a_proof_holds_for_one_role_client_exchange_and_pool() {
        let (a, b) = ([1; 16], [2; 16]);
        let proof = server_proof(&KEY, 1, &a, &b, "10.0.0.0/8");
        assert!(same(&proof, &server_proof(&KEY, 1, &a, &b, "10.0.0.0/8")));
        for other in [
            server_proof(&KEY, 1, &a, &b, "10.0.0.0/7"),
            server_proof(&KEY, 2, &a, &b, "10.0.0.0/8"),
            server_proof(&KEY, 1, &b, &a, "10.0.0.0/8"),
            server_proof(&Key([9; 16]), 1, &a, &b, "10.0.0.0/8"),
            client_proof(&KEY, 1, &a, &b),
        ] {
            assert!(!same(&proof, &other));
        }
    }

    #[test]
    fn stamps_come_back_and_strangers_have_none() {
        let stamps = Stamps::new(&KEY);
        let stamp = Stamp {
            client: 1,
            answer: 512,
            answers: 64,
            dscp: 46,
            sequence: u32::MAX,
        };
        let bytes = stamps.encode(stamp);
        assert_eq!(stamps.decode(&bytes), Some(stamp));
        assert_eq!(Stamps::new(&Key([8; 16])).decode(&bytes), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_a_message_or_none(bytes in proptest::array::uniform32(any::<u8>()), tail in proptest::array::uniform16(any::<u8>())) {
            let mut message = [0; HEADER];
            message[..32].copy_from_slice(&bytes);
            message[32..].copy_from_slice(&tail);
            for magic in [false, true] {
                if magic {
                    message[..4].copy_from_slice(&MAGIC);
                }
                let read = Message::decode(&message, &KEY);
                // Nothing decodes to a request without the key.
                prop_assert!(!matches!(read, Some(Message::Request(_))));
            }
        }
    }
}
