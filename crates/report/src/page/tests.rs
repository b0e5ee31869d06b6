use super::*;
use crate::sample;
use resvg::usvg::roxmltree::Document;
use swell_base::Direction;

/// Every picture of a page; each must be well-formed on its own.
fn pictures(page: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find("<svg class=\"chart\"") {
        let (mut depth, mut at) = (0, start);
        loop {
            let tail = &rest[at..];
            match (tail.find("<svg"), tail.find("</svg>")) {
                (Some(open), Some(close)) if open < close => {
                    depth += 1;
                    at += open + 4;
                }
                (_, Some(close)) => {
                    depth -= 1;
                    at += close + 6;
                    if depth == 0 {
                        break;
                    }
                }
                _ => panic!("a picture does not end"),
            }
        }
        out.push(&rest[start..at]);
        rest = &rest[at..];
    }
    out
}

const NAMES: [&str; 4] = ["none", "cbr", "poisson", "campus"];

#[test]
fn the_page_comes_in_the_order_of_the_questions() {
    let page = page(&sample::report(&NAMES));
    let places: Vec<usize> = [
        "<h1>web-20mbit",
        "id=\"verdict\"",
        "id=\"f0-cdf\"",
        "time, p95",
        "id=\"doubts\"",
        "few-samples",
        "short-trace",
        "<h3>Completion times",
        "id=\"f0-slow\"",
        "id=\"f0-lsd-down\"",
        "id=\"f0-time\"",
        "id=\"the-network\"",
        "id=\"loads\"",
        "swell run web-20mbit.toml",
        "The experiment, resolved",
        "rate = &quot;20Mbit&quot;",
    ]
    .iter()
    .map(|needle| {
        page.find(needle)
            .unwrap_or_else(|| panic!("{needle} is missing"))
    })
    .collect();
    assert!(places.is_sorted(), "{places:?}");
}

/// What could change the answer is read at once, however much there is of it.
#[test]
fn warnings_are_not_folded_away() {
    let mut data = sample::report(&NAMES);
    let folded = |of: &_| {
        let page = page(of);
        let (_, from) = page.split_once("id=\"doubts\"").unwrap();
        let (own, _) = from.split_once("</section>").unwrap();
        let (shown, more) = own.split_once("<details>").unwrap_or((own, ""));
        [shown, more].map(|part| part.matches("class=\"code\"").count())
    };
    assert_eq!(folded(&data), [2, 0]);
    let [note, warning] = [0, 1].map(|i| data.doubts[i].clone());
    data.doubts = [vec![note; 4], vec![warning.clone()]].concat();
    assert_eq!(folded(&data), [3, 2]);
    data.doubts.extend(vec![warning; 4]);
    assert_eq!(folded(&data), [5, 4]);
}

#[test]
fn every_picture_is_drawn_for_both_widths_with_its_own_ids_and_numbers_behind_it() {
    let page = page(&sample::report(&NAMES));
    let pictures = pictures(&page);
    // CDF, slowdown, two diagrams, four timelines in both directions of two replications, and the network, each wide and
    // narrow.
    assert_eq!(pictures.len(), 2 * (1 + 1 + 2 + 4 * 2 * 2 + 1));
    let mut ids = std::collections::BTreeSet::new();
    for picture in &pictures {
        let doc = Document::parse(picture).unwrap();
        for node in doc.descendants() {
            if let Some(id) = node.attribute("id") {
                assert!(ids.insert(id.to_owned()), "{id} twice");
            }
        }
        assert!(
            doc.descendants()
                .any(|n| n.has_tag_name("title") && n.text().is_some())
        );
        assert!(
            doc.descendants()
                .any(|n| n.has_tag_name("desc") && n.text().is_some())
        );
    }
    assert_eq!(page.matches("<summary>Numbers</summary>").count(), 8);
    // The down direction of the first replication is visible, the others are collapsed.
    for other in [
        "Replication 0, up",
        "Replication 1, down",
        "Replication 1, up",
    ] {
        assert_eq!(
            page.matches(&format!("<summary>{other}</summary>")).count(),
            1,
            "{other}"
        );
    }
    // The horizontal axis of the log-scale diagram is in milliseconds, not in octaves.
    let diagram = &page[page.find("id=\"f0-lsd-down\"").unwrap()..];
    assert!(diagram.contains(">10\u{a0}ms<") && diagram.contains(">1\u{a0}s<"));
}

#[test]
fn many_backgrounds_are_a_line_each_and_stand_below_each_other() {
    let few = page(&sample::report(&NAMES));
    assert!(few.contains("<li>campus matters: median ×1.40"));
    assert!(few.contains("<th scope=\"col\">Measure</th><th scope=\"col\">none</th>"));
    let names = ["none", "a", "b", "c", "d", "campus"];
    let many = page(&sample::report(&names));
    let (_, table) = many
        .split_once("<th scope=\"col\">Background</th><th scope=\"col\">time, p95</th>")
        .unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    assert_eq!(table.matches("<tr>").count(), names.len());
    for name in names {
        assert!(table.contains(&format!("<td>{name}</td>")), "{table}");
    }
}

