"""Experiments as typed values that an editor completes.

Each class is a table of an experiment file; what is not given is left to the program's defaults.

```python
from groundswell import build as b

experiment = b.Experiment(
    name="mine",
    network=b.Network(rate="20Mbit", delay="10ms", queue="1BDP"),
    foreground=[b.WebForeground(name="web", object="1MB")],
    background=[
        b.NoneBackground(name="none"),
        b.LearntBackground(name="learnt", model="access-link", rate="10Mbit"),
        b.PoissonBackground(name="poisson", rate="match:learnt"),
    ],
    run=b.Run(replications=5, warmup="20s", duration="80s"),
)
print(experiment.to_toml().splitlines()[0])
```
```output
name = "mine"
```

Made by scripts/python-types from `swell schema`: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from groundswell._table import Table

__all__ = [
    "Active",
    "Adaptation",
    "BackendKind",
    "Background",
    "Better",
    "Bytes",
    "CablePreset",
    "CampusPreset",
    "CbrBackground",
    "CbrForeground",
    "Change",
    "Choice",
    "ChokeQdisc",
    "Client",
    "Codec",
    "CodelQdisc",
    "CommandLine",
    "CongestionControl",
    "ConnectionUse",
    "DashForeground",
    "Delays",
    "Deliveries",
    "DeliveriesSpec",
    "Directions",
    "DrrClasses",
    "DrrQdisc",
    "Dur",
    "Energy",
    "Experiment",
    "Exporter",
    "FifoQdisc",
    "FlowProfile",
    "Foreground",
    "FqCodelQdisc",
    "GilbertElliottLoss",
    "GreedyBackground",
    "GreedyForeground",
    "ImitationBackground",
    "Independence",
    "IndependentLoss",
    "Keep",
    "LeafSpinePreset",
    "LearntBackground",
    "LinkOverrides",
    "LoadBasis",
    "Loss",
    "Measure",
    "Measure2",
    "MixBackground",
    "NamedLink",
    "Network",
    "NoneBackground",
    "NoneForeground",
    "NoneLoss",
    "Objects",
    "OnOffBackground",
    "OnOffForeground",
    "OutagePackets",
    "PageBackground",
    "PageForeground",
    "Pairing",
    "ParkingLotPreset",
    "Peer",
    "PeerLink",
    "PieDelay",
    "PieQdisc",
    "PoissonBackground",
    "PoissonForeground",
    "Preset",
    "PresetSpec",
    "PriorityQdisc",
    "ProbeForeground",
    "ProgramForeground",
    "Protocol",
    "Qdisc",
    "QdiscSpec",
    "QueueLimit",
    "Rate",
    "RateSpec",
    "RedQdisc",
    "RedSet",
    "ReplayBackground",
    "ReplayForeground",
    "Reported",
    "ResidentialPreset",
    "Run",
    "Server",
    "SessionsBackground",
    "Side",
    "Size",
    "Spacing",
    "Stack",
    "StreamForeground",
    "SwarmBackground",
    "SwarmForeground",
    "TcpProfile",
    "TcpSettings",
    "Tool",
    "Transport",
    "Vegas",
    "Victim",
    "VoiceBackground",
    "VoiceForeground",
    "WebBackground",
    "WebForeground",
    "Weight",
    "WeightRule",
]

BackendKind: TypeAlias = Literal[
    "simulated",
    "emulated",
]
"""What runs an experiment. `simulated`: Everything is simulated, in virtual time. `emulated`: The
network and the background are, against the wall clock; the applications under study are real
programs on real TCP."""

Better: TypeAlias = Literal[
    "lower",
    "higher",
]
"""Which direction of a measure is better. `lower`: Less is better: durations, delays, losses.
`higher`: More is better: rates."""

Bytes: TypeAlias = "str"
"""Such as "1MB"."""

Choice: TypeAlias = Literal[
    "bba",
    "bola",
    "throughput",
]
"""How a player chooses bitrates. `bba`: By how much is buffered: BBA-0 (Huang et al., SIGCOMM 2014).
`bola`: By how much is buffered: BOLA (Spiteri et al., INFOCOM 2016). `throughput`: By how fast the
last segments came (Jiang et al., CoNEXT 2012)."""

Codec: TypeAlias = Literal[
    "g711",
    "g711-plain",
    "g729a",
]
"""A codec of speech. `g711`: 64 kbit/s, lost packets concealed (ITU-T G.711 appendix I). `g711-plain`:
64 kbit/s, lost packets silent. `g729a`: 8 kbit/s (ITU-T G.729 annex A)."""

CommandLine: TypeAlias = "str | Sequence[str]"
"""A command: a string for the shell (`/bin/sh -c`), or a list of a program and its arguments."""

CongestionControl: TypeAlias = Literal[
    "cubic",
    "newreno",
    "reno",
    "vegas",
    "westwood",
    "bbr",
    "ledbat",
    "ledbat++",
    "lp",
    "nice",
]
"""How the congestion window moves and, without SACK, how losses are repaired. `cubic`: CUBIC (RFC
9438). Without SACK losses are repaired as by NewReno. `newreno`: NewReno (RFC 5681). Without SACK
fast recovery repairs one hole per round trip (RFC 6582). `reno`: Reno (RFC 5681). Without SACK the
first new acknowledgement ends fast recovery. `vegas`: Vegas (Brakmo and Peterson 1995), as in ns-2
(`tcp/tcp-vegas.cc`): always with ns-2's sender, whatever is said of SACK. `westwood`: Westwood+
(Grieco and Mascolo 2004). `bbr`: BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00).
Paced; it wants SACK. `ledbat`: LEDBAT (RFC 6817): less than best effort, by one-way delay.
`ledbat++`: LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-01): less than best effort, by round-trip
time. `lp`: TCP-LP (Kuzmanovic and Knightly 2003): less than best effort, by one-way delay. `nice`:
TCP Nice (Venkataramani, Kokku and Dahlin 2002): less than best effort, by round-trip time."""

ConnectionUse: TypeAlias = Literal[
    "new",
    "kept",
]
"""Whether each request opens a connection. `new`: A new connection per request. `kept`: One connection
per client, kept."""

Delays: TypeAlias = "Dur | Sequence[Dur] | Mapping[str, str]"
"""Delays of connections."""

DeliveriesSpec: TypeAlias = "str | Deliveries"
"""Either the path of a delivery trace, or a table with its `file` and what else differs."""

Directions: TypeAlias = Literal[
    "up",
    "down",
    "both",
]
"""One direction of the bottleneck, or both. `up`: Left to right: away from the clients. `down`: Right
to left: towards the clients. `both`: Up and down."""

DrrClasses: TypeAlias = Literal[
    "flow",
    "traffic",
]
"""Which packets share a queue. `flow`: Those of a flow, by a hash: a few flows may meet in one queue.
`traffic`: Those of the applications under study in one queue, those of the background in another."""

Dur: TypeAlias = "str"
"""Such as "25ms"."""

FlowProfile: TypeAlias = Literal[
    "fixed",
    "harpoon",
]
"""Which arithmetic made a model and plays it. `fixed`: As the paper intends. `harpoon`: As the
released program (2005) does, faults included."""

Independence: TypeAlias = Literal[
    "response-on-request",
    "size-on-class",
    "think-on-size",
    "path-on-user",
    "within-session",
    "capacity-on-rtt",
]
"""A dependency of the joint distribution. To remove it, a quantity is permuted across the model, so
that its marginal distribution is unchanged: exactly, or in a thinned model on average over seeds.
`response-on-request`: Response size on request size: responses are permuted within their class.
`size-on-class`: Sizes on class: (request, response) pairs are permuted across all classes with
turns, QUIC included. `think-on-size`: Think times on sizes: those of servers and those of users are
permuted within their class. `path-on-user`: Client path on user and server path on connection:
paths are permuted. `within-session`: Exchanges of a session on each other: whole exchanges are
permuted within their class. `capacity-on-rtt`: Path capacity and loss on RTT: they are permuted
among the paths of a side."""

LoadBasis: TypeAlias = Literal[
    "offered",
    "carried",
]
"""What a rate is the rate of. `offered`: What its sources send into the network, whatever becomes of
it. `carried`: What leaves the bottleneck when the background is alone."""

Measure: TypeAlias = Literal[
    "packets",
    "bytes",
]
"""What RED averages. `packets`: Packets waiting. `bytes`: Bytes waiting."""

Measure2: TypeAlias = Literal[
    "requests",
    "connections",
    "runs",
]
"""What of a program is measured. `requests`: Each request inside the client's connections and datagram
flows, as changes of direction in the packets show it: from the first byte asked to the last byte
answered. The first of a connection includes the opening. The program needs no instruments, and
encryption is no obstacle; requests that overlap in one connection count as one. Runs of the client
where there is no request. `connections`: Each TCP connection that the client opens: from its SYN to
the last byte from the server, as the packets show them. `runs`: Each run of the client: from its
start to its end. It has failed if its exit status is not 0."""

Objects: TypeAlias = "Bytes | Sequence[Bytes]"
"""A size such as "1MB", or a list of sizes taken in turn."""

OutagePackets: TypeAlias = Literal[
    "wait",
    "lost",
]
"""What becomes of packets during an outage. `wait`: The transmitter stands still, and they wait.
`lost`: They are transmitted and lost."""

Pairing: TypeAlias = Literal[
    "mean",
    "per-seed",
]
"""Which of another background's rates are matched. `mean`: The mean over all replications. `per-seed`:
Those of the replication with the same seed."""

PieDelay: TypeAlias = Literal[
    "timestamps",
    "departure-rate",
]
"""How PIE measures the delay (RFC 8033 sections 4.3 and 5.2). `timestamps`: The waiting time of the
packet that was dequeued last; zero if the queue is empty. `departure-rate`: Little's law: backlog
over departure rate. The rate is measured over 16 KiB at a time and averaged with weight 1/8."""

PresetSpec: TypeAlias = 'Literal["parking-lot", "residential", "cable", "campus", "leaf-spine"] | Preset'
"""Either the name of a network, or a table with its `kind` and what else differs."""

Protocol: TypeAlias = Literal[
    "http1",
    "http2",
    "http3",
]
"""How connections are used. `http1`: HTTP/1.1: a request waits until a connection has nothing else to
do. `http2`: HTTP/2: one TCP connection to each host, with streams. A loss delays all that was sent
after it. `http3`: HTTP/3: one QUIC connection to each host, with streams. A loss delays only the
streams whose data was lost. Simulated only."""

QdiscSpec: TypeAlias = 'Literal["fifo", "red", "priority", "drr", "codel", "fq-codel", "pie", "choke"] | Qdisc'
"""Either the name of a queueing discipline, or a table with its `kind` and what else differs."""

QueueLimit: TypeAlias = "str"
"""Such as "100pkt"."""

Rate: TypeAlias = "str"
"""Such as "10Mbit"."""

RateSpec: TypeAlias = "str"
"""A rate such as "5Mbit", or "match:NAME" for the measured mean rates of the background NAME."""

RedSet: TypeAlias = Literal[
    "classic",
    "adaptive",
    "ns2-era",
    "ns2-modern",
]
"""A named set of RED's parameters. `classic`: Floyd and Jacobson 1993: thresholds 5pkt and 15pkt,
probability 0.02, weight 0.002. `adaptive`: Floyd, Gummadi and Shenker 2001: thresholds for 5ms,
gentle, adapting its probability. `ns2-era`: ns-2 of 1999 and 2000: thresholds 5pkt and 15pkt,
probability 0.1, weight 0.002. `ns2-modern`: ns-2.35 as released: thresholds and weight from the
link, gentle, in bytes."""

Side: TypeAlias = Literal[
    "left",
    "right",
]
"""A side of the network: left or right of its links. `left`: Where the clients are, if nothing else is
said. `right`: Where the servers are, if nothing else is said."""

Spacing: TypeAlias = Literal[
    "geometric",
    "uniform",
    "wait",
]
"""How RED spaces its drops. `geometric`: Independent drops: gaps are geometric (Floyd & Jacobson 1993,
section 7, method 1). `uniform`: Uniform gaps (method 2, the paper's choice). `wait`: No drop within
1/p packets of the last one, then uniform gaps (ns-2 `wait_`)."""

Stack: TypeAlias = Literal[
    "simulated",
    "kernel",
]
"""Whose TCP the background runs on where the backend is the emulator. `simulated`: Simulated endpoints
in the queues of the world: thousands cost a fraction of a processor. `kernel`: Sockets of the
kernel in hosts of their own, each connection from its host's address and behind its host's access
path: the check on the simulated ones. The warm-up takes its time."""

TcpProfile: TypeAlias = Literal[
    "linux",
    "classic",
    "ns2-era",
    "ns2-modern",
]
"""What kind of TCP. `linux`: A current Linux: initial window 10, SACK, CUBIC, delayed ACKs. `classic`:
What the early papers ran: Reno without SACK, a small initial window, a coarse timer. `ns2-era`:
ns-2 of 1999 and 2000: one-way Reno without handshake, window of 20 packets, ticks of 100ms.
`ns2-modern`: ns-2.35 as released: as `ns2-era`, with a SYN, limited transmit, an initial window of
2, ticks of 10ms."""

Tool: TypeAlias = Literal[
    "pathload",
    "pathload-paper",
    "pathchirp",
    "spruce",
    "igi",
    "ptr",
    "packet-pair",
]
"""How the available bandwidth, or the capacity, is estimated. `pathload`: Streams whose delay rises or
does not (Jain and Dovrolis, ToN 11(4), 2003), by the tests and thresholds of the released tool,
version 1.3. `pathload-paper`: The same by the tests and thresholds of the paper. `pathchirp`:
Chirps, of packets that come ever faster (Ribeiro et al., PAM 2003). `spruce`: Pairs at Poisson
times, as far apart as the capacity lets them leave (Strauss et al., IMC 2003). `igi`: Trains with
the gap at which it stays what it was, and how gaps grow (Hu and Steenkiste, JSAC 21(6), 2003).
`ptr`: The same trains, and the rate at which they leave. `packet-pair`: Pairs back to back: the
median of what they leave with. What it estimates is the capacity (Keshav, SIGCOMM 1991)."""

Transport: TypeAlias = Literal[
    "udp",
    "tcp",
]
"""What carries packets. `udp`: Datagrams: nothing is repeated, nothing slows down. `tcp`: Long TCP
connections, written to at the packets' instants."""

Victim: TypeAlias = Literal[
    "arriving",
    "front",
    "random",
]
"""Which packet RED drops when the queue is full or the average is too high. `arriving`: The arriving
packet. `front`: The second packet in the queue (ns-2 `drop_front_`). `random`: A random packet
(ns-2 `drop_rand_`)."""

Weight: TypeAlias = "float | WeightRule"
"""Weight of the newest sample in the average."""

WeightRule: TypeAlias = Literal[
    "one-second",
    "ten-round-trips",
]
"""How the weight follows from the link. `one-second`: The average looks back over a second.
`ten-round-trips`: The average looks back over ten round trips of three link delays, at least 100ms
each."""


@dataclass(kw_only=True)
class Active(Table):
    """When a part sends. Each window begins like a run: learnt traffic with its sessions in progress,
    on/off sources in steady state, everything else as at its first packet. At its end connections
    are reset."""

    from_: Dur | None = None
    """When the first window begins, since the beginning of the run, warm-up included. Default: 0ns."""

    off: Dur | None = None
    """From the end of a window to the beginning of the next. Default: there is one window."""

    on: Dur | None = None
    """Length of a window. Default: until the run is over."""


@dataclass(kw_only=True)
class Adaptation(Table):
    """How adaptive RED moves its probability."""

    ceiling: float | None = None
    """Greatest probability. Default: 0.5."""

    decrease: float | None = None
    """Factor where the average is too short. Default: 0.9."""

    floor: float | None = None
    """Least probability. Default: 0.01."""

    increase: float | None = None
    """Added where the average is too long, but no more than a quarter of the probability. Default:
    0.01."""

    interval: Dur | None = None
    """How often it is looked at. Default: 500ms."""


@dataclass(kw_only=True)
class WebBackground(Table):
    """Clients that fetch objects from a server, one after the other."""

    active: Active | None = None
    """When it sends. Default: always."""

    clients: int | None = None
    """Clients, each on its own access path. Default: 1."""

    connection: ConnectionUse | None = None
    """Whether each request opens a connection. Default: new."""

    count: int | None = None
    """Requests per client. Default: as many as fit into the run."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    kind: Literal["web"] = "web"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    object: Objects
    """Size of the objects; of several, each request takes the next in turn."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    request: Bytes | None = None
    """Bytes of a request. Default: 300B."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    tcp: TcpSettings | None = None
    """The TCP that clients and servers run."""

    think: Dur | None = None
    """Pause between the end of one object and the next request. Default: 0ns."""


@dataclass(kw_only=True)
class NoneBackground(Table):
    """No traffic: as a background what slowdowns are measured against, as a foreground what shows the
    background by itself."""

    kind: Literal["none"] = "none"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""


@dataclass(kw_only=True)
class LearntBackground(Table):
    """Traffic from a learnt model: users who wait for what they asked for."""

    access: Rate | None = None
    """Access capacity of every client and every server, both directions. Default: the model's, host by
    host."""

    active: Active | None = None
    """When it sends. Default: always."""

    cold: bool | None = None
    """Whether a run begins with no session in progress. Default: in steady state."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    independent: Sequence[Independence] | None = None
    """Dependencies of the model to break, to see what they do."""

    kind: Literal["learnt"] = "learnt"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what sessions offer or what the network carries of it. Default: carried."""

    model: str
    """A bundled model by name (`swell models` lists them), or the path of a model file, relative to
    the experiment file."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    phase: Dur | None = None
    """Where in the model's trace a run starts. Default: drawn anew by every seed."""

    rate: RateSpec | None = None
    """Mean rate of the down direction when the background is alone, which sessions are scaled to; or
    `match:NAME`, the rate of that background."""

    request: float | None = None
    """Request sizes, as a multiple of the model's. Default: 1.0."""

    response: float | None = None
    """Response sizes, as a multiple of the model's. Default: 1.0."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    rtt: Dur | None = None
    """Round-trip propagation delay of every path. Default: the model's, host by host."""

    sessions: float | None = None
    """Sessions per second, as a multiple of the model's. Default 1. Not together with `rate`."""

    tcp: TcpSettings | None = None
    """The TCP that users and servers run."""

    think: float | None = None
    """Think times, as a multiple of the model's; 0 for users that never pause. Default: 1.0."""


@dataclass(kw_only=True)
class PoissonBackground(Table):
    """Packets of one size at exponential intervals."""

    access: Rate | None = None
    """Capacity of every access path on the left, both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    delay_right: Dur | None = None
    """One-way delay of the access path on the right, where it is another."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    independent: bool | None = None
    """Whether each source has intervals of its own, independent of the others', with an even share of
    the rate. Default: all follow one schedule and take turns."""

    kind: Literal["poisson"] = "poisson"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what is sent or what the network carries of it. Default: offered, what is
    sent; over TCP carried."""

    match: Pairing | None = None
    """With `match:NAME`: the mean rates of that background over all replications, or those of the
    replication with the same seed, so that runs make pairs of equal load."""

    name: str
    """The name it goes by in tables and pictures."""

    packet: Bytes | None = None
    """Network-layer size of a packet. Default: 1kB."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    rate: RateSpec
    """Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the
    measured mean rates of that background, both directions."""

    rate_up: Rate | None = None
    """Mean rate of the up direction. Default: none, or what `match:NAME` measured."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    sources: int | None = None
    """Sources per direction, which take turns: over TCP, connections. The packets of all together have
    the rate and the intervals. Default: 10."""

    tcp: TcpSettings | None = None
    """The TCP that carries the packets, where TCP does."""

    transport: Transport | None = None
    """What carries the packets. Default: udp."""


@dataclass(kw_only=True)
class CbrBackground(Table):
    """Packets of one size at equal intervals."""

    access: Rate | None = None
    """Capacity of every access path on the left, both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    delay_right: Dur | None = None
    """One-way delay of the access path on the right, where it is another."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    independent: bool | None = None
    """Whether each source has intervals of its own, independent of the others', with an even share of
    the rate. Default: all follow one schedule and take turns."""

    kind: Literal["cbr"] = "cbr"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what is sent or what the network carries of it. Default: offered, what is
    sent; over TCP carried."""

    match: Pairing | None = None
    """With `match:NAME`: the mean rates of that background over all replications, or those of the
    replication with the same seed, so that runs make pairs of equal load."""

    name: str
    """The name it goes by in tables and pictures."""

    packet: Bytes | None = None
    """Network-layer size of a packet. Default: 1kB."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    rate: RateSpec
    """Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the
    measured mean rates of that background, both directions."""

    rate_up: Rate | None = None
    """Mean rate of the up direction. Default: none, or what `match:NAME` measured."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    sources: int | None = None
    """Sources per direction, which take turns: over TCP, connections. The packets of all together have
    the rate and the intervals. Default: 10."""

    tcp: TcpSettings | None = None
    """The TCP that carries the packets, where TCP does."""

    transport: Transport | None = None
    """What carries the packets. Default: udp."""


@dataclass(kw_only=True)
class SessionsBackground(Table):
    """Sessions of files, from a flow-level model."""

    active: Active | None = None
    """When it sends. Default: always."""

    compression: float | None = None
    """How many times faster the model's intervals follow one another; the rate stays. Default: 1.0."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    first: int | None = None
    """The model's interval to begin with, from 0; after the last comes this one again. Those before it
    are not played. Default: 0."""

    gaps: float | None = None
    """Waits from one file to the next, as a multiple of the model's. Default: 1.0."""

    kind: Literal["sessions"] = "sessions"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what sessions offer or what the network carries of it. Default: carried."""

    model: str
    """The path of a flow-level model (`swell learn` of flow records), relative to the experiment file."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    rate: RateSpec | None = None
    """Mean rate of the down direction when the background is alone, which sessions are scaled to; or
    `match:NAME`, the rate of that background."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    sessions: float | None = None
    """Sessions, as a multiple of the model's. Default 1. Not together with `rate`."""

    sizes: float | None = None
    """File sizes, as a multiple of the model's. Default: 1.0."""

    tcp: TcpSettings | None = None
    """The TCP that clients and servers run."""


@dataclass(kw_only=True)
class ImitationBackground(Table):
    """Sessions learnt from the flow records of another background, as a router would export them."""

    access: Rate | None = None
    """Rate of each host's access path. Default: not limited."""

    active: Active | None = None
    """When it sends. Default: always."""

    cold: bool | None = None
    """Whether a run begins with no session in progress. Default: in steady state."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    durations: float | None = None
    """How long transfers take, as a multiple of those that were recorded. It decides which intervals a
    large file is expected to load. Default: 1.0."""

    interval: Dur | None = None
    """Length of the intervals whose volumes are learnt. Default: 300s."""

    kind: Literal["imitation"] = "imitation"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    of: str
    """The background that is imitated: it is simulated alone, for as long as a run, with the seed of
    the first run."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    profile: FlowProfile | None = None
    """Whose arithmetic learns."""

    records: Exporter | None = None
    """How its flow records are exported."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    tcp: TcpSettings | None = None
    """The TCP that clients and servers run."""


@dataclass(kw_only=True)
class ReplayBackground(Table):
    """The packets of a capture at their own times."""

    access: Rate | None = None
    """Capacity of the access path on each side, both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    grid: Dur | None = None
    """Times are rounded up to multiples of this; 0s leaves them exact. Default: 0ns."""

    inside: Sequence[str] | None = None
    """Networks (CIDR) that are inside, on the left of the tapped link; all others are outside.
    Default: what the capture says, by interfaces, directions and Ethernet addresses, or who talks
    to whom."""

    kind: Literal["replay"] = "replay"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what is sent or what the network carries of it. Default: offered, what is
    sent; over TCP carried."""

    name: str
    """The name it goes by in tables and pictures."""

    of: str | None = None
    """Instead of `trace`: the background whose packets are replayed, as they come to the slowest link.
    It is simulated alone, for as long as a run, with the seed of the first run; what came after the
    warm-up is the capture."""

    once: bool | None = None
    """Whether the trace is over after its last packet. Default: it begins again."""

    path: Sequence[str] | None = None
    """Names of the links that it crosses, as in other backgrounds. Default: all links in the order of
    the file."""

    phase: Dur | None = None
    """Where in the trace a run starts, in the trace's own time. Beyond its end it begins again.
    Default: drawn anew by every seed; with `once` its beginning."""

    rate: RateSpec | None = None
    """Mean rate of the down direction when the background is alone: the trace is stretched or
    compressed in time to this. No packet is left out. Or `match:NAME`, the rate of that background."""

    reversed: bool | None = None
    """Let the trace's up direction flow down and the other way round. Default: false."""

    stretch: float | None = None
    """Times are multiplied by this: 2 is half as fast. Default 1. Not together with `rate`."""

    tcp: TcpSettings | None = None
    """The TCP that carries the packets, where TCP does."""

    trace: str | None = None
    """Path of a capture (pcap, pcapng, snoop; plain or compressed), relative to the experiment file."""

    transport: Transport | None = None
    """What carries the packets: datagrams of their sizes, or one TCP connection per direction that is
    given them as writes at their times. Default: udp."""


@dataclass(kw_only=True)
class GreedyBackground(Table):
    """Endless connections."""

    access: Rate | None = None
    """Capacity of every access path, on each side and in both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    connections: int | None = None
    """How many, in each direction that they take. Default: 1."""

    delay: Delays | None = None
    """One-way delay of the access path on each side of the bottleneck: of all connections, a list that
    they take in turn, or `{ from, to }` between which each draws its own. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    direction: Directions | None = None
    """Which way their data flows; both at the same time by different connections. Default: down."""

    independent: bool | None = None
    """Whether each draws for itself how much later it begins. Where not, all begin later by the same
    time, and runs hardly differ."""

    kind: Literal["greedy"] = "greedy"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    spread: Dur | None = None
    """Within how much time after its turn each begins; 0s begins exactly then, in every run. Default:
    1s."""

    stagger: Dur | None = None
    """Time between the beginning of one and of the next. Default: 0ns."""

    start: Dur | None = None
    """When the first begins, up to `spread` later: the seed draws by how much. Default: 0ns."""

    tcp: TcpSettings | None = None
    """The TCP that carries them."""


@dataclass(kw_only=True)
class SwarmBackground(Table):
    """A client of a file-sharing swarm, and its peers: blocks both ways."""

    access: Sequence[PeerLink] | None = None
    """Access links of the peers. Each peer draws one, and divides its `up` evenly among `slots`."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Delays | None = None
    """One-way delay of the peers' access paths: of all, a list that they take in turn, or `{ from, to
    }` between which each draws its own. The client's own is the network's `access_delay`; as a
    foreground, what makes its `rtt`, if that is given."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    download: Rate | None = None
    """Cap on the blocks that the client requests. Default: none."""

    kind: Literal["swarm"] = "swarm"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    peers: int | None = None
    """Peers to which the client has a connection. Default: 40."""

    pipeline: int | None = None
    """Requests for blocks of 16 kB that are under way on a connection. Default: 20."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    seeds: float | None = None
    """Share of the peers that have the whole file: they send and never request. Default: 0.0."""

    slots: int | None = None
    """Peers that the client, and each of its peers, unchokes at a time: those that gave most in 20 s,
    and an optimistic one. Default: 4."""

    tcp: TcpSettings | None = None
    """The TCP of all peers; `congestion = "ledbat"` for clients that yield."""

    upload: Rate | None = None
    """Cap on the blocks that the client sends. Default: none."""


@dataclass(kw_only=True)
class OnOffBackground(Table):
    """Packets of many on/off sources: self-similar together."""

    access: Rate | None = None
    """Capacity of the access path on each side, both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    kind: Literal["on-off"] = "on-off"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what is sent or what the network carries of it. Default: offered."""

    name: str
    """The name it goes by in tables and pictures."""

    off: Dur | None = None
    """Mean time for which it is off. 0s: never; then all packets have exponential intervals. Default:
    2s."""

    on: Dur | None = None
    """Mean time for which a source is on. Default: 500ms."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    rate: RateSpec
    """Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the
    measured mean rates of that background, both directions."""

    rate_up: Rate | None = None
    """Mean rate of the up direction. Default: none, or what `match:NAME` measured."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    seeds: Sequence[int] | None = None
    """Seeds of the up and of the down direction: every run then has the same packets, those that
    Python's generator gives with these seeds. Each source then begins with a whole period. Default:
    drawn anew by every seed of the run, in steady state."""

    shape: float | None = None
    """Shape of the Pareto law of both times, above 1. Default: 1.4."""

    sizes: Sequence[Size] | None = None
    """Network-layer sizes of packets, each drawn by itself."""

    sources: int | None = None
    """Sources per direction. Default: 50."""


@dataclass(kw_only=True)
class VoiceBackground(Table):
    """Voice calls, rated by the E-model."""

    active: Active | None = None
    """When it sends. Default: always."""

    buffer: Dur | None = None
    """How long the first packet of a spurt waits before it is played: later ones may be late by so
    much. Default: 60ms."""

    calls: int | None = None
    """Calls at the same time, all through the run. Default: 1."""

    codec: Codec | None = None
    """The codec, with what the E-model knows of it. Default: g711."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    frame: Dur | None = None
    """Speech in a packet. Default: 20ms."""

    kind: Literal["voice"] = "voice"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    pause: Dur | None = None
    """Mean pause between two spurts of a speaker. 0s: each talks all the time, in spurts without
    pauses. Default: 1.587s."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    talk: Dur | None = None
    """Mean length of a talk spurt. Default: 1.004s."""


@dataclass(kw_only=True)
class PageBackground(Table):
    """Browsers that load pages of many objects."""

    active: Active | None = None
    """When it sends. Default: always."""

    clients: int | None = None
    """Browsers, each on its own access path. Default: 1."""

    connections: int | None = None
    """Connections to each host at most, with HTTP/1.1. Default: 6."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    every: Dur | None = None
    """From the beginning of a page to the beginning of the next; what is not there by then is given
    up. Default: `think` after a page is there."""

    incremental: bool | None = None
    """Whether answers on one connection take turns, 16 KiB each, instead of coming in the order of
    their requests: the parameter `incremental` of RFC 9218. Only with HTTP/2 and HTTP/3."""

    keep: bool | None = None
    """Whether connections are kept for the next page. Default: false."""

    kind: Literal["page"] = "page"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    page: str | None = None
    """A HAR file, relative to this file, as browsers save it; or a bundled page: `article`, `shop`,
    `app`, `document`. Default: article."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    protocol: Protocol | None = None
    """How connections are used. Default: http1."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    tcp: TcpSettings | None = None
    """The TCP that browsers and servers run. With HTTP/3: congestion control, initial window and
    slow-start threshold, packet size, receive window and jitter of QUIC."""

    think: Dur | None = None
    """Pause after a page. Default: 0ns."""

    tls: bool | None = None
    """Whether TCP connections begin with a handshake of TLS 1.3: one round trip more. QUIC's handshake
    always includes that of TLS. Default: true."""


@dataclass(kw_only=True)
class MixBackground(Table):
    """Several backgrounds at once."""

    kind: Literal["mix"] = "mix"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    of: Sequence[str]
    """Names of other backgrounds, which flow together. Their order does not matter."""


@dataclass(kw_only=True)
class Change(Table):
    """Something about the bottleneck that changes during a run."""

    at: Dur
    """When, from the start of the run, warm-up included."""

    delay: Dur | None = None
    """One-way propagation delay from now on. Packets stay in order where it falls."""

    deliveries: DeliveriesSpec | None = None
    """A packet-delivery trace instead of a rate from now on."""

    direction: Directions | None = None
    """Which direction. Default both."""

    every: Dur | None = None
    """And again after each of these spans, until the run ends. Default: once."""

    loss: Loss | None = None
    """Random loss from now on."""

    outage: Dur | None = None
    """Nothing gets through for so long."""

    outage_packets: OutagePackets | None = None
    """What becomes of packets during the outage. Default wait."""

    qdisc: QdiscSpec | None = None
    """Queueing discipline from now on. What one of `queue` and `qdisc` leaves out is as under
    `[network]`."""

    queue: QueueLimit | None = None
    """How much the queue holds from now on. With `queue` or `qdisc` a new queue takes over what waits,
    and what it has no room for is dropped."""

    rate: Rate | None = None
    """The rate from now on. Of a packet in transmission the rest goes at the new rate."""


@dataclass(kw_only=True)
class Client(Table):
    """A client."""

    command: CommandLine
    """What is run."""

    directory: str | None = None
    """Where. Default: the directory in which `swell` was started."""

    environment: Mapping[str, str] | None = None
    """Variables of the environment beside our own."""


@dataclass(kw_only=True)
class Deliveries(Table):
    """A packet-delivery trace in mahimahi's format: a line for each opportunity to deliver 1500 bytes,
    with whole milliseconds; it repeats."""

    file: str
    """The file, relative to this one; it may be compressed."""

    phase: Dur | None = None
    """How far into the trace it begins. Default: drawn by the seed, one instant for all traces."""

    sha256: str | None = None
    """SHA-256 of the file, 64 hexadecimal digits; another file is refused."""


@dataclass(kw_only=True)
class Energy(Table):
    """More energy at one timescale, at the same mean rate: the speed at which a background begins
    things goes up and down. Packets that depend on nothing get this energy exactly. Users begin
    sessions and think by it, but transfers take what the network gives: at timescales shorter than
    transfers take they get less."""

    at: Dur
    """The timescale, an octave of a log-scale diagram of milliseconds: 2ms, 4ms, 8ms and so on to
    16384ms."""

    db: float
    """By how much energy rises there, dB: 6 is four times as much."""


@dataclass(kw_only=True)
class Exporter(Table):
    """The settings of a flow exporter."""

    active: Dur | None = None
    """A flow that goes on is reported after so long. Default: 60s."""

    inactive: Dur | None = None
    """A flow that is silent is over after so long. Default: 15s."""

    sample: int | None = None
    """It sees one packet in so many, at random. Default: 1, every packet."""


@dataclass(kw_only=True)
class WebForeground(Table):
    """Clients that fetch objects from a server, one after the other."""

    active: Active | None = None
    """When it sends. Default: always."""

    clients: int | None = None
    """Clients, each on its own access path. Default: 1."""

    connection: ConnectionUse | None = None
    """Whether each request opens a connection. Default: new."""

    count: int | None = None
    """Requests per client. Default: as many as fit into the run."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    kind: Literal["web"] = "web"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    object: Objects
    """Size of the objects; of several, each request takes the next in turn."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    request: Bytes | None = None
    """Bytes of a request. Default: 300B."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    tcp: TcpSettings | None = None
    """The TCP that clients and servers run."""

    think: Dur | None = None
    """Pause between the end of one object and the next request. Default: 0ns."""


@dataclass(kw_only=True)
class ProgramForeground(Table):
    """A real program."""

    client: Client
    """The client, on the left."""

    congestion_control: str | None = None
    """Congestion control of both hosts' kernels, whatever this machine's default is. Default: cubic."""

    count: int | None = None
    """How often the client is run, one after the other. Default: until the run is over."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    ecn: bool | None = None
    """Both hosts' kernels ask for ECN in TCP (RFC 3168) and accept it (`net.ipv4.tcp_ecn` 1); `false`:
    neither. Default: they accept it and do not ask, as Linux comes."""

    host: Sequence[Peer] | None = None
    """More hosts, each with a program, that run as long as the run: a swarm's other peers, a cache, a
    second server."""

    kind: Literal["program"] = "program"
    """Which kind; it decides what other keys there are."""

    measure: Measure2 | None = None
    """What is measured. Default: requests."""

    mtu: int | None = None
    """Largest packet of every host, bytes of the network layer. Default: 1500."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    reported: Sequence[Reported] | None = None
    """Measures that the program reports itself, beside those that the packets show."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    server: Server | None = None
    """The server, on the right. Default: a small HTTP server of our own on port 80, which serves
    objects of any size (`http://server/1MB`) and the files of the current directory."""

    think: Dur | None = None
    """Pause between the end of the client and its next run. Default: 0ns."""

    timeout: Dur | None = None
    """A client that takes longer than this is killed, and has failed. Default: 60s."""


