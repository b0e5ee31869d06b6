//! The verdict in plain English: a short answer to each question.

use swell_base::Direction;
use swell_experiment::kinds::label;
use swell_experiment::measure::COMPLETION_TIME;

use super::answer::{Answer, DECISIVE, MARGIN};
use super::foreground::{BackgroundVerdict, ForegroundVerdict};
use super::judge::{Judgement, Statistic};
use super::numbers::{count, mega, percent};
use super::parametric::Comparison;
use super::rare;
use super::ratios::Known;
use super::side::{ComparisonText, Paragraph, paragraph};
use super::suite::Suite;

/// A paragraph for each question: does it matter, is a parametric one enough, which is the cheapest, how sure are we.
pub(super) fn paragraphs(v: &ForegroundVerdict) -> Vec<Paragraph> {
    let mut said = vec![matters(v)];
    if v.sureness.tentative() {
        let warning = tentative(v.sureness.replications);
        said[0].text.insert_str(0, &warning);
    }
    if let Some(enough) = v.parametric_enough {
        said.push(parametric(v, enough));
    }
    if let Some(suite) = &v.suite {
        said.push(cheapest(v, suite));
    }
    said.push(Paragraph {
        text: sure(v),
        lines: Vec::new(),
    });
    said
}

/// The first sentence where so few replications give no intervals that are what they claim.
pub(super) fn tentative(replications: usize) -> String {
    format!(
        "With only {} all of this is tentative. ",
        count(replications, "replication")
    )
}

fn matters(v: &ForegroundVerdict) -> Paragraph {
    let name = &v.foreground;
    let alone = |text| Paragraph {
        text,
        lines: Vec::new(),
    };
    if v.reference.is_none() {
        return alone(format!(
            "Whether background traffic matters to {name} cannot be told: there is no background of kind none to compare with."
        ));
    }
    let mut all = v.backgrounds.iter();
    let reference = all.find(|b| Some(&b.background) == v.reference.as_ref());
    // Sides that give the overall answer come first; the sort is stable, so the order of the file remains.
    let mut sides: Vec<ComparisonText<'_>> = v
        .backgrounds
        .iter()
        .filter_map(|b| Some(side(b, b.matters?, reference)))
        .collect();
    sides.sort_by_key(|s| s.answer != v.matters);
    if v.application_failed && sides.is_empty() {
        return alone(format!(
            "{name} fails without background traffic, so whether such traffic matters to it cannot be told."
        ));
    }
    if sides.is_empty() {
        return alone(format!(
            "There is nothing beside {name} that could slow it down."
        ));
    }
    let claim = match v.matters {
        Answer::Yes => format!("Background traffic matters to {name} here"),
        Answer::No => format!(
            "Background traffic does not matter to {name} here, within {}",
            percent(MARGIN)
        ),
        Answer::Unclear => format!("Whether background traffic matters to {name} is not settled"),
    };
    let no = match v.matters {
        Answer::Yes => ["does not", "do not"],
        _ => ["does not matter", "do not matter"],
    };
    let tally = tally(&sides, ["matters", "matter"], no);
    paragraph(&sides, v.matters, [&claim, "the largest change"], tally)
}

/// Counts the answers: "Of 8 backgrounds 1 matters, 5 do not and 2 are not settled."
fn tally(sides: &[ComparisonText<'_>], yes: [&str; 2], no: [&str; 2]) -> Option<String> {
    let part = |answer: Answer, [one, more]: [&str; 2]| {
        let n = sides.iter().filter(|s| s.answer == answer).count();
        (n > 0).then(|| format!("{n} {}", if n == 1 { one } else { more }))
    };
    let parts: Vec<String> = [
        part(Answer::Yes, yes),
        part(Answer::No, no),
        part(Answer::Unclear, ["is not settled", "are not settled"]),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (last, before) = parts.split_last()?;
    // If all answers are the same, the claim says so already.
    (!before.is_empty()).then(|| {
        format!(
            "Of {} backgrounds {} and {last}.",
            sides.len(),
            before.join(", ")
        )
    })
}

/// Whether there were requests and none finished.
fn none_finished(b: &BackgroundVerdict) -> bool {
    b.requests > 0 && b.unfinished + b.failed == b.requests
}

fn side<'v>(
    b: &'v BackgroundVerdict,
    answer: Answer,
    reference: Option<&BackgroundVerdict>,
) -> ComparisonText<'v> {
    // What holds without it, too, is no evidence against it.
    let nothing = none_finished(b) && !reference.is_some_and(none_finished);
    let said = match answer {
        Answer::Yes => "matters",
        Answer::No => "does not matter",
        Answer::Unclear => "is not settled",
    };
    let first = match nothing {
        true => format!(" not one of {} finished;", count(b.requests, "request")),
        false => String::new(),
    };
    let low = [Direction::Down, Direction::Up]
        .into_iter()
        .filter_map(|d| {
            let own = b.along(d);
            let low = below(b.load_bps[own], b.requested_bps[own])?;
            Some(format!("{low} {}", d.name()))
        })
        .collect::<Vec<String>>();
    let low = match low.is_empty() {
        true => String::new(),
        false => format!(" ({})", low.join(", ")),
    };
    ComparisonText {
        answer,
        judged: &b.judged,
        withheld: &b.withheld,
        open: &b.open,
        with: format!("with {}", b.background),
        load: format!(" ({})", load(b)),
        first,
        than: "without it".into(),
        line: format!("{}{low} {said}", b.background),
    }
}

