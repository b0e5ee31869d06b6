//! The single pass over the packets.

use swell_base::{Direction, Warning};
use swell_capture::{Packet, Tcp as Header, Transport};
use swell_traffic::{Thinner, Totals};

use crate::addresses::groups;
use crate::clock::Clock;
use crate::counts::Counts;
use crate::fragments::Fragments;
use crate::hosts::{Hosts, Sample};
use crate::load::Bins;
use crate::options::Options;
use crate::ports::{class, quic, server_first};
use crate::queue::Passing;
use crate::repeats::Repeats;
use crate::superpackets::LARGEST_PACKET;
use crate::table::{Asked, Key, Slot, State, Table, key};
use crate::tcp::Tracked;
use crate::together::Together;
use crate::udp::{Around, Flow as UdpFlow};
use crate::users::{Delays, Users};

mod close;

use close::LINGER;

/// Largest UDP payload over IPv4 (RFC 768, RFC 791).
const MAX_DATAGRAM: u32 = 65_507;

/// Idle time after which a UDP flow ends: a minute.
pub(crate) const UDP_IDLE: u64 = 60_000_000_000;

/// Learns a model from packets in one pass.
#[derive(Debug)]
pub struct Learner {
    pub(crate) options: Options,
    preview: Vec<Packet>,
    pub(crate) previewing: bool,
    pub(crate) clock: Clock,
    pub(crate) repeats: Repeats,
    fragments: Fragments,
    /// A packet stamped far ahead of the packets before it, held until the next one confirms its time.
    pub(crate) leapt: Option<Box<Packet>>,
    pub(crate) now: u64,
    pub(crate) table: Table,
    turn: u8,
    pub(crate) hosts: Hosts,
    pub(crate) users: Users,
    pub(crate) thinner: Thinner<Delays>,
    pub(crate) bins: Bins,
    pub(crate) passing: Passing,
    /// Bytes that pass, and that arrive beyond the tap, by direction.
    pub(crate) together: [[Together; 2]; 2],
    pub(crate) totals: Totals,
    pub(crate) counts: Counts,
    pub(crate) doubts: Vec<Warning>,
    /// Number of items that long connections and flows have got beyond those of every one.
    pub(crate) granted: usize,
}

impl Learner {
    /// Creates a learner that has seen no packets.
    pub fn new(options: Options) -> Learner {
        let p = options.parameters;
        // Thinning and cutting would make one session's data depend on other sessions.
        let budget = if options.apart {
            usize::MAX
        } else {
            options.budget
        };
        let mut hosts = Hosts::new(options.inside.clone());
        if options.preview == 0 {
            hosts.decide();
        }
        Learner {
            preview: Vec::new(),
            previewing: options.preview > 0,
            clock: Clock::default(),
            repeats: Repeats::new(),
            fragments: Fragments::default(),
            leapt: None,
            now: 0,
            table: Table::new(),
            turn: 0,
            hosts,
            users: Users::new(p.group_timeout, p.session_timeout, budget),
            thinner: Thinner::with_notes(budget, 0),
            bins: Bins::new(),
            passing: Passing::default(),
            together: Default::default(),
            totals: Totals::default(),
            counts: Counts::default(),
            doubts: Vec::new(),
            granted: 0,
            options,
        }
    }

    /// The same with sides that were decided by more than this learner's packets.
    pub(crate) fn with_sides(options: Options, hosts: Hosts) -> Learner {
        Learner {
            hosts,
            ..Learner::new(options)
        }
    }

    /// Takes the next packet of the capture.
    #[inline]
    pub fn push(&mut self, packet: &Packet) {
        if self.repeats.again(packet) {
            return;
        }
        // What waits, and for how long, depends on other sessions' fragments.
        if self.options.apart || self.fragments.idle(packet) {
            self.accept(packet);
        } else {
            self.gather(packet);
        }
    }

    /// Gives fragments the transport header of the first of their datagram.
    #[cold]
    fn gather(&mut self, packet: &Packet) {
        let mut fragments = std::mem::take(&mut self.fragments);
        fragments.push(packet, &mut |p| self.accept(p));
        self.fragments = fragments;
    }

