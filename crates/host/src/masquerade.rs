//! Rules of nftables (linux/netfilter/nf_tables.h) for a gateway, by netlink(7), so that no external tool is needed.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

// linux/netlink.h and linux/netfilter/nfnetlink.h.
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;
const ERROR: u16 = 2;
const BEGIN: u16 = 16;
const END: u16 = 17;
const NFTABLES: u16 = 10;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;

// linux/netfilter.h.
const IPV4: u8 = 2;
const LOCAL_IN: u32 = 1;
const FORWARD: u32 = 2;
const POST_ROUTING: u32 = 4;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

const NEW_TABLE: u16 = 0;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;

// Keys and operands of expressions.
const VERDICT: u32 = 0;
const REGISTER: u32 = 1;
const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;
const INPUT_DEVICE: u32 = 4;
const OUTPUT_DEVICE: u32 = 5;
const STATE: u32 = 0;
/// Bits of `ct state`: established and related.
const KNOWN: u32 = 2 | 4;

/// The name of the table.
const TABLE: &[u8] = b"swell\0";

/// Lets the calling thread's network namespace forward what comes in by `inside`, and what belongs to connections that
/// began there. Packets that leave by `outside` get its address. Nothing else is forwarded, and nothing else from
/// outside is received.
///
/// # Errors
/// If the kernel lacks nftables or address translation, or refuses a rule.
pub fn masquerade(inside: u32, outside: u32) -> io::Result<()> {
    let from_inside = || [device(INPUT_DEVICE, inside), verdict(ACCEPT)].concat();
    let of_known = || [known(), verdict(ACCEPT)].concat();
    let leaving = [device(OUTPUT_DEVICE, outside), expression(b"masq\0", &[])].concat();
    send(&[
        (NEW_TABLE, text(1, TABLE)),
        chain(b"forward\0", b"filter\0", FORWARD, 0, DROP),
        rule(b"forward\0", &from_inside()),
        rule(b"forward\0", &of_known()),
        chain(b"input\0", b"filter\0", LOCAL_IN, 0, DROP),
        rule(b"input\0", &from_inside()),
        rule(b"input\0", &of_known()),
        chain(b"postrouting\0", b"nat\0", POST_ROUTING, 100, ACCEPT),
        rule(b"postrouting\0", &leaving),
    ])
}

/// Sends requests as one transaction: the kernel accepts all or none.
fn send(requests: &[(u16, Vec<u8>)]) -> io::Result<()> {
    let mut bytes = message(BEGIN, REQUEST, 0, &[]);
    for (i, (kind, attributes)) in requests.iter().enumerate() {
        let flags = REQUEST | ACK | CREATE | if *kind == NEW_RULE { APPEND } else { 0 };
        bytes.extend(message(
            NFTABLES << 8 | kind,
            flags,
            i as u32 + 1,
            attributes,
        ));
    }
    bytes.extend(message(END, REQUEST, 0, &[]));
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // The kernel answers before it returns from the call, so an answer that is not there never comes.
    socket.set_non_blocking(true)?;
    socket.send(&bytes, 0)?;
    let mut accepted = 0;
    while accepted < requests.len() {
        let (answers, _) = socket.recv_from_full()?;
        let mut rest = answers.as_slice();
        while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
            let [l0, l1, l2, l3, k0, k1, ..] = *header;
            let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
            if u16::from_ne_bytes([k0, k1]) == ERROR
                && let Some(code) = after.first_chunk()
            {
                match i32::from_ne_bytes(*code) {
                    0 => accepted += 1,
                    code => return Err(io::Error::from_raw_os_error(-code)),
                }
            }
            rest = rest
                .get(length.max(HEADER).next_multiple_of(4)..)
                .unwrap_or_default();
        }
    }
    Ok(())
}

