//! The paper's seven figures and ours, as data.

use super::anchors::Metric;
use super::lineup::{
    ADDED_TRANSPORTS, BACKGROUND, GATEWAYS, LINES, MIXED_GATEWAYS, Profile, label,
};
use super::results::{Key, Results, Source};
use super::scenario::{LEFT_OUT, poisson};
use crate::words::percent;
use crate::{Axis, Estimate, Line, Picture, Section, Unit};

/// From this many clients on the paper draws throughput and loss.
const FROM: u16 = 30;

/// Every section of pictures.
pub fn sections(results: &Results) -> Vec<Section> {
    let mut sections = Vec::new();
    for profile in Profile::ALL {
        let pictures = paper(results, profile);
        if !pictures.is_empty() {
            sections.push(Section {
                title: format!("The paper’s figures, {}", profile.label()),
                what: String::new(),
                pictures,
                tables: Vec::new(),
            });
        }
    }
    sections.push(Section {
        title: "The start-up transient".into(),
        what: "All clients start at once. Slow start overshoots, and the climb back lasts some \
               seconds; a figure over the whole run carries that along."
            .into(),
        pictures: Profile::ALL
            .into_iter()
            .filter_map(|p| startup(results, p))
            .collect(),
        tables: Vec::new(),
    });
    sections.push(Section {
        title: "RED’s averaging weight".into(),
        what: "The same scenario, Reno, 60 clients, RED 10/40, not gentle; only the weight of the \
               newest sample in RED’s average moves. ns-2 of 2000 took 0.002, an average over a \
               tenth of a second at this rate; ns-2.35 computes 0.00024, an average over a second. \
               The horizontal reference is the FIFO."
            .into(),
        pictures: weights(results),
        tables: Vec::new(),
    });
    let pictures: Vec<Picture> = [Profile::Modern, Profile::Today]
        .into_iter()
        .flat_map(|p| beyond(results, p))
        .collect();
    sections.push(Section {
        title: "Beyond the paper: other transports, other queues".into(),
        what: "The same clients and the same gateway of 50 packets.".into(),
        pictures,
        tables: Vec::new(),
    });
    sections.retain(|s| !s.pictures.is_empty());
    sections
}

/// Figures 2 to 8 under a profile, and figure 2 without the start.
fn paper(results: &Results, profile: Profile) -> Vec<Picture> {
    let label = profile.label();
    let lines: Vec<(&str, &str)> = LINES
        .iter()
        .filter(|l| l.paper && l.runs_under(profile))
        .map(|l| (l.transport, l.gateway))
        .collect();
    let picture = |number: &str, title: &str, caption: &str| Titles {
        name: format!("figure{number}-{}", profile.name()),
        title: format!("Figure {title}, {label}"),
        caption: caption.into(),
    };
    let cov = |k: &Key| results.get(k, Metric::Cov);
    let warm = |k: &Key| results.get(k, Metric::CovWarm);
    let mut all = vec![
        homogeneous(
            results,
            profile,
            &lines,
            picture(
                "2",
                "2: c.o.v. of the aggregate",
                "Coefficient of variation of the packets that arrive at the gateway in a round \
                 trip, drops included. The reference is the Poisson process that the clients \
                 submit.",
            ),
            cov_axis(),
            0,
            &cov,
        ),
        homogeneous(
            results,
            profile,
            &lines,
            picture(
                "2-warm",
                "2 without the first 10 s",
                "As figure 2, without the start.",
            ),
            cov_axis(),
            0,
            &warm,
        ),
        homogeneous(
            results,
            profile,
            &lines,
            picture(
                "3",
                "3: throughput",
                "Packets delivered to the server’s applications, each once, as a rate of \
                 network-layer bytes; drawn from 30 clients on, as in the paper.",
            ),
            axis("delivered", Unit::BitsPerSecond),
            FROM,
            &|k| results.throughput(k),
        ),
        homogeneous(
            results,
            profile,
            &lines,
            picture(
                "4",
                "4: packet loss",
                "Share dropped of the packets that arrive at the gateway.",
            ),
            axis("loss", Unit::Share),
            FROM,
            &|k| results.get(k, Metric::Loss),
        ),
    ];
    let small = &MIXED_GATEWAYS[..1];
    let large = &MIXED_GATEWAYS[1..];
    let each = |k: &Key| results.throughput_each(k);
    let loss = |k: &Key| results.get(k, Metric::Loss);
    let rate = || axis("delivered to each added client", Unit::BitsPerSecond);
    let lost = || axis("loss of added clients", Unit::Share);
    let beside = "Clients added to 20 Reno clients";
    for (number, title, gateways, y, f) in [
        (
            "5",
            "5: throughput of added clients",
            small,
            rate(),
            &each as &Number,
        ),
        ("6", "6: loss of added clients", small, lost(), &loss),
        ("7", "7: throughput, buffer 1500", large, rate(), &each),
        ("8", "8: loss, buffer 1500", large, lost(), &loss),
    ] {
        let caption = format!(
            "{beside}, {}.",
            if number < "7" {
                "at a buffer of 50 packets"
            } else {
                "at a buffer of 1500 packets under FIFO and two sets of RED thresholds"
            }
        );
        let titles = picture(number, title, &caption);
        all.push(mixed(results, profile, gateways, titles, y, f));
    }
    all.retain(|p| p.lines.iter().any(|l| l.measured));
    all
}