/// If the carried load is below this share of the requested load, the text gives both.
const BELOW: f64 = 0.75;

/// "1.2 of 8.0 Mbit/s", where much more was requested than carried.
fn below(carried: f64, requested: Option<f64>) -> Option<String> {
    let asked = requested.filter(|&r| carried < BELOW * r && r - carried > 1e5)?;
    Some(format!("{} of {} Mbit/s", mega(carried, 1), mega(asked, 1)))
}

/// The carried load of a background in the foreground's directions, and the requested load where that is much more.
fn load(b: &BackgroundVerdict) -> String {
    let way = |d: Direction| {
        let own = b.along(d);
        let carried = b.load_bps[own];
        below(carried, b.requested_bps[own]).unwrap_or_else(|| mega(carried, 1))
    };
    let down = way(Direction::Down);
    let unit = if down.ends_with("bit/s") {
        ""
    } else {
        " Mbit/s"
    };
    format!("{down}{unit} down, {} up", way(Direction::Up))
}

fn parametric(v: &ForegroundVerdict, enough: Answer) -> Paragraph {
    let mut sides: Vec<(ComparisonText<'_>, &Comparison)> =
        v.comparisons.iter().map(|c| (compared(c), c)).collect();
    sides.sort_by_key(|s| s.1.enough != enough);
    let kinds = kinds(&v.comparisons, enough);
    let claim = match enough {
        Answer::Yes => match kinds.is_empty() {
            false => format!(
                "{} traffic of the same mean rate is enough here, within {}",
                kinds.join(" or "),
                percent(MARGIN)
            ),
            true => format!(
                "For each learnt background a parametric one of the same mean rate is enough, within {}, but no kind is for all",
                percent(MARGIN)
            ),
        },
        Answer::No => format!(
            "{} traffic of the same mean rate is not enough",
            kinds.join(" or ")
        ),
        Answer::Unclear => format!(
            "Whether {} traffic of the same mean rate is enough is not settled",
            kinds.join(" or ")
        ),
    };
    let sides: Vec<ComparisonText<'_>> = sides.into_iter().map(|s| s.0).collect();
    let differ = enough.inverted();
    paragraph(&sides, differ, [&claim, "the largest difference"], None)
}

/// The kinds of parametric backgrounds that an answer is about: those that are enough for every learnt background, or
/// else all that were tried for those learnt ones for which none is enough.
pub(super) fn kinds(comparisons: &[Comparison], enough: Answer) -> Vec<&'static str> {
    let served = |learnt: &str, by: Option<&str>| {
        let mut own = comparisons.iter().filter(|c| c.learnt == learnt);
        own.any(|c| c.enough == Answer::Yes && by.is_none_or(|by| c.kind == by))
    };
    let concerned = |c: &&Comparison| match enough {
        Answer::Yes => comparisons
            .iter()
            .all(|other| served(&other.learnt, Some(c.kind))),
        // Of a learnt one with a comparison that is not settled, nobody knows that none is enough.
        Answer::No => {
            let mut own = comparisons.iter().filter(|other| other.learnt == c.learnt);
            own.all(|other| other.enough == Answer::No)
        }
        Answer::Unclear => !served(&c.learnt, None),
    };
    let mut kinds: Vec<&str> = comparisons
        .iter()
        .filter(concerned)
        .map(|c| label(c.kind))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// The side for a comparison.
fn compared(c: &Comparison) -> ComparisonText<'_> {
    let line = match c.enough {
        Answer::Yes => format!("{} is enough for {}", c.parametric, c.learnt),
        Answer::No => format!("{} is not enough for {}", c.parametric, c.learnt),
        Answer::Unclear => format!("{} for {} is not settled", c.parametric, c.learnt),
    };
    ComparisonText {
        answer: c.enough.inverted(),
        judged: &c.judged,
        withheld: &c.withheld,
        open: &c.open,
        with: format!("with {}", c.learnt),
        load: String::new(),
        first: String::new(),
        than: format!("with {}", c.parametric),
        line,
    }
}