    #[inline]
    fn accept(&mut self, packet: &Packet) {
        if !self.previewing {
            return self.process(packet);
        }
        self.look(packet);
        self.preview.push(*packet);
        if self.preview.len() >= self.options.preview {
            self.end_preview();
        }
    }

    /// Adds a warning that only the caller can know of, such as packets skipped by the reader.
    pub fn doubt(&mut self, warning: Warning) {
        self.doubts.push(warning);
    }

    /// Number of open connections and flows. Memory grows with it.
    pub fn open(&self) -> usize {
        self.table.len()
    }

    /// Collects evidence about sides from a packet.
    fn look(&mut self, p: &Packet) {
        self.clock.ticks(p.time);
        match groups(p) {
            [false, true] => {
                let from = self.hosts.id(p.src);
                return self.hosts.see_sender(p, from);
            }
            [false, false] if p.src != p.dst => {}
            _ => return,
        }
        let (a, b) = (self.hosts.id(p.src), self.hosts.id(p.dst));
        match &p.transport {
            Transport::Tcp(h) => {
                self.hosts.flow(p, a, b);
                self.hosts.handshake(a, b, h);
            }
            Transport::Udp { .. } => self.hosts.flow(p, a, b),
            _ => self.hosts.other(p, a, b),
        }
    }

    /// Takes the fragments that have waited for their first in vain.
    pub(crate) fn end_fragments(&mut self) {
        for p in self.fragments.finish() {
            self.accept(&p);
        }
    }

    pub(crate) fn end_preview(&mut self) {
        self.hosts.decide();
        // Each flow counts its own conflicts later; do not count them twice.
        self.hosts.conflicts = 0;
        self.previewing = false;
        for p in std::mem::take(&mut self.preview) {
            self.process(&p);
        }
    }

    #[inline]
    fn process(&mut self, p: &Packet) {
        if self.leapt.is_some() || self.clock.leaps(p.time) {
            self.doubtful(p);
        } else {
            self.take(p);
        }
    }