fn beyond(results: &Results, profile: Profile) -> Vec<Picture> {
    let label = profile.label();
    let under = |queues: bool| -> Vec<(&'static str, &'static str)> {
        let more = LINES.iter().filter(|l| !l.paper && l.runs_under(profile));
        let mine = more.filter(|l| (l.gateway != "fifo") == queues);
        // The same transport at the FIFO, to compare with.
        let first = std::iter::once(("reno", "fifo"));
        first
            .chain(mine.map(|l| (l.transport, l.gateway)))
            .collect()
    };
    let mut all = Vec::new();
    for (part, lines) in [("transports", under(false)), ("queues", under(true))] {
        for (what, unit) in [
            ("c.o.v.", Unit::Plain),
            ("throughput", Unit::BitsPerSecond),
            ("loss", Unit::Share),
        ] {
            let titles = Titles {
                name: format!(
                    "{part}-{}-{}",
                    what.replace("c.o.v.", "cov"),
                    profile.name()
                ),
                title: format!("Other {part}: {what}, {label}"),
                caption: match what {
                    "c.o.v." => "Over the whole run; the reference is Poisson.".into(),
                    _ => String::new(),
                },
            };
            let number = |k: &Key| match what {
                "c.o.v." => results.get(k, Metric::Cov),
                "loss" => results.get(k, Metric::Loss),
                _ => results.throughput(k),
            };
            let (y, from) = match unit {
                Unit::Plain => (cov_axis(), 0),
                _ => (axis(what, unit), FROM),
            };
            all.push(homogeneous(
                results, profile, &lines, titles, y, from, &number,
            ));
        }
    }
    all.retain(|p| p.lines.iter().filter(|l| l.measured).count() > 1);
    all
}

/// Excess at 30 clients against the seconds left out.
fn startup(results: &Results, profile: Profile) -> Option<Picture> {
    let lines: Vec<Line> = LINES
        .iter()
        .filter(|l| l.paper && l.runs_under(profile))
        .enumerate()
        .filter_map(|(i, line)| {
            let key = Key::new(profile, line.transport, line.gateway, 30);
            let points: Vec<(f64, Estimate)> = LEFT_OUT
                .iter()
                .enumerate()
                .filter_map(|(at, &s)| Some((s as f64, results.excess(&key, at)?)))
                .collect();
            measured(line.label(), i, points)
        })
        .collect();
    let first = &lines.get(1)?.points;
    let [whole, rest] = [first.first()?.1.value, first.last()?.1.value];
    Some(Picture {
        name: format!("startup-{}", profile.name()),
        title: format!("Excess over Poisson, 30 clients, {}", profile.label()),
        caption: format!(
            "How far the c.o.v. is above Poisson when the first seconds are left out. {}: {} over \
             the whole run, {} without the first 20 s.",
            lines[1].name,
            percent(whole),
            percent(rest)
        ),
        x: axis("seconds left out at the start", Unit::Plain),
        y: axis("excess over Poisson", Unit::Share),
        lines,
    })
}