/// A message with the header of netfilter's subsystems.
fn message(kind: u16, flags: u16, sequence: u32, attributes: &[u8]) -> Vec<u8> {
    let family = if matches!(kind, BEGIN | END) { 0 } else { IPV4 };
    let length = HEADER + 4 + attributes.len();
    let mut bytes = (length as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend([family, 0]);
    let resource = if family == 0 { NFTABLES } else { 0 };
    bytes.extend(resource.to_be_bytes());
    bytes.extend(attributes);
    bytes
}

/// A chain of the table that is called at a hook.
fn chain(name: &[u8], kind: &[u8], hook: u32, priority: u32, policy: u32) -> (u16, Vec<u8>) {
    let place = [number(1, hook), number(2, priority)].concat();
    let attributes = [
        text(1, TABLE),
        text(3, name),
        nested(4, &place),
        number(5, policy),
        text(7, kind),
    ];
    (NEW_CHAIN, attributes.concat())
}

/// A rule at the end of a chain.
fn rule(chain: &[u8], expressions: &[u8]) -> (u16, Vec<u8>) {
    let attributes = [text(1, TABLE), text(2, chain), nested(4, expressions)];
    (NEW_RULE, attributes.concat())
}

/// Continues with packets of this device.
fn device(key: u32, index: u32) -> Vec<u8> {
    let load = [number(1, REGISTER), number(2, key)].concat();
    [expression(b"meta\0", &load), compare(EQUAL, index)].concat()
}

/// Continues with packets of connections that are known.
fn known() -> Vec<u8> {
    let load = [number(1, REGISTER), number(2, STATE)].concat();
    let bits = [
        number(1, REGISTER),
        number(2, REGISTER),
        number(3, 4),
        nested(4, &value(KNOWN)),
        nested(5, &value(0)),
    ];
    [
        expression(b"ct\0", &load),
        expression(b"bitwise\0", &bits.concat()),
        compare(UNEQUAL, 0),
    ]
    .concat()
}

fn compare(how: u32, with: u32) -> Vec<u8> {
    let parts = [number(1, REGISTER), number(2, how), nested(3, &value(with))];
    expression(b"cmp\0", &parts.concat())
}

fn verdict(code: u32) -> Vec<u8> {
    let data = nested(2, &number(1, code));
    let parts = [number(1, VERDICT), nested(2, &data)];
    expression(b"immediate\0", &parts.concat())
}

fn expression(name: &[u8], data: &[u8]) -> Vec<u8> {
    nested(1, &[text(1, name), nested(2, data)].concat())
}

/// The content of a register. Registers are in the machine's byte order, unlike attributes.
fn value(content: u32) -> Vec<u8> {
    attribute(1, &content.to_ne_bytes())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

/// An attribute with a string, which ends with a zero byte.
fn text(kind: u16, value: &[u8]) -> Vec<u8> {
    attribute(kind, value)
}

fn nested(kind: u16, content: &[u8]) -> Vec<u8> {
    attribute(kind | NESTED, content)
}

/// `struct nlattr` and its content, padded to whole words.
fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + content.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `nft add rule` encodes `iif 3 accept`, without the names of table and chain.
    #[test]
    fn attributes_are_nested_and_padded() {
        assert_eq!(attribute(1, b"ct\0"), [7, 0, 1, 0, b'c', b't', 0, 0]);
        assert_eq!(number(5, 1), [8, 0, 5, 0, 0, 0, 0, 1]);
        let rule = [device(INPUT_DEVICE, 3), verdict(ACCEPT)].concat();
        // Three expressions, each a list element that says its own length.
        let mut lengths = Vec::new();
        let mut rest = rule.as_slice();
        while let [l0, l1, kind, flags, ..] = *rest {
            assert_eq!([kind, flags], [1, 0x80]);
            let length = usize::from(u16::from_ne_bytes([l0, l1]));
            lengths.push(length);
            rest = &rest[length..];
        }
        assert_eq!(lengths, [36, 44, 48]);
    }
}