@dataclass(kw_only=True)
class NoneForeground(Table):
    """No traffic: as a background what slowdowns are measured against, as a foreground what shows the
    background by itself."""

    kind: Literal["none"] = "none"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""


@dataclass(kw_only=True)
class PoissonForeground(Table):
    """Packets of one size at exponential intervals."""

    access: Rate | None = None
    """Capacity of every access path on the left, both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    delay_right: Dur | None = None
    """One-way delay of the access path on the right, where it is another."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    independent: bool | None = None
    """Whether each source has intervals of its own, independent of the others', with an even share of
    the rate. Default: all follow one schedule and take turns."""

    kind: Literal["poisson"] = "poisson"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what is sent or what the network carries of it. Default: offered, what is
    sent; over TCP carried."""

    match: Pairing | None = None
    """With `match:NAME`: the mean rates of that background over all replications, or those of the
    replication with the same seed, so that runs make pairs of equal load."""

    name: str
    """The name it goes by in tables and pictures."""

    packet: Bytes | None = None
    """Network-layer size of a packet. Default: 1kB."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    rate: RateSpec
    """Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the
    measured mean rates of that background, both directions."""

    rate_up: Rate | None = None
    """Mean rate of the up direction. Default: none, or what `match:NAME` measured."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    sources: int | None = None
    """Sources per direction, which take turns: over TCP, connections. The packets of all together have
    the rate and the intervals. Default: 10."""

    tcp: TcpSettings | None = None
    """The TCP that carries the packets, where TCP does."""

    transport: Transport | None = None
    """What carries the packets. Default: udp."""


@dataclass(kw_only=True)
class CbrForeground(Table):
    """Packets of one size at equal intervals."""

    access: Rate | None = None
    """Capacity of every access path on the left, both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    delay_right: Dur | None = None
    """One-way delay of the access path on the right, where it is another."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    independent: bool | None = None
    """Whether each source has intervals of its own, independent of the others', with an even share of
    the rate. Default: all follow one schedule and take turns."""

    kind: Literal["cbr"] = "cbr"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what is sent or what the network carries of it. Default: offered, what is
    sent; over TCP carried."""

    match: Pairing | None = None
    """With `match:NAME`: the mean rates of that background over all replications, or those of the
    replication with the same seed, so that runs make pairs of equal load."""

    name: str
    """The name it goes by in tables and pictures."""

    packet: Bytes | None = None
    """Network-layer size of a packet. Default: 1kB."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    rate: RateSpec
    """Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the
    measured mean rates of that background, both directions."""

    rate_up: Rate | None = None
    """Mean rate of the up direction. Default: none, or what `match:NAME` measured."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    sources: int | None = None
    """Sources per direction, which take turns: over TCP, connections. The packets of all together have
    the rate and the intervals. Default: 10."""

    tcp: TcpSettings | None = None
    """The TCP that carries the packets, where TCP does."""

    transport: Transport | None = None
    """What carries the packets. Default: udp."""


