//! Heat maps of a study.

use swell_study::{Heatmap, Picture};

use super::text::{capital, number, quantity};
use crate::chart::{HeatCell, HeatMap, Places};
use crate::human::Quantity;
use crate::parts::{Cell, Table};

/// Places of an axis: the numbers that occur, ascending.
fn places(axis: &swell_study::Axis, values: impl Iterator<Item = f64>) -> Places {
    let mut values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    Places {
        title: capital(&axis.title),
        quantity: quantity(axis.unit),
        values,
    }
}

/// The chart of a heat map. Cells without a finite, positive ratio are left out.
pub(super) fn chart(picture: &Picture, map: &Heatmap) -> HeatMap {
    let cells = || map.panels.iter().flat_map(|p| &p.cells);
    let across = places(&map.across, map.panels.iter().map(|p| p.across));
    let x = places(&picture.x, cells().map(|c| c.x));
    let y = places(&picture.y, cells().map(|c| c.y));
    let mut rows: Vec<String> = Vec::new();
    for panel in &map.panels {
        if !rows.contains(&panel.row) {
            rows.push(panel.row.clone());
        }
    }
    let find = |places: &Places, v: f64| places.values.iter().position(|p| *p == v);
    let all = map.panels.iter().flat_map(|panel| {
        let row = rows.iter().position(|r| *r == panel.row);
        let place = row.zip(find(&across, panel.across));
        let each = panel.cells.iter();
        let (x, y) = (&x, &y);
        each.filter_map(move |cell| {
            Some(HeatCell {
                panel: place?,
                at: (find(x, cell.x)?, find(y, cell.y)?),
                value: cell.value.value,
                interval: cell.value.interval,
                answer: cell.answer,
                framed: cell.framed,
            })
        })
    });
    let drawn = all.filter(|c| c.value.is_finite() && c.value > 0.0);
    HeatMap {
        title: picture.title.clone(),
        description: picture.caption.clone(),
        cells: drawn.collect(),
        rows,
        across,
        x,
        y,
        value: capital(&map.value),
        frame: map.frame.clone(),
    }
}

/// The cells: a row for each.
pub(super) fn numbers(picture: &Picture, map: &Heatmap) -> Table {
    let cells = || map.panels.iter().flat_map(|p| &p.cells);
    let asked = cells().any(|c| c.answer.is_some());
    let framed = cells().any(|c| c.framed);
    let titles = [&map.across.title, &picture.x.title, &picture.y.title];
    let mut head = vec![""];
    head.extend(titles.map(String::as_str));
    head.push(&map.value);
    if asked {
        head.push("answer");
    }
    if framed {
        head.push(&map.frame);
    }
    let mut table = Table::new(&head);
    for panel in &map.panels {
        for cell in &panel.cells {
            let show = |axis: &swell_study::Axis, v| Cell::text(quantity(axis.unit).tick(v));
            let mut row = vec![
                Cell::text(&panel.row),
                show(&map.across, panel.across),
                show(&picture.x, cell.x),
                show(&picture.y, cell.y),
                number(&cell.value, Quantity::Plain),
            ];
            if asked {
                row.push(Cell::text(cell.answer.map_or("–", |a| a.words())));
            }
            if framed {
                row.push(Cell::text(if cell.framed { "yes" } else { "" }));
            }
            table.rows.push(row);
        }
    }
    table
}