    /// Holds back a packet stamped far ahead until the next packet confirms or refutes its time.
    #[cold]
    fn doubtful(&mut self, p: &Packet) {
        match self.leapt.take() {
            Some(mut leapt) => {
                if self.clock.far_off(leapt.time, p.time) {
                    leapt.time = self.clock.stamp();
                }
                self.take(&leapt);
                self.process(p);
            }
            None => self.leapt = Some(Box::new(*p)),
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, p: &Packet) {
        self.clock.advance(p.time);
        self.now = self.clock.now();
        let left = match &p.transport {
            Transport::Tcp(h) => self.tcp(p, h),
            &Transport::Udp {
                src_port,
                dst_port,
                payload,
            } => self.udp(p, src_port, dst_port, payload),
            other => self.unmodelled(p, other),
        };
        let direction = Direction::of(!left);
        self.totals.packets[direction] += 1;
        self.totals.bytes[direction] += u64::from(p.ip_len);
        self.bins.add(self.now, direction, p.ip_len);
        // One packet in four checks for idle flows and users. That is enough: no result depends on when
        // exactly the idle time is noticed.
        self.turn = self.turn.wrapping_add(1);
        if self.turn.is_multiple_of(4) {
            self.sweep();
            let thinner = &mut self.thinner;
            self.users
                .tick(self.now, &mut |s, d| thinner.push_with(s, d));
        }
    }

    fn unmodelled(&mut self, p: &Packet, transport: &Transport) -> bool {
        self.totals.unmodelled_packets += 1;
        self.totals.unmodelled_bytes += u64::from(p.ip_len);
        let left = self.unmodelled_left(p);
        self.counts.unmodelled[usize::from(!left)] += u64::from(p.ip_len);
        match transport {
            Transport::Icmp => self.counts.icmp += 1,
            Transport::Fragment => self.counts.fragments += 1,
            Transport::Truncated(_) => self.counts.truncated += 1,
            _ => self.counts.other += 1,
        }
        left
    }

    /// Whether a packet without a flow goes left to right.
    fn unmodelled_left(&mut self, p: &Packet) -> bool {
        match groups(p) {
            [true, true] => true,
            [true, false] => {
                let to = self.hosts.id(p.dst);
                !self.hosts.inside(to, false)
            }
            [false, true] => {
                let from = self.hosts.id(p.src);
                self.hosts.see_sender(p, from);
                let inside = self.hosts.sender(from);
                self.hosts.sent(from, p.ip_len);
                inside
            }
            [false, false] => {
                let (from, to) = (self.hosts.id(p.src), self.hosts.id(p.dst));
                if from != to {
                    self.hosts.other(p, from, to);
                }
                let outward = self.hosts.outward(from, to);
                self.hosts.sent(from, p.ip_len);
                outward.unwrap_or_else(|| self.hosts.inside(from, true))
            }
        }
    }

    /// Returns whether the packet goes left to right.
    #[inline]
    fn tcp(&mut self, p: &Packet, h: &Header) -> bool {
        let (key, from_a) = key(p, h.src_port, h.dst_port, false);
        let mut slot = self.table.find(&key);
        // Whether the connection has timed out must not depend on when `sweep` last visited its slot.
        if let Some(i) = slot
            && self.now.saturating_sub(self.table.get(i).last) > LINGER
        {
            self.look_after(i);
            // If it was closed just now, its ports may have been remembered long enough, too.
            self.look_after(i);
            slot = self.table.find(&key);
        }
        let syn = h.has(Header::SYN) && !h.has(Header::ACK);
        let mut from_client = None;
        if let Some(i) = slot {
            let s = self.table.get(i);
            let from = usize::from(from_a != s.client_is_a);
            let other_numbers = |isn: Option<u32>| syn && isn != Some(h.seq);
            let reused = match &s.state {
                State::Asked(a) => other_numbers(Some(a.header.seq)) && s.client_is_a == from_a,
                State::Tcp(t) => {
                    other_numbers(t.client_isn())
                        // A SYN from the other end of a live connection is no reuse.
                        && (t.closed() || s.client_is_a == from_a)
                }
                State::Closed(ended) => other_numbers(ended.isn) || ended.goes_on(from, h),
                _ => false,
            };
            if reused {
                from_client = Some(from == 0);
                self.close(i);
                self.table.release(i);
                slot = None;
            }
        }
        let i = match slot {
            Some(i) => i,
            None => {
                let i = self.open_tcp(p, h, key, from_a, from_client);
                if syn {
                    return from_a == self.table.get(i).a_is_left;
                }
                i
            }
        };
        let spare = self.spare();
        let s = self.table.get_mut(i);
        let left = from_a == s.a_is_left;
        if let State::Asked(asked) = &s.state {
            let tracked = asked.tracked(self.options.parameters.quiet.as_nanos());
            s.state = State::Tcp(Box::new(tracked));
        }
        let State::Tcp(t) = &mut s.state else {
            self.counts.stragglers += 1;
            self.counts.straggler_bytes += u64::from(p.ip_len);
            return left;
        };
        s.last = self.now;
        if let Some(place) = s.place
            && t.overtaken.is_none()
            && !self.users.current(place)
        {
            t.overtaken = Some(t.progress());
        }
        t.least_gap = self.clock.least_gap();
        let from = usize::from(from_a != s.client_is_a);
        t.passed = self.hosts.passed(s.hosts[from], s.hosts[1 - from]);
        self.hosts.large(s.hosts[from], p.ip_len, self.now);
        let quiet = self.options.parameters.quiet.as_nanos();
        t.chunks.spare = spare;
        let before = t.chunks.granted();
        let observed = t.packet(from, self.now, p.ip_len, h, quiet);
        self.granted += t.chunks.granted() - before;
        s.closed = t.closed();
        let (hosts, place) = (s.hosts, s.place);
        if observed.active
            && let Some(place) = place
        {
            self.users.active(place, self.now);
        }
        self.passing
            .add(self.now, usize::from(!left), observed.sent, observed.lost);
        if let Some((end, handshake, rtt)) = observed.rtt {
            let kind = if handshake {
                Sample::Handshake
            } else {
                Sample::Data
            };
            self.hosts.sample(hosts[end], kind, rtt / 1000, self.now);
        }
        if let (Some(place), Some(due)) = (place, observed.answered(from)) {
            self.users.answered(place, due, self.now);
        }
        self.hosts
            .delivered(hosts[from], observed.delivered, self.now);
        if !self.options.apart {
            let [own, other] = [hosts[from], hosts[1 - from]];
            let way = usize::from(!left);
            self.together[0][way].add(self.now, [own, other], u64::from(p.ip_len));
            if observed.delivered > 0 {
                // With the headers of full packets, which are a twenty-fifth of them.
                let bytes = observed.delivered + observed.delivered / 25;
                self.together[1][1 - way].add(self.now, [own, other], bytes);
            }
        }
        if let Some((rtt, weight)) = observed.bulk {
            for _ in 0..weight {
                (self.hosts).sample(hosts[from], Sample::Bulk, rtt / 1000, self.now);
            }
        }
        if let Some(rtt) = observed.sending {
            (self.hosts).sample(hosts[from], Sample::Sending, rtt / 1000, self.now);
        }
        let kinds = [Sample::LostUp, Sample::LostDown].into_iter();
        for ((kind, waited), lost) in kinds.zip(observed.waited).zip(observed.lost) {
            if let Some((waited, at)) = waited {
                for _ in 0..lost {
                    (self.hosts).sample(hosts[from], kind, waited / 1000, at);
                }
            }
        }
        if let Some(rate) = observed.up {
            self.hosts.sample(hosts[from], Sample::Up, rate, self.now);
        }
        if let Some(rate) = observed.down {
            self.hosts.sample(hosts[from], Sample::Down, rate, self.now);
        }
        left
    }

    /// Opens a connection at its first packet. `from_client`: whether the sender was the client of a connection
    /// before it on the same ports, if there was one.
    fn open_tcp(
        &mut self,
        p: &Packet,
        h: &Header,
        key: Key,
        from_a: bool,
        from_client: Option<bool>,
    ) -> u32 {
        let client_sent = match (h.has(Header::SYN), h.has(Header::ACK)) {
            (true, false) => true,
            (true, true) => false,
            _ => from_client.unwrap_or_else(|| {
                let source_is_server = server_first(false, h.src_port, h.dst_port);
                !source_is_server.unwrap_or(false)
            }),
        };
        let i = self.open_slot(p, key, from_a, client_sent);
        let (client_port, server_port) = if client_sent {
            (h.src_port, h.dst_port)
        } else {
            (h.dst_port, h.src_port)
        };
        let s = self.table.get_mut(i);
        s.state = if client_sent && h.has(Header::SYN) {
            State::Asked(Box::new(Asked {
                at: self.now,
                ip_len: p.ip_len,
                header: *h,
            }))
        } else {
            State::Tcp(Box::new(Tracked::new(self.now)))
        };
        self.totals.tcp_connections += 1;
        self.begin(i, class(false, client_port, server_port));
        i
    }

    fn udp(&mut self, p: &Packet, src_port: u16, dst_port: u16, payload: u32) -> bool {
        let (key, from_a) = key(p, src_port, dst_port, true);
        let mut slot = self.table.find(&key);
        if let Some(i) = slot
            && self.now.saturating_sub(self.table.get(i).last) > UDP_IDLE
        {
            self.close(i);
            self.table.release(i);
            slot = None;
        }
        let i = match slot {
            Some(i) => i,
            None => {
                let client_sent = match server_first(true, src_port, dst_port) {
                    Some(source_is_server) => !source_is_server,
                    None => true,
                };
                let i = self.open_slot(p, key, from_a, client_sent);
                let (client_port, server_port) = if client_sent {
                    (src_port, dst_port)
                } else {
                    (dst_port, src_port)
                };
                let class = class(true, client_port, server_port);
                let begins = self.now > UDP_IDLE;
                let flow = UdpFlow::new(self.now, quic(class).then_some(begins));
                self.table.get_mut(i).state = State::Udp(Box::new(flow));
                self.totals.udp_flows += 1;
                self.begin(i, class);
                i
            }
        };
        let spare = self.spare();
        let s = self.table.get_mut(i);
        s.last = self.now;
        let from = usize::from(from_a != s.client_is_a);
        let around = Around {
            ip_len: p.ip_len,
            passed: self.hosts.passed(s.hosts[from], s.hosts[1 - from]),
            least_gap: self.clock.least_gap(),
            spare,
        };
        self.hosts.large(s.hosts[from], p.ip_len, self.now);
        if groups(p)[1] {
            self.hosts.sent(s.hosts[from], p.ip_len);
        }
        if p.ip_len > LARGEST_PACKET {
            self.counts.joined += u64::from(payload);
        }
        if !self.options.apart {
            let [own, other] = [s.hosts[from], s.hosts[1 - from]];
            let way = usize::from(from_a != s.a_is_left);
            for (together, ends) in (self.together.iter_mut()).zip([[own, other], [other, own]]) {
                together[way].add(self.now, ends, u64::from(p.ip_len));
            }
        }
        if let State::Udp(flow) = &mut s.state {
            if let Some(place) = s.place
                && flow.overtaken.is_none()
                && !self.users.current(place)
            {
                flow.overtaken = Some(flow.progress());
            }
            let quiet = self.options.parameters.quiet.as_nanos();
            // Models hold no larger datagrams. Only a jumbogram or a forged length exceeds this.
            let payload = payload.min(MAX_DATAGRAM);
            let before = flow.granted();
            flow.push(self.now, from_a == s.client_is_a, payload, quiet, around);
            self.granted += flow.granted() - before;
            if let Some(place) = s.place
                && flow.active() == self.now
            {
                self.users.active(place, self.now);
            }
        }
        from_a == s.a_is_left
    }

    /// Number of items that long connections and flows may still get: with those they have, half of the model at most,
    /// and nothing that its sessions take. Where sessions must not depend on each other, there are none.
    #[inline]
    fn spare(&self) -> usize {
        if self.options.apart {
            return 0;
        }
        let taken = self.thinner.items() + self.users.items + self.granted;
        (self.options.budget / 2).saturating_sub(taken)
    }

    fn open_slot(&mut self, p: &Packet, key: Key, from_a: bool, client_sent: bool) -> u32 {
        // Two slots are checked for each new one, so idle flows are found in time even if most flows have
        // only one packet.
        self.sweep();
        self.sweep();
        let (src, dst) = (self.hosts.id(p.src), self.hosts.id(p.dst));
        let [from_group, to_group] = groups(p);
        if from_group || to_group || src == dst {
            self.counts.group_flows += 1;
        } else {
            self.hosts.flow(p, src, dst);
        }
        let source_is_left = if from_group {
            !self.hosts.inside(dst, false)
        } else if to_group {
            self.hosts.see_sender(p, src);
            self.hosts.sender(src)
        } else {
            self.hosts.inside(src, client_sent)
        };
        let slot = Slot {
            key,
            state: State::Free,
            last: self.now,
            closed: false,
            client_is_a: from_a == client_sent,
            a_is_left: from_a == source_is_left,
            hosts: if client_sent { [src, dst] } else { [dst, src] },
            place: None,
        };
        self.table.insert(slot)
    }

    fn begin(&mut self, slot: u32, class: u8) {
        let client = self.table.get(slot).hosts[0];
        let thinner = &mut self.thinner;
        let place = self
            .users
            .begin(client, class, self.now, &mut |s, d| thinner.push_with(s, d));
        if self.options.apart {
            let serial = self.users.serial(place);
            let hosts = self.table.get(slot).hosts;
            let apart = hosts.map(|host| self.hosts.apart(serial, host));
            self.table.get_mut(slot).hosts = apart;
            self.users.measured(place, apart[0]);
        }
        self.table.get_mut(slot).place = Some(place);
    }

    /// Checks the next slot for idleness, round-robin.
    #[inline]
    fn sweep(&mut self) {
        if let Some(i) = self.table.turn() {
            self.look_after(i);
        }
    }
}