@dataclass(kw_only=True)
class ReplayForeground(Table):
    """The packets of a capture at their own times."""

    access: Rate | None = None
    """Capacity of the access path on each side, both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    grid: Dur | None = None
    """Times are rounded up to multiples of this; 0s leaves them exact. Default: 0ns."""

    inside: Sequence[str] | None = None
    """Networks (CIDR) that are inside, on the left of the tapped link; all others are outside.
    Default: what the capture says, by interfaces, directions and Ethernet addresses, or who talks
    to whom."""

    kind: Literal["replay"] = "replay"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what is sent or what the network carries of it. Default: offered, what is
    sent; over TCP carried."""

    name: str
    """The name it goes by in tables and pictures."""

    of: str | None = None
    """Instead of `trace`: the background whose packets are replayed, as they come to the slowest link.
    It is simulated alone, for as long as a run, with the seed of the first run; what came after the
    warm-up is the capture."""

    once: bool | None = None
    """Whether the trace is over after its last packet. Default: it begins again."""

    path: Sequence[str] | None = None
    """Names of the links that it crosses, as in other backgrounds. Default: all links in the order of
    the file."""

    phase: Dur | None = None
    """Where in the trace a run starts, in the trace's own time. Beyond its end it begins again.
    Default: drawn anew by every seed; with `once` its beginning."""

    rate: RateSpec | None = None
    """Mean rate of the down direction when the background is alone: the trace is stretched or
    compressed in time to this. No packet is left out. Or `match:NAME`, the rate of that background."""

    reversed: bool | None = None
    """Let the trace's up direction flow down and the other way round. Default: false."""

    stretch: float | None = None
    """Times are multiplied by this: 2 is half as fast. Default 1. Not together with `rate`."""

    tcp: TcpSettings | None = None
    """The TCP that carries the packets, where TCP does."""

    trace: str | None = None
    """Path of a capture (pcap, pcapng, snoop; plain or compressed), relative to the experiment file."""

    transport: Transport | None = None
    """What carries the packets: datagrams of their sizes, or one TCP connection per direction that is
    given them as writes at their times. Default: udp."""


