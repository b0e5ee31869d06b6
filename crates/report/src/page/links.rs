//! The network: its links, their use and loads.

use crate::data::{ForegroundData, Load, NetworkData, ReportData};
use crate::human::{Quantity, significant};
use crate::network;
use crate::parts::{Cell, Figure, Part, Section, Table, clean};

pub(super) fn network_section(data: &ReportData) -> Section {
    let figure = Figure::both("network", "", "", |canvas, width| {
        let height = network::height(&data.network, width);
        vec![network::svg(&data.network, &canvas("", height))]
    })
    .vega(&network::vega(&data.network, network::WIDE));
    Section {
        id: "the-network".into(),
        title: "The network".into(),
        what: "“Up” is left to right, “down” right to left: towards the clients.".into(),
        parts: vec![Part {
            figures: vec![figure],
            tables: link_table(&data.network).into_iter().collect(),
            ..Part::default()
        }],
    }
}

/// The table of links, if there are several.
fn link_table(network: &NetworkData) -> Option<Table> {
    if network.links.is_empty() {
        return None;
    }
    let mut table = Table::new(&["Link", "up", "down"]);
    for (name, up, down) in &network.links {
        table.rows.push(vec![
            Cell::text(name),
            Cell::text(up.join(" · ")),
            Cell::text(down.join(" · ")),
        ]);
    }
    Some(table)
}

/// The use of every link with each background, if there are several links.
fn use_table(data: &ReportData, foreground: &ForegroundData, slots: &[usize]) -> Option<Table> {
    if foreground.conditions.iter().all(|c| c.links.is_empty()) {
        return None;
    }
    let mut table = Table::new(&[
        "Background",
        "link",
        "used down",
        "of it background",
        "dropped down",
        "used up",
        "of it background",
        "dropped up",
    ]);
    let conditions = data.backgrounds.iter().zip(&foreground.conditions);
    for ((background, condition), &slot) in conditions.zip(slots) {
        for link in &condition.links {
            let mut row = vec![
                Cell::text(&background.name).slot(slot),
                Cell::text(&link.name),
            ];
            for way in link.ways.iter().rev() {
                row.extend([
                    Cell::text(Quantity::Share.show(way.used[0] + way.used[1], 3)),
                    Cell::text(Quantity::Share.show(way.used[1], 3)),
                    Cell::text(format!("{}\u{a0}%", significant(way.dropped * 100.0, 2))),
                ]);
            }
            table.rows.push(row);
        }
    }
    Some(table)
}

pub(super) fn load_section(data: &ReportData, slots: &[usize]) -> Section {
    let mut parts = Vec::new();
    for foreground in &data.foregrounds {
        let mut table = Table::new(&[
            "Background",
            "requested down",
            "offered down",
            "carried down",
            "requested up",
            "offered up",
            "carried up",
            "foreground down",
            "used down",
            "dropped down",
        ]);
        for ((background, condition), &slot) in data
            .backgrounds
            .iter()
            .zip(&foreground.conditions)
            .zip(slots)
        {
            let [up, down] = condition.load;
            let rate = |mean: f64, sd: f64| {
                let cell = Cell::text(Quantity::Rate.show(mean, 3));
                if sd.is_finite() && mean > 0.0 {
                    cell.small(format!("sd {}", Quantity::Rate.show(sd, 2)))
                } else {
                    cell
                }
            };
            let requested = |load: &Load| {
                let shown = load.requested.map(|bps| Quantity::Rate.show(bps, 3));
                Cell::text(shown.unwrap_or_else(|| "–".into()))
            };
            table.rows.push(vec![
                Cell::text(&background.name).slot(slot),
                requested(&down),
                rate(down.background, down.background_sd),
                Cell::text(Quantity::Rate.show(down.carried, 3)),
                requested(&up),
                rate(up.background, up.background_sd),
                Cell::text(Quantity::Rate.show(up.carried, 3)),
                Cell::text(Quantity::Rate.show(down.foreground, 3)),
                Cell::text(Quantity::Share.show(down.utilisation, 3)),
                Cell::text(format!("{}\u{a0}%", significant(down.dropped * 100.0, 2))),
            ]);
        }
        parts.push(Part {
            heading: if data.foregrounds.len() > 1 {
                clean(&foreground.name)
            } else {
                String::new()
            },
            tables: std::iter::once(table)
                .chain(use_table(data, foreground, slots))
                .collect(),
            ..Part::default()
        });
    }
    Section {
        id: "loads".into(),
        title: "Measured loads".into(),
        what:
            "At the queues of the slowest link that a background crosses, after the warm-up, network-layer bytes. Requested is what \
               the experiment asks for, or what the background carries alone; offered is what \
               arrives beside the application, with the standard deviation over replications; \
               carried is what leaves. A background that waits for its answers sends less when \
               the foreground takes its share."
                .into(),
        parts,
    }
}