fn weights(results: &Results) -> Vec<Picture> {
    let line = |slot: usize, profile: Profile, f: &Number| {
        let points: Vec<(f64, Estimate)> = GATEWAYS
            .iter()
            .filter_map(|g| {
                let key = Key::new(profile, "reno", g.name, 60);
                Some((g.weight()?, f(&key)?))
            })
            .collect();
        let fifo = f(&Key::new(profile, "reno", "fifo", 60))?;
        let ends = [points.first()?.0, points.last()?.0];
        let name = format!("RED, {}", profile.label());
        let reference = Line {
            name: format!("FIFO, {}", profile.label()),
            slot: slot + 2,
            points: ends.map(|x| (x, fifo)).to_vec(),
            measured: false,
        };
        Some([measured(name, slot, points)?, reference])
    };
    let picture = |name: &str, title: &str, y: Axis, f: &Number| {
        let lines = [(1, Profile::Era), (2, Profile::Modern), (5, Profile::Today)];
        let lines = lines.into_iter().filter_map(|(slot, p)| line(slot, p, f));
        Picture {
            name: format!("red-weight-{name}"),
            title: format!("{title} by RED’s averaging weight, Reno, 60 clients"),
            caption: String::new(),
            x: Axis {
                title: "weight of the newest sample".into(),
                unit: Unit::Plain,
                log: true,
            },
            y,
            lines: lines.flatten().collect(),
        }
    };
    let mut all = vec![
        picture("cov", "C.o.v.", cov_axis(), &|k| {
            results.get(k, Metric::Cov)
        }),
        picture(
            "delivered",
            "Throughput",
            axis("delivered", Unit::BitsPerSecond),
            &|k| results.throughput(k),
        ),
    ];
    all.retain(|p| !p.lines.is_empty());
    all
}

/// A number of a key.
type Number<'f> = dyn Fn(&Key) -> Option<Estimate> + 'f;

struct Titles {
    name: String,
    title: String,
    caption: String,
}

/// Lines over the number of clients, from `from` on; with Poisson where the axis is a c.o.v.
fn homogeneous(
    results: &Results,
    profile: Profile,
    lines: &[(&str, &str)],
    titles: Titles,
    y: Axis,
    from: u16,
    f: &Number,
) -> Picture {
    let mut drawn = Vec::new();
    let all = results.clients(profile, "udp", "fifo");
    if y.title == cov_axis().title
        && let (Some(&first), Some(&last)) = (all.first(), all.last())
    {
        let points = (first..=last).map(|m| (f64::from(m), Estimate::exact(poisson(m))));
        drawn.push(Line {
            name: "Poisson".into(),
            slot: 0,
            points: points.collect(),
            measured: false,
        });
    }
    for (slot, &(transport, gateway)) in lines.iter().enumerate() {
        let mut clients = results.clients(profile, transport, gateway);
        clients.retain(|&m| m >= from);
        let points = clients.into_iter().filter_map(|m| {
            let key = Key::new(profile, transport, gateway, m);
            Some((f64::from(m), f(&key)?))
        });
        let name = label(transport, gateway);
        drawn.extend(measured(name, slot, points.collect()));
    }
    Picture {
        name: titles.name,
        title: titles.title,
        caption: titles.caption,
        x: axis("clients", Unit::Plain),
        y,
        lines: drawn,
    }
}

/// Lines over the number of added clients.
fn mixed(
    results: &Results,
    profile: Profile,
    gateways: &[&str],
    titles: Titles,
    y: Axis,
    f: &Number,
) -> Picture {
    let mut lines = Vec::new();
    for gateway in gateways {
        for transport in ADDED_TRANSPORTS {
            let mut points: Vec<(f64, Estimate)> = results
                .keys()
                .filter(|k| {
                    (k.profile, &*k.transport, &*k.gateway, k.background)
                        == (profile, transport, gateway, BACKGROUND)
                })
                .filter_map(|k| Some((f64::from(k.clients), f(k)?)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            lines.extend(measured(label(transport, gateway), lines.len(), points));
        }
    }
    Picture {
        name: titles.name,
        title: titles.title,
        caption: titles.caption,
        x: axis("clients added to 20 Reno clients", Unit::Plain),
        y,
        lines,
    }
}

/// A line of measured points; none without any. Slots go round without the reference's.
fn measured(name: String, index: usize, points: Vec<(f64, Estimate)>) -> Option<Line> {
    (!points.is_empty()).then_some(Line {
        name,
        slot: 1 + index % 7,
        points,
        measured: true,
    })
}

fn axis(title: &str, unit: Unit) -> Axis {
    Axis {
        title: title.into(),
        unit,
        log: false,
    }
}

fn cov_axis() -> Axis {
    axis("coefficient of variation", Unit::Plain)
}