@dataclass(kw_only=True)
class GreedyForeground(Table):
    """Endless connections."""

    access: Rate | None = None
    """Capacity of every access path, on each side and in both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    connections: int | None = None
    """How many, in each direction that they take. Default: 1."""

    delay: Delays | None = None
    """One-way delay of the access path on each side of the bottleneck: of all connections, a list that
    they take in turn, or `{ from, to }` between which each draws its own. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    direction: Directions | None = None
    """Which way their data flows; both at the same time by different connections. Default: down."""

    independent: bool | None = None
    """Whether each draws for itself how much later it begins. Where not, all begin later by the same
    time, and runs hardly differ."""

    kind: Literal["greedy"] = "greedy"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    spread: Dur | None = None
    """Within how much time after its turn each begins; 0s begins exactly then, in every run. Default:
    1s."""

    stagger: Dur | None = None
    """Time between the beginning of one and of the next. Default: 0ns."""

    start: Dur | None = None
    """When the first begins, up to `spread` later: the seed draws by how much. Default: 0ns."""

    tcp: TcpSettings | None = None
    """The TCP that carries them."""


@dataclass(kw_only=True)
class SwarmForeground(Table):
    """A client of a file-sharing swarm, and its peers: blocks both ways."""

    access: Sequence[PeerLink] | None = None
    """Access links of the peers. Each peer draws one, and divides its `up` evenly among `slots`."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Delays | None = None
    """One-way delay of the peers' access paths: of all, a list that they take in turn, or `{ from, to
    }` between which each draws its own. The client's own is the network's `access_delay`; as a
    foreground, what makes its `rtt`, if that is given."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    download: Rate | None = None
    """Cap on the blocks that the client requests. Default: none."""

    kind: Literal["swarm"] = "swarm"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    peers: int | None = None
    """Peers to which the client has a connection. Default: 40."""

    pipeline: int | None = None
    """Requests for blocks of 16 kB that are under way on a connection. Default: 20."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    seeds: float | None = None
    """Share of the peers that have the whole file: they send and never request. Default: 0.0."""

    slots: int | None = None
    """Peers that the client, and each of its peers, unchokes at a time: those that gave most in 20 s,
    and an optimistic one. Default: 4."""

    tcp: TcpSettings | None = None
    """The TCP of all peers; `congestion = "ledbat"` for clients that yield."""

    upload: Rate | None = None
    """Cap on the blocks that the client sends. Default: none."""


@dataclass(kw_only=True)
class OnOffForeground(Table):
    """Packets of many on/off sources: self-similar together."""

    access: Rate | None = None
    """Capacity of the access path on each side, both directions. Default: unlimited."""

    active: Active | None = None
    """When it sends. Default: always."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: the network's
    `access_delay`; of a foreground, what makes its `rtt`, if that is given."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    energy: Energy | None = None
    """More energy at one timescale. Default: what it has."""

    kind: Literal["on-off"] = "on-off"
    """Which kind; it decides what other keys there are."""

    load: LoadBasis | None = None
    """Whether `rate` is what is sent or what the network carries of it. Default: offered."""

    name: str
    """The name it goes by in tables and pictures."""

    off: Dur | None = None
    """Mean time for which it is off. 0s: never; then all packets have exponential intervals. Default:
    2s."""

    on: Dur | None = None
    """Mean time for which a source is on. Default: 500ms."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    rate: RateSpec
    """Mean rate of the down direction in network-layer bytes; or `match:NAME`, which takes the
    measured mean rates of that background, both directions."""

    rate_up: Rate | None = None
    """Mean rate of the up direction. Default: none, or what `match:NAME` measured."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    seeds: Sequence[int] | None = None
    """Seeds of the up and of the down direction: every run then has the same packets, those that
    Python's generator gives with these seeds. Each source then begins with a whole period. Default:
    drawn anew by every seed of the run, in steady state."""

    shape: float | None = None
    """Shape of the Pareto law of both times, above 1. Default: 1.4."""

    sizes: Sequence[Size] | None = None
    """Network-layer sizes of packets, each drawn by itself."""

    sources: int | None = None
    """Sources per direction. Default: 50."""


@dataclass(kw_only=True)
class VoiceForeground(Table):
    """Voice calls, rated by the E-model."""

    active: Active | None = None
    """When it sends. Default: always."""

    buffer: Dur | None = None
    """How long the first packet of a spurt waits before it is played: later ones may be late by so
    much. Default: 60ms."""

    calls: int | None = None
    """Calls at the same time, all through the run. Default: 1."""

    codec: Codec | None = None
    """The codec, with what the E-model knows of it. Default: g711."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    frame: Dur | None = None
    """Speech in a packet. Default: 20ms."""

    kind: Literal["voice"] = "voice"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    pause: Dur | None = None
    """Mean pause between two spurts of a speaker. 0s: each talks all the time, in spurts without
    pauses. Default: 1.587s."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    talk: Dur | None = None
    """Mean length of a talk spurt. Default: 1.004s."""


@dataclass(kw_only=True)
class StreamForeground(Table):
    """Media streams, each watched with a play-out buffer."""

    active: Active | None = None
    """When it sends. Default: always."""

    buffer: Dur | None = None
    """Media that a viewer waits for before it plays, and after it has stopped. 0s: it plays the first
    frame a frame's time after it came. Default: 10s."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    every: Dur | None = None
    """From the beginning of a viewer's stream to the beginning of the next. Default: the next begins
    when one is over."""

    frames: int | None = None
    """Frames per second. Default: 30."""

    kind: Literal["stream"] = "stream"
    """Which kind; it decides what other keys there are."""

    length: Dur | None = None
    """How long a stream plays. Default: 62s."""

    name: str
    """The name it goes by in tables and pictures."""

    packet: Bytes | None = None
    """The most media in a packet. Frames are cut into equal packets, which are sent at equal
    intervals. Default: 1.4kB."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    preroll: float | None = None
    """How many times faster than it plays the server sends until it has sent the buffer. Default: 2.0."""

    rate: Rate | None = None
    """Rate of the media, without headers. Default: 450kbit."""

    repair: bool | None = None
    """Whether a viewer asks for missing packets. Default: true."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    viewers: int | None = None
    """Viewers, each on its own access path. Default: 1."""


@dataclass(kw_only=True)
class DashForeground(Table):
    """Media in segments over TCP, at bitrates that the player chooses."""

    active: Active | None = None
    """When it sends. Default: always."""

    buffer: Dur | None = None
    """Media that the player's buffer holds at most. Default: 30s."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    every: Dur | None = None
    """From the beginning of what a viewer watches to the beginning of the next. Default: the next
    begins when one is over."""

    kind: Literal["dash"] = "dash"
    """Which kind; it decides what other keys there are."""

    ladder: Sequence[Rate] | None = None
    """Bitrates of the media, in ascending order."""

    length: Dur | None = None
    """How long what is watched plays. Default: 60s."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    request: Bytes | None = None
    """Bytes of a request. Default: 300B."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    rule: Choice | None = None
    """How the player chooses the next bitrate. Default: bba."""

    segment: Dur | None = None
    """Media in a segment. Default: 4s."""

    tcp: TcpSettings | None = None
    """The TCP that viewers and servers run."""

    viewers: int | None = None
    """Viewers, each on its own access path. Default: 1."""


@dataclass(kw_only=True)
class PageForeground(Table):
    """Browsers that load pages of many objects."""

    active: Active | None = None
    """When it sends. Default: always."""

    clients: int | None = None
    """Browsers, each on its own access path. Default: 1."""

    connections: int | None = None
    """Connections to each host at most, with HTTP/1.1. Default: 6."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    every: Dur | None = None
    """From the beginning of a page to the beginning of the next; what is not there by then is given
    up. Default: `think` after a page is there."""

    incremental: bool | None = None
    """Whether answers on one connection take turns, 16 KiB each, instead of coming in the order of
    their requests: the parameter `incremental` of RFC 9218. Only with HTTP/2 and HTTP/3."""

    keep: bool | None = None
    """Whether connections are kept for the next page. Default: false."""

    kind: Literal["page"] = "page"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    page: str | None = None
    """A HAR file, relative to this file, as browsers save it; or a bundled page: `article`, `shop`,
    `app`, `document`. Default: article."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    protocol: Protocol | None = None
    """How connections are used. Default: http1."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    tcp: TcpSettings | None = None
    """The TCP that browsers and servers run. With HTTP/3: congestion control, initial window and
    slow-start threshold, packet size, receive window and jitter of QUIC."""

    think: Dur | None = None
    """Pause after a page. Default: 0ns."""

    tls: bool | None = None
    """Whether TCP connections begin with a handshake of TLS 1.3: one round trip more. QUIC's handshake
    always includes that of TLS. Default: true."""


@dataclass(kw_only=True)
class ProbeForeground(Table):
    """A tool that estimates how much of its path is free."""

    capacity: Rate | None = None
    """The capacity of the path, which `spruce`, `igi` and `ptr` have to be told. Default: that of its
    narrowest link."""

    delay: Dur | None = None
    """One-way delay of the access path on each side of the bottleneck. Default: what makes the
    network's `rtt`, or its `access_delay`."""

    direction: Directions | None = None
    """The way over the links in which its data flow: `down`, towards clients at the near end; or `up`,
    the same as `reversed = true`."""

    kind: Literal["probe"] = "probe"
    """Which kind; it decides what other keys there are."""

    name: str
    """The name it goes by in tables and pictures."""

    path: Sequence[str] | None = None
    """Names of the links that its traffic crosses, from the clients' end to the servers'. A link that
    is crossed from its right end to its left is written `NAME reversed`. Default: all links in the
    order of the file."""

    pause: Dur | None = None
    """Pause between two estimates. Default: 1s."""

    reversed: bool | None = None
    """The clients are at the far end of the path, and the servers at the near one."""

    tool: Tool
    """The tool."""


@dataclass(kw_only=True)
class Keep(Table):
    """Which large results to keep."""

    flows: bool | None = None
    """Table `flows`: a row per background connection. Default: true."""

    gaps: bool | None = None
    """Table `gaps`: how long senders of the foreground were idle between two windows. Simulated only."""

    packets: bool | None = None
    """Directory `packets`: a pcapng file per run with the headers of every packet that arrives at the
    bottleneck. Default: false."""

    records: Exporter | None = None
    """Directory `records`: flow records (IPFIX) per run, as a router on the link would export them.
    Simulated only."""

    rtts: bool | None = None
    """Table `rtts`: the round trip of each packet of the foreground's connections, at its sender.
    Simulated only."""

    synchrony: bool | None = None
    """Table `synchrony`: whether connections lose together at the bottleneck, in a bin of `run.bins`,
    and whether acknowledgements are compressed. Simulated only."""

    waits: bool | None = None
    """Table `waits`: how long packets of foreground and background waited at the bottleneck. Simulated
    only."""

    waterfall: bool | None = None
    """Table `waterfall`: what the time of each request of a `web` or `page` foreground was spent on.
    Simulated only."""


@dataclass(kw_only=True)
class LinkOverrides(Table):
    """What differs in one direction of a link."""

    delay: Dur | None = None
    """One-way propagation delay in this direction."""

    deliveries: DeliveriesSpec | None = None
    """A packet-delivery trace instead of a rate in this direction."""

    loss: Loss | None = None
    """Random loss in this direction."""

    overhead: Bytes | None = None
    """Link-layer bytes per packet that the rate counts in this direction."""

    qdisc: QdiscSpec | None = None
    """Queueing discipline in this direction: its name, or a table with `kind` and parameters."""

    queue: QueueLimit | None = None
    """How much the queue holds in this direction."""

    rate: Rate | None = None
    """Rate in this direction."""


@dataclass(kw_only=True)
class NoneLoss(Table):
    """No random loss."""

    kind: Literal["none"] = "none"
    """Which kind; it decides what other keys there are."""


@dataclass(kw_only=True)
class IndependentLoss(Table):
    """Each packet is lost independently."""

    kind: Literal["independent"] = "independent"
    """Which kind; it decides what other keys there are."""

    p: float
    """Probability that a packet is lost."""


@dataclass(kw_only=True)
class GilbertElliottLoss(Table):
    """Two states with a loss probability each; the state may change at every packet (Gilbert 1960,
    Elliott 1963)."""

    kind: Literal["gilbert-elliott"] = "gilbert-elliott"
    """Which kind; it decides what other keys there are."""

    loss_bad: float | None = None
    """Probability that a packet is lost in the bad state. Default 1."""

    loss_good: float | None = None
    """Probability that a packet is lost in the good state. Default 0."""

    p_bad: float
    """Probability per packet of going from good to bad."""

    p_good: float
    """Probability per packet of going from bad to good."""


@dataclass(kw_only=True)
class NamedLink(Table):
    """A link of a network of several. Its left end is towards the clients of a path that names it."""

    change: Sequence[Change] | None = None
    """What changes during a run, and when."""

    delay: Dur | None = None
    """One-way propagation delay of the link, both directions. Default 10ms."""

    deliveries: DeliveriesSpec | None = None
    """A packet-delivery trace instead of a rate, both directions. A `rate` beside it is what limits in
    time and BDP count with; default: the trace's mean."""

    down: LinkOverrides | None = None
    """What differs in the down direction."""

    loss: Loss | None = None
    """Random loss on the link, both directions. Default none."""

    name: str
    """The name by which paths and tables know it. Random losses are drawn under it."""

    overhead: Bytes | None = None
    """Link-layer bytes per packet that the rate counts on top of the network-layer bytes. Default 0B:
    the rate counts network-layer bytes."""

    qdisc: QdiscSpec | None = None
    """Queueing discipline, both directions: its name, or a table with `kind` and parameters. Default
    fifo."""

    queue: QueueLimit | None = None
    """How much the queue holds, both directions: packets, bytes, time at the link's rate, or multiples
    of the bandwidth-delay product (rate times `rtt`). Default 1BDP, and at least ten packets of
    1500 bytes."""

    rate: Rate | None = None
    """Rate of the link, both directions."""

    up: LinkOverrides | None = None
    """What differs in the up direction."""


@dataclass(kw_only=True)
class Network(Table):
    """The network of an experiment: one link, the links of a preset, or, with `[[links]]`, what holds
    for all of them. Foreground clients and background users are on the left, servers on the right.
    "Up" is left to right, "down" right to left: towards the clients."""

    access_delay: Dur | None = None
    """One-way delay of the access path on each side, where neither a part nor `rtt` says otherwise.
    Learnt traffic and the peers of a swarm have their own. Default 5ms; in the preset `leaf-spine`
    5us."""

    change: Sequence[Change] | None = None
    """What changes during a run, and when."""

    delay: Dur | None = None
    """One-way propagation delay of the link, both directions. Default 10ms."""

    deliveries: DeliveriesSpec | None = None
    """A packet-delivery trace instead of a rate, both directions. A `rate` beside it is what limits in
    time and BDP count with; default: the trace's mean."""

    down: LinkOverrides | None = None
    """What differs in the down direction."""

    loss: Loss | None = None
    """Random loss on the link, both directions. Default none."""

    overhead: Bytes | None = None
    """Link-layer bytes per packet that the rate counts on top of the network-layer bytes. Default 0B:
    the rate counts network-layer bytes."""

    preset: PresetSpec | None = None
    """Several links at once, by the name of a common topology or as a table with `kind` and
    parameters. Keys of a link beside it change its links."""

    qdisc: QdiscSpec | None = None
    """Queueing discipline, both directions: its name, or a table with `kind` and parameters. Default
    fifo."""

    queue: QueueLimit | None = None
    """How much the queue holds, both directions: packets, bytes, time at the link's rate, or multiples
    of the bandwidth-delay product (rate times `rtt`). Default 1BDP, and at least ten packets of
    1500 bytes."""

    rate: Rate | None = None
    """Rate of the link, both directions."""

    rtt: Dur | None = None
    """Round-trip propagation delay of the foreground's paths, end to end; what BDP counts with.
    Default: the longest that the foregrounds' access delays make."""

    up: LinkOverrides | None = None
    """What differs in the up direction."""


@dataclass(kw_only=True)
class Peer(Table):
    """Another host, with a program. Its name resolves in all the others, and `{NAME}` and `{NAME6}`
    stand for its addresses in commands."""

    command: CommandLine
    """What is run."""

    directory: str | None = None
    """Where. Default: the directory in which `swell` was started."""

    environment: Mapping[str, str] | None = None
    """Variables of the environment beside our own."""

    name: str
    """Its name: letters, digits, hyphens."""

    ready: int | None = None
    """It is ready when a program listens on this TCP or UDP port; nobody connects. Default: when it
    has started."""

    ready_timeout: Dur | None = None
    """The run fails if it is not ready by then. Default: 10s."""

    side: Side | None = None
    """Where it is. Hosts on one side reach each other without crossing the bottleneck. Default: right."""


@dataclass(kw_only=True)
class PeerLink(Table):
    """An access link of peers and how many have it."""

    down: Rate
    """Capacity to the peer."""

    share: float
    """Share of the peers."""

    up: Rate
    """Capacity from the peer."""


@dataclass(kw_only=True)
class ParkingLotPreset(Table):
    """Links in a chain, `link1`, `link2` and so on, for flows that cross all and cross traffic on
    each. Keys of a link under `[network]` are those of every link. Default: 10 Mbit/s and 10ms
    each."""

    kind: Literal["parking-lot"] = "parking-lot"
    """Which kind; it decides what other keys there are."""

    links: int | None = None
    """How many links. Default: 3."""


@dataclass(kw_only=True)
class ResidentialPreset(Table):
    """A household: `wifi` (50 Mbit/s, 2ms, losses in bursts, up to 100ms of queue), `access` (10
    Mbit/s up and 100 Mbit/s down, 8ms, fq-codel up) and `core` (1 Gbit/s, 10ms). Keys of a link
    under `[network]` are those of `access`."""

    kind: Literal["residential"] = "residential"
    """Which kind; it decides what other keys there are."""


@dataclass(kw_only=True)
class CablePreset(Table):
    """Homes on cable modems that share a segment, as in 2006. The modem's link is `access`: 384 kbit/s
    up and 6 Mbit/s down, 5ms, 64 KiB of queue. All share `segment`: 10 Mbit/s up and 38 Mbit/s
    down, 1ms, 100ms of queue. Keys of a link under `[network]` are those of `access`. Other homes
    have a path over `segment` alone, and an `access` rate of their own."""

    kind: Literal["cable"] = "cable"
    """Which kind; it decides what other keys there are."""


@dataclass(kw_only=True)
class CampusPreset(Table):
    """A host on a campus: `access` (100 Mbit/s and 5ms). Keys of a link under `[network]` are those of
    `access`."""

    kind: Literal["campus"] = "campus"
    """Which kind; it decides what other keys there are."""


@dataclass(kw_only=True)
class LeafSpinePreset(Table):
    """Racks of a data centre, by path: one link `leafL-spineS` from each leaf up to each spine. A path
    from the first to the second rack is `["leaf1-spine1", "leaf2-spine1 reversed"]`. Keys of a link
    under `[network]` are those of every link. Default: 10 Gbit/s and 5us each, queues of 150 kB."""

    kind: Literal["leaf-spine"] = "leaf-spine"
    """Which kind; it decides what other keys there are."""

    leaves: int | None = None
    """How many leaves. Default: 2."""

    spines: int | None = None
    """How many spines. Default: 2."""


@dataclass(kw_only=True)
class FifoQdisc(Table):
    """First in, first out; arrivals to a full queue are dropped."""

    kind: Literal["fifo"] = "fifo"
    """Which kind; it decides what other keys there are."""


@dataclass(kw_only=True)
class RedQdisc(Table):
    """Random early detection: arrivals are dropped, or marked, with a probability that grows with the
    average of the queue."""

    adaptive: Adaptation | None = None
    """Let `max_p` adapt so that the average stays in the middle: how. Default: the set's."""

    by_size: bool | None = None
    """Whether a packet is dropped in proportion to its size. Default: the set's."""

    ecn: bool | None = None
    """Mark packets of senders that understand ECN instead of dropping them. Default: false."""

    gentle: bool | None = None
    """Whether the probability goes on to 1 at twice `max` instead of jumping there. Default: the
    set's."""

    kind: Literal["red"] = "red"
    """Which kind; it decides what other keys there are."""

    mark_below: float | None = None
    """Above this probability packets are dropped all the same; 1 for never. Default: the set's."""

    max: QueueLimit | None = None
    """Average queue at which the drop probability has reached `max_p`. Together with `min`. Default:
    the set's."""

    max_p: float | None = None
    """Drop probability as the average reaches `max`. Default: the set's."""

    mean_packet: Bytes | None = None
    """Size of a mean packet: what thresholds and idle times are counted in. Default 500B."""

    measure: Measure | None = None
    """What is averaged. Default: the set's."""

    min: QueueLimit | None = None
    """Average queue from which on packets are dropped now and then: packets of mean size, bytes, time
    at the link's rate, or BDP. Together with `max`. Default: the set's."""

    set: RedSet | None = None
    """The set of parameters everything else starts from. Default: classic."""

    spacing: Spacing | None = None
    """How drops are spread out. Default: the set's."""

    target_delay: Dur | None = None
    """Instead of `min` and `max`: the delay to aim at. `min` is then half of what the link sends in
    this time, at least 5 packets, and `max` three times that. Default: the set's."""

    victim: Victim | None = None
    """Which packet goes when the queue is full or its average too long. Default: the one that arrives."""

    weight: Weight | None = None
    """Weight of the newest sample in the average: a number above 0 and up to 1, or a rule. Default:
    the set's."""


@dataclass(kw_only=True)
class PriorityQdisc(Table):
    """Strict priority between the applications under study and the background, without preemption."""

    background: int | None = None
    """Band of the background. Default: 1."""

    bands: int | None = None
    """How many bands. Band 0 is served first. Default: 2."""

    foreground: int | None = None
    """Band of the applications under study. Default: 0."""

    kind: Literal["priority"] = "priority"
    """Which kind; it decides what other keys there are."""

    limits: Sequence[QueueLimit] | None = None
    """How much each band holds, from band 0 on. Bands without an entry hold what `queue` says, each
    for itself."""


@dataclass(kw_only=True)
class DrrQdisc(Table):
    """Deficit round robin."""

    by: DrrClasses | None = None
    """Which packets share a queue. Default: flow."""

    kind: Literal["drr"] = "drr"
    """Which kind; it decides what other keys there are."""

    quanta: Sequence[Bytes] | None = None
    """Quanta of single queues, from the first on; with `by = "traffic"` of the applications under
    study and of the background. Shares of the rate are in proportion to them."""

    quantum: Bytes | None = None
    """Bytes that a queue may send more in each round: at least the largest packet. Default: 1.5kB."""

    queues: int | None = None
    """How many queues flows are hashed to. With `by = "traffic"` there are two. Default: 1024."""


@dataclass(kw_only=True)
class CodelQdisc(Table):
    """Controlled delay (RFC 8289)."""

    ecn: bool | None = None
    """Mark packets of ECN-capable senders instead of dropping them (RFC 3168). Default: false."""

    interval: Dur | None = None
    """How long the delay must stay above the target before the first drop, about a worst-case
    round-trip time (section 5.3, INTERVAL: 100 ms). Default: 100ms."""

    kind: Literal["codel"] = "codel"
    """Which kind; it decides what other keys there are."""

    mtu: Bytes | None = None
    """Bytes that may wait regardless of their delay: a packet of maximum size, so that the link never
    becomes idle (section 5.2, `maxpacket_`). Default: 1.5kB."""

    target: Dur | None = None
    """Acceptable standing delay (section 5.3, TARGET: 5 ms). Default: 5ms."""


@dataclass(kw_only=True)
class FqCodelQdisc(Table):
    """A controlled-delay queue for each flow, served in turn (RFC 8290)."""

    drop_batch: int | None = None
    """Most packets dropped at once when no room is left. Default: 64."""

    ecn: bool | None = None
    """Mark packets of senders that understand ECN instead of dropping them. Default: true."""

    flows: int | None = None
    """How many queues flows are hashed to. Default: 1024."""

    interval: Dur | None = None
    """How long the delay must stay above the target before the first drop. Default: 100ms."""

    kind: Literal["fq-codel"] = "fq-codel"
    """Which kind; it decides what other keys there are."""

    mtu: Bytes | None = None
    """Bytes that may wait in a queue whatever their delay: the largest packet. Default: 1.5kB."""

    quantum: Bytes | None = None
    """Bytes that a queue may send in each round. Default: 1.514kB."""

    target: Dur | None = None
    """Standing delay that is tolerated in each queue. Default: 5ms."""


@dataclass(kw_only=True)
class PieQdisc(Table):
    """Proportional integral controller, enhanced (RFC 8033)."""

    alpha: float | None = None
    """Gain on the deviation from the target, per second (section 4.2: 1/8). Default: 0.125."""

    beta: float | None = None
    """Gain on the change of delay since the last update, per second (section 4.2: 1 + 1/4). Default:
    1.25."""

    capped: bool | None = None
    """Whether the probability grows by at most 2 % per update once it has reached 10 % (section 5.5).
    Default: true."""

    delay: PieDelay | None = None
    """How the delay is measured. Default: timestamps."""

    derandomize: bool | None = None
    """Whether drops are spaced evenly (section 5.4). Default: true."""

    ecn: bool | None = None
    """Mark packets of ECN-capable senders instead of dropping them (section 5.1). Default: false."""

    kind: Literal["pie"] = "pie"
    """Which kind; it decides what other keys there are."""

    mark_below: float | None = None
    """Above this probability packets are dropped even if their sender is ECN-capable (section 5.1: 10
    %). Default: 0.1."""

    max_burst: Dur | None = None
    """Duration of a burst within which no packet is dropped (section 4.4, MAX_BURST: 150 ms). Default:
    150ms."""

    mean_packet: Bytes | None = None
    """Mean packet size. No packet is dropped while at most two such packets wait (section 4.1,
    MEAN_PKTSIZE). Default: 1.5kB."""

    target: Dur | None = None
    """Target delay (section 4.2, QDELAY_REF: 15 ms). Default: 15ms."""

    update: Dur | None = None
    """Interval between updates of the drop probability (section 4.2, T_UPDATE: 15 ms). Default: 15ms."""


@dataclass(kw_only=True)
class ChokeQdisc(Table):
    """RED that also compares each arrival with a random packet that waits, and drops both where they
    are of one flow."""

    ecn: bool | None = None
    """Mark packets of senders that understand ECN where RED would drop them. Pairs of one flow are
    dropped all the same. Default: false."""

    kind: Literal["choke"] = "choke"
    """Which kind; it decides what other keys there are."""

    max: QueueLimit | None = None
    """Average queue from which on every arrival is dropped. Default: 15pkt."""

    max_p: float | None = None
    """Drop probability as the average reaches `max`. Default: 0.02."""

    mean_packet: Bytes | None = None
    """Size of a mean packet: what thresholds and idle times are counted in. Default: 500B."""

    min: QueueLimit | None = None
    """Average queue above which an arrival is compared with a packet that waits, and dropped now and
    then: packets of mean size, bytes, time at the link's rate, or BDP. Default: 5pkt."""

    weight: float | None = None
    """Weight of the newest sample in the average: above 0 and up to 1. Default: 0.002."""


@dataclass(kw_only=True)
class Reported(Table):
    """A measure that a program reports itself: in its output, by `pattern` or `json`, or else in lines
    of JSON such as `{"NAME": 12.3}` that it writes to `{dir}/measures.jsonl`. The mean of each run
    is judged. Where all runs together report a hundred values or more, it is their median and bad
    percentiles, and the mean too if there is a `floor`."""

    better: Better
    """Which direction is better."""

    floor: float | None = None
    """Ratios are of values plus this. For counts that may be zero, such as errors: what is not worth
    speaking of."""

    json: str | None = None
    """A JSONPath (RFC 9535) into the JSON of the client's standard output: `$.latency.p99`."""

    name: str
    """Its name in tables and pictures."""

    pattern: str | None = None
    """A regular expression for the client's output, line by line. Its first group is the value; its
    second, if there is one, the value's unit, from which it is converted:
    `Latency\\s+([\\d.]+)(us|ms|s)`. `k` is 1000 and `Ki` 1024; a prefix alone, as in `1.2k`,
    multiplies a `unit` without a prefix."""

    primary: bool | None = None
    """Whether the question is about this measure. Of many measures some differ by chance, which costs
    all of them power; primary ones pay for themselves only. The others may still decide, where they
    are clear."""

    unit: str | None = None
    """Unit of its values, for tables and pictures: `ms`, `requests/s`."""


@dataclass(kw_only=True)
class Run(Table):
    """How long and how often."""

    background_stack: Stack | None = None
    """Whose TCP the background runs on, if `backend = "emulated"`. In the simulator there is no
    choice."""

    bins: Dur | None = None
    """Bin width of the time series. A run has at most 1000000 bins. Default: 100ms."""

    duration: Dur | None = None
    """Length of a run, warm-up included. Default: 120s."""

    keep: Keep | None = None
    """Which large results to keep."""

    replications: int | None = None
    """Runs of each foreground against each background, with different seeds. Default: 10."""

    seed: int | None = None
    """Replication r has seed + r, equal in every foreground and background. Default: 1."""

    suite: str | None = None
    """The background that the others are to stand in for. They are listed with the cheapest first, and
    the verdict names the first that is sufficient. `swell run --suite` writes such a file."""

    together: bool | None = None
    """Whether all foregrounds run at once, beside each background. Default: each by itself. Simulated
    only."""

    warmup: Dur | None = None
    """The first part of a run: background alone, counted in no total. The foreground starts when it is
    over. Default: 10s."""


@dataclass(kw_only=True)
class Server(Table):
    """A server."""

    command: CommandLine
    """What is run."""

    directory: str | None = None
    """Where. Default: the directory in which `swell` was started."""

    environment: Mapping[str, str] | None = None
    """Variables of the environment beside our own."""

    ready: int | None = None
    """It is ready when a program listens on this TCP or UDP port; nobody connects. Default: when it
    has started."""

    ready_timeout: Dur | None = None
    """The run fails if it is not ready by then. Default: 10s."""


@dataclass(kw_only=True)
class Size(Table):
    """A size of packets and how many have it."""

    packet: Bytes
    """Network-layer bytes."""

    share: float
    """Share of the packets."""


@dataclass(kw_only=True)
class TcpSettings(Table):
    """The TCP that hosts run: a profile, and what differs from it. `docs/tcp.md` says what each
    profile holds."""

    ack_delay: Dur | None = None
    """How long an acknowledgement may be delayed. Default: the profile's."""

    congestion: CongestionControl | None = None
    """Congestion control. Default: the profile's."""

    delayed_ack: bool | None = None
    """Delayed acknowledgements. Default: the profile's."""

    ecn: bool | None = None
    """Explicit congestion notification: queues that mark may mark instead of dropping. Default: the
    profile's."""

    handshake: bool | None = None
    """Whether SYNs are exchanged before data; without, both ends are connected from the start, as in
    ns-2's one-way TCP. Default: the profile's."""

    initial_ssthresh: int | None = None
    """Initial slow-start threshold in segments. Default: the profile's."""

    initial_window: int | None = None
    """Initial window in segments. Default: the profile's."""

    jitter: Dur | None = None
    """The longest time that a simulated host takes, at random, before data goes out; 0s is none, and
    locks phases. Default: what a full packet takes on the slowest link, but no more than the
    connection waits in queues; none for the profiles of ns-2."""

    limited_transmit: bool | None = None
    """Limited transmit: new data on the first two duplicate acknowledgements. Default: the profile's."""

    min_rto: Dur | None = None
    """Shortest retransmission time-out. Default: the profile's."""

    mss: Bytes | None = None
    """Largest segment: payload bytes of a full packet. Default: the profile's."""

    nagle: bool | None = None
    """Nagle's algorithm: hold a short segment back while data is unacknowledged. Default: the
    profile's."""

    packets: bool | None = None
    """Whether each write is a packet of its own instead of a part of a stream. Default: the profile's."""

    profile: TcpProfile | None = None
    """The profile everything else starts from. Default: linux."""

    receive_tuning: bool | None = None
    """Whether the receive window begins small and follows what arrives, up to `receive_window`.
    Default: the profile's, and not where `receive_window` is given."""

    receive_window: Bytes | None = None
    """Largest window that receivers advertise. Default: the profile's."""

    sack: bool | None = None
    """Selective acknowledgements. Default: the profile's."""

    send_window: int | None = None
    """The sender's own limit on its window in segments. Default: the profile's."""

    tick: Dur | None = None
    """Tick of the clock that times round trips and time-outs; 0s is exact. Default: the profile's."""

    vegas: Vegas | None = None
    """What Vegas wants queued. Default: the profile's."""


@dataclass(kw_only=True)
class Vegas(Table):
    """What TCP Vegas wants queued at the bottleneck, in segments."""

    alpha: int | None = None
    """Below this many the window grows. Default: 1."""

    beta: int | None = None
    """Above this many it shrinks. Default: 3."""

    gamma: int | None = None
    """Above this many slow start ends. Default: 1."""


@dataclass(kw_only=True)
class Experiment(Table):
    """An experiment: applications under study, crossed with background traffic, on one network."""

    backend: BackendKind | None = None
    """What runs it. Default: simulated."""

    background: Sequence[Background]
    """The background traffic. Slowdowns are given against the background of kind `none`."""

    foreground: Sequence[Foreground]
    """The applications under study. Each is run against each background."""

    links: Sequence[NamedLink] | None = None
    """The links, where there are several."""

    name: str
    """Name of the experiment; the run directory is called after it."""

    network: Network | None = None
    """The network: one bottleneck, shared by everybody, or what holds for all `[[links]]`."""

    note: str | None = None
    """What the experiment is about, in free text; printed in the report."""

    run: Run | None = None
    """How long and how often."""


Background: TypeAlias = (
    WebBackground
    | NoneBackground
    | LearntBackground
    | PoissonBackground
    | CbrBackground
    | SessionsBackground
    | ImitationBackground
    | ReplayBackground
    | GreedyBackground
    | SwarmBackground
    | OnOffBackground
    | VoiceBackground
    | PageBackground
    | MixBackground
)
"""Background traffic."""

Foreground: TypeAlias = (
    WebForeground
    | ProgramForeground
    | NoneForeground
    | PoissonForeground
    | CbrForeground
    | ReplayForeground
    | GreedyForeground
    | SwarmForeground
    | OnOffForeground
    | VoiceForeground
    | StreamForeground
    | DashForeground
    | PageForeground
    | ProbeForeground
)
"""An application under study."""

Loss: TypeAlias = (
    NoneLoss
    | IndependentLoss
    | GilbertElliottLoss
)
"""Random loss."""

Preset: TypeAlias = (
    ParkingLotPreset
    | ResidentialPreset
    | CablePreset
    | CampusPreset
    | LeafSpinePreset
)
"""A network of several links. The resolved file shows them as `[[links]]`."""

Qdisc: TypeAlias = (
    FifoQdisc
    | RedQdisc
    | PriorityQdisc
    | DrrQdisc
    | CodelQdisc
    | FqCodelQdisc
    | PieQdisc
    | ChokeQdisc
)
"""A queueing discipline."""