/// The paragraph about the cheapest sufficient background, and about the cheaper ones that are not settled.
fn cheapest(v: &ForegroundVerdict, suite: &Suite) -> Paragraph {
    let (name, target) = (&v.foreground, &suite.target);
    let found = suite.cheapest.as_deref();
    let cheaper = suite
        .candidates
        .iter()
        .take_while(|c| Some(&*c.background) != found);
    let open: Vec<&str> = cheaper
        .filter(|c| c.sufficient == Answer::Unclear)
        .map(|c| &*c.background)
        .collect();
    let mut text = match (found, open.is_empty()) {
        (Some(found), true) => format!(
            "The cheapest background that is sufficient for {name} here is {found}: what it does is within {} of what {target} does.",
            percent(MARGIN)
        ),
        (Some(found), false) => format!(
            "{found} is sufficient for {name} here: what it does is within {} of what {target} does. Whether something cheaper is ({}) is not settled.",
            percent(MARGIN),
            open.join(", ")
        ),
        (None, true) => format!("Nothing cheaper than {target} is sufficient for {name} here."),
        (None, false) => format!(
            "Nothing cheaper than {target} is shown to be sufficient for {name} here; {} of {} candidates are not settled.",
            open.len(),
            suite.candidates.len()
        ),
    };
    if let Some(n) = suite.replications_wanted {
        text += &format!(" About {n} replications would settle it.");
    }
    text += " Cheapest first:";
    let line = |c: &super::Candidate| {
        let side = ComparisonText {
            answer: c.sufficient.inverted(),
            judged: &c.judged,
            withheld: &c.withheld,
            open: &c.open,
            with: format!("with {target}"),
            load: String::new(),
            first: String::new(),
            than: format!("with {}", c.background),
            line: format!(
                "{} ({}) {}",
                c.background,
                c.what,
                match c.sufficient {
                    Answer::Yes => "is sufficient",
                    Answer::No => "is not sufficient",
                    Answer::Unclear => "is not settled",
                }
            ),
        };
        let wanted = match (c.sufficient, c.replications_wanted) {
            (Answer::Unclear, Some(n)) => format!("; about {n} replications would tell"),
            (Answer::Unclear, None) if c.withheld.is_empty() && c.open.is_empty() => {
                unforeseen(&c.judged).into()
            }
            _ => String::new(),
        };
        side.line() + &wanted
    };
    Paragraph {
        text,
        lines: suite.candidates.iter().map(line).collect(),
    }
}

/// Why no number of replications is known that would tell about a candidate.
fn unforeseen(judged: &[Judgement]) -> &'static str {
    let known = |j: &Judgement| Known::of(&j.ratio) == Known::Interval;
    match !judged.is_empty() && judged.iter().all(known) {
        true => {
            "; a ratio is so near the margin that more than 10 000 replications would be needed"
        }
        false => "; how many replications would tell is not known",
    }
}

/// Do not advise more replications than this.
const WORTH_SAYING: usize = 1000;

fn sure(v: &ForegroundVerdict) -> String {
    let s = &v.sureness;
    let mut text = format!("This rests on {}", count(s.replications, "replication"));
    match s.widest {
        Some(widest) if widest.is_finite() => {
            text += &format!("; the widest 95 % interval is ±{}", percent(widest));
            if let Some(n) = s
                .replications_wanted
                .filter(|&n| n > s.replications && n <= WORTH_SAYING)
                // Rounded, both may be the same.
                .filter(|_| percent(widest) != percent(MARGIN))
            {
                text += &format!(
                    ", and about {n} replications would bring it to ±{}",
                    percent(MARGIN)
                );
            }
        }
        Some(_) => {
            let mut judged = v.backgrounds.iter().flat_map(|b| &b.judged);
            text += match judged.any(|j| j.ratio.high.is_infinite() || j.ratio.low == 0.0) {
                true => {
                    "; of some percentiles only a bound is known, because requests did not finish"
                }
                false => "; the tail is not known",
            };
        }
        None if s.replications == 1 => {
            text += ", which gives no intervals: chance may have made every figure";
        }
        None => {}
    }
    if is_p99_wanting(v) {
        text += &format!(
            "; p99 takes {} requests with background traffic and as many without, and was not looked at",
            rare::LEAST
        );
    }
    match s.warnings {
        0 => text + ".",
        n => text + &format!("; {} to read first.", count(n, "warning")),
    }
}

/// Whether nothing differs up to p95 of the times of requests, and there are too few of them for p99, beside a background
/// or without: one in a hundred may be harmed.
fn is_p99_wanting(v: &ForegroundVerdict) -> bool {
    let last = Statistic::Percentile(DECISIVE[DECISIVE.len() - 1]);
    let tail = |j: &Judgement| j.measure == COMPLETION_TIME.name && j.statistic == last;
    let mut all = v.backgrounds.iter();
    let reference = all.find(|b| Some(&b.background) == v.reference.as_ref());
    let alone = reference.map_or(0, |b| b.requests);
    let few = |b: &BackgroundVerdict| {
        let least = b.requests.min(alone);
        b.judged.iter().any(tail) && least < rare::LEAST && b.matters == Some(Answer::No)
    };
    v.matters == Answer::No && v.backgrounds.iter().any(few)
}