#[test]
fn the_page_fetches_nothing() {
    // The SVG namespace looks like a URL but is never fetched.
    let page = page(&sample::report(&NAMES)).replace("http://www.w3.org/2000/svg", "");
    for fetch in [
        "http:",
        "https:",
        "src=",
        "@import",
        "url(//",
        "<link rel=\"stylesheet",
        "fetch(",
    ] {
        assert!(!page.contains(fetch), "{fetch}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("href=\"data:,\""));
}

#[test]
fn four_backgrounds_ten_replications_ten_minutes_stay_below_two_megabytes() {
    let size = page(&sample::report(&NAMES)).len();
    assert!(size < 2_000_000, "{size} bytes");
}

#[test]
fn equal_data_give_equal_bytes() {
    let one = page(&sample::report(&NAMES));
    assert_eq!(one, page(&sample::report(&NAMES)));
}

#[test]
fn hostile_names_stay_text_everywhere() {
    let evil = "</script></style></title></pre><script>alert(1)</script><img src=x onerror=alert(2)>\
                \"'`{{ 7*7 }}{% raw %}\u{0}\u{202e}";
    let mut data = sample::report(&["none", evil, "b", evil]);
    let text = evil.to_owned();
    data.title = text.clone();
    data.note = text.clone();
    data.verdict = vec![vec![crate::data::Said {
        text: text.clone(),
        lines: vec![text.clone()],
    }]];
    data.experiment = text.clone();
    data.rerun.command = text.clone();
    data.rerun.facts = vec![(text.clone(), text.clone())];
    data.network.clients = vec![text.clone(); 30];
    data.network.rtt = text.clone();
    for doubt in &mut data.doubts {
        doubt.code = text.clone().into();
        doubt.message = text.clone();
        doubt.place = text.clone();
    }
    for background in &mut data.backgrounds {
        background.what = text.clone();
    }
    for foreground in &mut data.foregrounds {
        foreground.name = text.clone();
        foreground.what = text.clone();
    }
    let page = page(&data);
    assert_eq!(page.matches("<script>").count(), 1, "only the page's own");
    assert_eq!(page.matches("</script>").count(), 1);
    assert_eq!(
        page.matches("</title>").count(),
        1 + pictures(&page).len() + keys_cut(&page)
    );
    assert!(!page.contains("<img"));
    assert!(
        !page.contains(">49"),
        "a template in a name is not evaluated"
    );
    assert!(!page.contains('\u{0}') && !page.contains('\u{202e}'));
    for picture in pictures(&page) {
        let doc = Document::parse(picture).unwrap();
        let safe = |n: &resvg::usvg::roxmltree::Node<'_, '_>| {
            !n.has_tag_name("script") && n.attributes().all(|a| !a.name().starts_with("on"))
        };
        assert!(doc.descendants().all(|n| safe(&n)));
    }
}

/// Counts shortened legend names; the full name must be their title.
fn keys_cut(page: &str) -> usize {
    let whole = |picture: &&str| {
        let doc = Document::parse(picture).unwrap();
        let title = |n: &resvg::usvg::roxmltree::Node<'_, '_>| {
            n.has_tag_name("title") && n.parent() != Some(doc.root_element())
        };
        doc.descendants().filter(title).count()
    };
    pictures(page).iter().map(whole).sum()
}

#[test]
fn a_report_of_nothing_is_a_page() {
    let empty = page(&ReportData::default());
    assert!(empty.ends_with("</html>") || empty.ends_with("</html>\n"));
    let mut data = sample::report(&NAMES);
    for condition in &mut data.foregrounds[0].conditions {
        *condition = crate::data::Condition::default();
    }
    let without = page(&data);
    assert!(without.contains("nothing to show"));
    // A figure without anything has nothing to save.
    let figure = &without[without.find("<figure id=\"f0-lsd-down\"").unwrap()..];
    let figure = &figure[..figure.find("</figure>").unwrap()];
    assert!(figure.contains(" data-empty>") && !figure.contains("Numbers"));
    assert!(!figure.contains("data-vega"), "{figure}");
    let mut nan = sample::report(&NAMES);
    for condition in &mut nan.foregrounds[0].conditions {
        let bad = |i: &mut Option<crate::data::Interval>| {
            *i = Some(crate::data::Interval {
                value: f64::NAN,
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
            });
        };
        condition.quantiles.iter_mut().for_each(bad);
        condition.slowdown.iter_mut().for_each(bad);
        condition.steps = vec![(f64::NAN, f64::NAN); 3];
        condition.band = vec![(f64::NAN, f64::NAN, f64::NAN); 3];
        condition.energies[1]
            .iter_mut()
            .for_each(|e| e.y = f64::NEG_INFINITY);
        for series in condition.series.iter_mut().flatten() {
            series.queue_max.fill(f64::NAN);
            series.bin = f64::NAN;
        }
    }
    for picture in pictures(&page(&nan)) {
        assert!(!picture.contains("NaN\""), "{picture}");
    }
}

