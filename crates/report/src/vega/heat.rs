//! Heat maps as Vega-Lite specifications.

use serde_json::{Value, json};

use super::{finite, format_of, rounded, titled, top};
use crate::chart::{HeatMap, Places, colour, hex};

/// Width and height of a cell, pixels.
const CELL: (usize, usize) = (44, 28);

impl HeatMap {
    /// The map as a Vega-Lite specification: a facet for each panel.
    pub fn vega(&self) -> Value {
        let place = |places: &Places, at: usize| places.values.get(at).copied();
        let drawn = self.cells.iter().filter(|c| finite(&[c.value]));
        let rows = drawn.map(|cell| {
            let mut row = json!({
                "row": self.rows.get(cell.panel.0), "across": place(&self.across, cell.panel.1),
                "x": place(&self.x, cell.at.0), "y": place(&self.y, cell.at.1),
                "ratio": rounded(cell.value), "framed": cell.framed,
            });
            if let Some([low, high]) = cell.interval.filter(|i| finite(i)) {
                row["low"] = rounded(low).into();
                row["high"] = rounded(high).into();
            }
            if let Some(answer) = cell.answer {
                row["answer"] = answer.words().into();
            }
            row
        });
        let rows: Vec<Value> = rows.collect();
        let axis = |field: &str, places: &Places, sort: &str| {
            json!({
                "field": field, "type": "ordinal", "title": titled(&places.title, places.quantity),
                "axis": {"format": format_of(places.quantity), "labelAngle": 0}, "sort": sort,
            })
        };
        let (x, y) = (
            axis("x", &self.x, "ascending"),
            axis("y", &self.y, "descending"),
        );
        let end = self.end();
        let stops = [1.0 / end, 1.0, end];
        let colours: Vec<String> = stops.iter().map(|v| hex(colour(*v, end))).collect();
        let shade = json!({
            "field": "ratio", "type": "quantitative", "title": self.value,
            "scale": {"type": "log", "domain": stops.map(rounded), "range": colours, "clamp": true},
        });
        let told = [
            ("ratio", self.value.as_str(), true),
            (
                "low",
                "from",
                self.cells.iter().any(|c| c.interval.is_some()),
            ),
            (
                "high",
                "to",
                self.cells.iter().any(|c| c.interval.is_some()),
            ),
            (
                "answer",
                "answer",
                self.cells.iter().any(|c| c.answer.is_some()),
            ),
        ];
        let told = told.into_iter().filter(|(_, _, there)| *there);
        let tooltip: Vec<Value> = told
            .map(|(field, title, _)| match field {
                "answer" => json!({"field": field, "title": title}),
                _ => json!({"field": field, "type": "quantitative", "title": title, "format": ".3~g"}),
            })
            .collect();
        let mut layers = vec![
            json!({"mark": "rect", "encoding": {"x": x, "y": y, "color": shade, "tooltip": tooltip}}),
            json!({
                "mark": {"type": "text", "color": "#1b1f23"},
                "encoding": {"x": x, "y": y, "text": {"field": "ratio", "type": "quantitative", "format": ".2f"}},
            }),
        ];
        if !self.frame.is_empty() {
            layers.push(json!({
                "transform": [{"filter": "datum.framed"}],
                "mark": {"type": "rect", "filled": false, "stroke": "#1b1f23", "strokeWidth": 2.5},
                "encoding": {"x": x, "y": y},
            }));
        }
        let rest = json!({
            "data": {"values": rows},
            "facet": {
                "row": {"field": "row", "type": "nominal", "title": null, "sort": self.rows},
                "column": {
                    "field": "across", "type": "ordinal", "title": titled(&self.across.title, self.across.quantity),
                    "header": {"format": format_of(self.across.quantity), "formatType": "number"},
                },
            },
            "spec": {
                "width": CELL.0 * self.x.values.len(), "height": CELL.1 * self.y.values.len(), "layer": layers,
            },
        });
        top(&self.title, &self.description, rest)
    }
}