/// The verdict counts warnings; what is folded away is counted as it does.
#[test]
fn folded_doubts_are_counted_by_weight() {
    let more = |of: &[bool]| super::more(of.iter().copied(), 1);
    assert_eq!(more(&[true, true, true, false]), "2 more warnings, 1 note");
    assert_eq!(more(&[true, false]), "1 more note");
    assert_eq!(more(&[true, true]), "1 more warning");
}

/// A background with which nothing finishes is what must be seen most: it has a line at 0 %, not an empty place.
#[test]
fn what_never_finishes_is_drawn() {
    let mut data = sample::report(&NAMES);
    let worst = data.foregrounds[0].conditions.last_mut().unwrap();
    (worst.steps, worst.band, worst.watched) = (Vec::new(), Vec::new(), 58.0);
    let named = crate::parts::named(&data, &data.foregrounds[0], &crate::parts::slots(&data));
    let chart = crate::figures::cdf_chart(&named, "");
    let curve = chart.curves.last().unwrap();
    assert_eq!(curve.points.last(), Some(&(58.0, 0.0)));
    assert!(curve.note.ends_with("none finished"), "{}", curve.note);
    assert!(chart.x.lo <= curve.points[0].0 && chart.x.hi >= 58.0);
    assert!(page(&data).contains("A line at 0 %"));
    // If nothing finishes beside any background, the measures are drawn instead.
    for condition in &mut data.foregrounds[0].conditions {
        condition.steps.clear();
    }
    let measured = page(&data);
    let verdict = &measured[..measured.find("id=\"doubts\"").unwrap()];
    assert!(verdict.contains("<b>What was measured.</b>"));
    assert!(!verdict.contains("How long requests take"));
}

/// The answers of several foregrounds stand apart, each under its name, and so do their figures.
#[test]
fn each_of_several_foregrounds_has_a_heading() {
    let mut data = sample::report(&NAMES);
    let one = data.foregrounds[0].name.clone();
    assert!(page(&data).contains("<b>How long requests take.</b>"));
    let mut other = data.foregrounds[0].clone();
    other.name = "mail".into();
    data.foregrounds.push(other);
    data.verdict.push(data.verdict[0].clone());
    let both = page(&data);
    let verdict = &both[..both.find("id=\"doubts\"").unwrap()];
    for name in [one.as_str(), "mail"] {
        assert!(verdict.contains(&format!("<h2>{name}</h2>")), "{name}");
        let lead = format!("<b>How long requests of {name} take.</b>");
        assert!(verdict.contains(&lead), "{name}");
    }
}

#[test]
fn the_commands_of_a_path_are_those_the_script_reads() {
    for picture in pictures(&page(&sample::report(&NAMES))) {
        let doc = Document::parse(picture).unwrap();
        for path in doc.descendants().filter(|n| n.has_attribute("data-name")) {
            let Some(d) = path.attribute("d") else {
                continue;
            };
            let strange = d.chars().find(|c| !"MLHVZ0123456789.- ".contains(*c));
            assert_eq!(strange, None, "{d}");
        }
    }
}

#[test]
fn without_requests_there_are_no_times() {
    let mut data = sample::report(&NAMES);
    assert!(page(&data).contains("<h3>Slowdown"));
    for condition in &mut data.foregrounds[0].conditions {
        condition.samples = 0;
    }
    let page = page(&data);
    assert!(!page.contains("<h3>Completion times") && !page.contains("<h3>Slowdown"));
    assert!(page.contains("<h3>The bottleneck over time"));
}

#[test]
fn a_timeline_names_its_link_where_there_are_several() {
    let mut data = sample::report(&NAMES);
    for condition in &mut data.foregrounds[0].conditions {
        condition.series[0][1].link = "core".into();
    }
    let page = page(&data);
    assert!(page.contains(">campus, at core</text>"));
    assert!(page.contains(">campus</text>"), "others have one link");
}

/// Where the first run of one background was late, its next one has other seeds than the first of the others.
#[test]
fn timelines_of_a_picture_are_of_one_replication() {
    let data = sample::report(&NAMES);
    let mut conditions = data.foregrounds[0].conditions.clone();
    let late = conditions.len() - 1;
    for series in conditions[late].series.iter_mut().flatten() {
        series.replication += 1;
    }
    let named: Vec<_> = (conditions.iter().zip(NAMES))
        .map(|(condition, name)| crate::parts::Named {
            name,
            slot: 1,
            role: crate::Role::Other,
            condition,
        })
        .collect();
    let (_, shown) = crate::figures::timeline_charts("", &named, 0, Direction::Down).unwrap();
    assert_eq!(shown.len(), named.len() - 1);
    assert!(
        shown
            .iter()
            .all(|(_, s)| s.replication == shown[0].1.replication)
    );
}
