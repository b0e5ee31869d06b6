//! Compares the same applications in two run directories: what differs, and which changes could explain it.
//!
//! The statistics are those of the verdict, with the second run directory over the first instead of a background over
//! none. Replications with equal seeds are paired. If too few seeds match, the replications are independent samples
//! ([`swell_stats::PairedRatio::independent`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use swell_base::{Code, Warning};
use swell_stats::{Bootstrap, Estimate, MIN_REPLICATIONS};

use super::answer::{Answer, MARGIN, PERCENTILES, any, weighed};
use super::condition::{Condition, Warned, slowdown};
use super::judge::{self, Judgement};
use super::loads::Loads;
use super::measures::judgements;
use super::numbers::percent;
use super::own::{self, Asked, Paths};
use super::side::{ComparisonText, Paragraph, paragraph};
use super::words::tentative;
use super::{drift, validity};
use swell_experiment::file::Foreground;
use swell_experiment::made_up::MadeUp;
use swell_experiment::store::Results;

/// One run directory compared with another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunComparison {
    /// What ratios are against: its name.
    pub first: String,
    /// The other's name.
    pub second: String,
    /// What the experiments, the programs and the models do not have in common.
    pub changes: Vec<Difference>,
    /// Whether replications are paired by seed.
    pub paired: bool,
    /// The tables that both have and that are equal, bit for bit. None where a run has several directories.
    pub equal_tables: Vec<String>,
    /// Seeds that both have on the same backend. Elsewhere equal seeds do not give the same traffic.
    pub seeds_in_common: usize,
    /// Every foreground beside every background that both have.
    pub conditions: Vec<ConditionComparison>,
    /// Whether any of them differs by more than the margin.
    pub differs: Answer,
    /// The answer in plain English.
    pub said: Paragraph,
    /// What to doubt about the comparison.
    pub doubts: Vec<Warning>,
}

/// Something that two run directories do not have in common.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The key of the experiment, such as `network.queue`; or `version`, `backend`, `model of NAME`.
    pub key: String,
    /// What the first has; `None` where the key is not there.
    pub first: Option<String>,
    /// What the second has.
    pub second: Option<String>,
}

/// A foreground beside a background, in two run directories.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ConditionComparison {
    /// The foreground.
    pub foreground: String,
    /// The background.
    pub background: String,
    /// Replications of the first and of the second that may decide.
    pub replications: [usize; 2],
    /// What the answer rests on: the second over the first, so that `with` is the second and `without` the first.
    pub judged: Vec<Judgement>,
    /// What is shown beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Judgement>,
    /// Ratios of the percentiles of request times, second over first, by [`PERCENTILES`].
    pub ratios: Vec<Option<Estimate>>,
    /// Why there is no answer; empty where nothing stands against one.
    pub withheld: Vec<String>,
    /// Why nobody may say that nothing differs.
    pub open: Vec<String>,
    /// Whether anything differs by more than the margin.
    pub differs: Answer,
}

impl ConditionComparison {
    /// Everything that was compared, whether an answer rests on it or not.
    pub fn compared(&self) -> impl Iterator<Item = &Judgement> {
        self.judged.iter().chain(&self.beside)
    }
}

impl RunComparison {
    /// Compares the second of `runs` with the first; `names` are their names.
    pub fn of(runs: [&Results; 2], names: [&str; 2]) -> RunComparison {
        let [first, second] = runs;
        let changes = changes(first, second);
        let common = common(first, second);
        let seeds_in_common = common[0].len();
        let order = order(first, second, common);
        let mut conditions = Vec::new();
        for foreground in &first.experiment.foreground {
            let mut others = second.experiment.foreground.iter();
            let Some(other) = others.find(|f| f.name() == foreground.name()) else {
                continue;
            };
            let both = [foreground, other];
            let backgrounds = first.backgrounds().into_iter();
            conditions
                .extend(backgrounds.filter_map(|b| condition((runs, names), both, b, &order)));
        }
        judge::correct(conditions.iter_mut().flat_map(|c| &mut c.judged));
        judge::correct(conditions.iter_mut().flat_map(|c| &mut c.beside));
        for c in &mut conditions {
            c.differs = weighed(judge::answer(&c.judged), &c.withheld, &c.open);
        }
        let differs = any(conditions.iter().map(|c| c.differs));
        RunComparison {
            first: names[0].into(),
            second: names[1].into(),
            said: said(runs, names, &conditions, differs),
            doubts: doubts(runs, names, &changes, &conditions),
            paired: order.is_some(),
            equal_tables: equal_tables(runs),
            seeds_in_common,
            differs,
            conditions,
            changes,
        }
    }

    /// The changes other than `key` and the keys below it.
    pub fn beside<'c>(&'c self, key: &'c str) -> impl Iterator<Item = &'c Difference> {
        let below = move |c: &&Difference| c.key != key && !c.key.starts_with(&format!("{key}."));
        self.changes.iter().filter(below)
    }
}

/// The tables of two run directories that are equal, by name. One that cannot be read is not.
fn equal_tables([first, second]: [&Results; 2]) -> Vec<String> {
    if !(first.joined.is_empty() && second.joined.is_empty()) {
        return Vec::new();
    }
    let files = std::fs::read_dir(&first.dir)
        .into_iter()
        .flatten()
        .flatten();
    let tables = files.map(|file| file.path()).filter_map(|path| {
        let table = path.extension()? == TABLE;
        let other = second.dir.join(path.file_name()?);
        let name = path.file_stem()?.to_str()?.to_owned();
        (table && same(&path, &other).unwrap_or(false)).then_some(name)
    });
    tables.collect::<BTreeSet<String>>().into_iter().collect()
}

/// The extension of tables.
const TABLE: &str = "parquet";

/// Whether two files have the same bytes.
fn same(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (a, b) = (one.fill_buf()?, other.fill_buf()?);
        let n = a.len().min(b.len());
        if a[..n] != b[..n] {
            return Ok(false);
        }
        if n == 0 {
            return Ok(a.is_empty() && b.is_empty());
        }
        one.consume(n);
        other.consume(n);
    }
}

/// Indices of the replications that are pairs in both directories; `None` if these are independent samples.
type Order = Option<[Vec<usize>; 2]>;

/// The seed of each replication.
fn seeds(results: &Results) -> Vec<u64> {
    let mut by_replication = BTreeMap::new();
    for cell in &results.manifest.cells {
        by_replication.insert(cell.replication, cell.seed);
    }
    by_replication.into_values().collect()
}

/// Indices of the replications with equal seeds in both directories. Equal seeds give the same traffic only on the same
/// backend.
fn common(first: &Results, second: &Results) -> [Vec<usize>; 2] {
    let (a, b) = (seeds(first), seeds(second));
    let same = first.manifest.backend == second.manifest.backend;
    let each = a.iter().enumerate().filter(|_| same);
    each.filter_map(|(i, seed)| Some((i, b.iter().position(|s| s == seed)?)))
        .unzip::<_, _, Vec<_>, Vec<_>>()
        .into()
}

/// Pairs need all seeds of one of the two, or as many as an answer wants and half of them: the others are left out.
fn order(first: &Results, second: &Results, common: [Vec<usize>; 2]) -> Order {
    let fewer = seeds(first).len().min(seeds(second).len());
    let n = common[0].len();
    (n == fewer || (n >= MIN_REPLICATIONS && 2 * n >= fewer)).then_some(common)
}

fn condition(
    (runs, names): ([&Results; 2], [&str; 2]),
    foregrounds: [&Foreground; 2],
    background: &str,
    order: &Order,
) -> Option<ConditionComparison> {
    let name = foregrounds[0].name();
    let bootstrap = Bootstrap::seeded(runs[0].experiment.run.seed);
    let found = [0, 1].map(|i| {
        let results = runs[i];
        let mut listed = results.experiment.background.iter();
        let background = listed.find(|b| b.name() == background)?;
        let mut side = Condition::new(results, name, background, &bootstrap);
        if let Some(order) = order {
            let common = order[i].iter().map(|&k| side.runs[k]).collect();
            side = side.with_runs(common, &bootstrap);
            side.warned = Warned::of(results, name, side.background.name(), |k| {
                order[i].contains(&k)
            });
        }
        side.paired = order.is_some();
        side.of_run = Some(names[i].into());
        Some(side)
    });
    let [Some(first), Some(second)] = found else {
        return None;
    };
    let mut measures = foregrounds[0].measures();
    let common = foregrounds[1].measures();
    let defined = measures.iter().chain(&common);
    let apart: BTreeSet<String> = defined
        .filter(|m| !(m.beside || measures.contains(m) && common.contains(m)))
        .map(|m| m.name.to_string())
        .collect();
    measures.retain(|m| common.contains(m));
    let [ways, others] = [0, 1].map(|i| runs[i].experiment.ways(&foregrounds[i].route()));
    let paths = Paths::of_all(ways).but_of(&runs[1].runs, others);
    let both = [&first, &second];
    let all = || {
        both.into_iter()
            .flat_map(|c| c.runs.iter().flatten().copied())
    };
    let mut listed = runs[0].experiment.background.iter();
    let idle = listed.find(|b| b.is_none());
    let idle = idle.map(|none| Condition::new(runs[0], name, none, &bootstrap));
    let asked = Asked {
        directions: own::directions(foregrounds.first().copied(), &paths, all()),
        datagrams: foregrounds.iter().any(|f| f.is_open_loop()) && own::are_timed(all()),
        useful: foregrounds.iter().all(|f| f.program().is_none()) && own::know_useful(all()),
        silent: foregrounds.iter().find_map(|f| f.silent()),
        sizes: match foregrounds[0].sizes() == foregrounds[1].sizes() {
            true => foregrounds[0].sizes().to_vec(),
            false => Vec::new(),
        },
        measures,
        program: foregrounds.iter().any(|f| f.program().is_some()),
        end: runs
            .map(|r| r.experiment.run.duration.as_secs_f64())
            .into_iter()
            .fold(0.0, f64::max),
        bootstrap,
        paths,
        paced: false,
    }
    .with_idle(idle.as_ref());
    let mut judged = judgements(&asked, &second, &first);
    let mut withheld = validity::in_common(&second, &first, &judged);
    for (i, side) in [&first, &second].into_iter().enumerate() {
        let loads = Loads::of(runs[i], name, side);
        let named = |reason: String| format!("{}: {reason}", names[i]);
        withheld.extend(loads.missed().into_iter().map(named));
        judged.open.extend(loads.gave_way().into_iter().map(named));
    }
    let drift = drift::of([runs[1], runs[0]], [&second, &first]);
    judged.open.extend(drift);
    for (run, side) in runs.into_iter().zip([&first, &second]) {
        let lacking = validity::lacking(run, side.background);
        let new: Vec<String> = lacking
            .into_iter()
            .filter(|l| !judged.open.contains(l))
            .collect();
        judged.open.extend(new);
        for unlike in validity::unlike(run, side.background) {
            if !withheld.contains(&unlike) {
                withheld.push(unlike);
            }
        }
    }
    let unlike = |measure: &String| format!("{measure} is not measured in the same way in both");
    judged.open.extend(apart.iter().map(unlike));
    let ratio = |p: f64| slowdown(&second, &first, p, asked.end);
    Some(ConditionComparison {
        foreground: name.into(),
        background: background.into(),
        replications: [&first, &second].map(|s| s.runs.iter().flatten().count()),
        ratios: PERCENTILES.into_iter().map(ratio).collect(),
        judged: judged.judged,
        beside: judged.beside,
        withheld,
        open: judged.open,
        differs: Answer::Unclear,
    })
}

/// Number of leading parts of a key that name one setting or object: `network.queue`, `background.learnt`.
const THING: usize = 2;

fn thing(key: &str) -> String {
    let parts: Vec<&str> = key.split('.').take(THING).collect();
    parts.join(".")
}

/// The differences between the two experiments, except seed, number of replications, name and note.
fn changes(first: &Results, second: &Results) -> Vec<Difference> {
    let [a, b] = [first, second].map(|results| {
        let mut keys = BTreeMap::new();
        // Cannot fail: the experiment was read from a file in the same format.
        let file = serde_json::to_value(&results.experiment).unwrap_or_default();
        flatten("", &file, &mut keys);
        for key in ["name", "note", "run.seed", "run.replications"] {
            keys.remove(key);
        }
        keys
    });
    let has = |keys: &BTreeMap<String, String>, of: &str| keys.keys().any(|k| thing(k) == of);
    let all: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let mut found: Vec<Difference> = Vec::new();
    for key in all {
        let (one, other) = (a.get(key), b.get(key));
        let of = thing(key);
        let difference = if one == other || found.last().is_some_and(|d| d.key == of) {
            continue;
        } else if has(&a, &of) && has(&b, &of) {
            Difference {
                key: key.clone(),
                first: one.cloned(),
                second: other.cloned(),
            }
        } else {
            // An object that only one experiment has counts as one difference, not one for each of its keys.
            let there = |keys: &BTreeMap<String, String>| {
                let kind = keys.get(&format!("{of}.kind")).or(keys.get(key)).cloned();
                has(keys, &of).then(|| kind.unwrap_or_else(|| "given".into()))
            };
            Difference {
                first: there(&a),
                second: there(&b),
                key: of,
            }
        };
        found.push(difference);
    }
    let mut facts = |key: &str, one: Option<&String>, other: Option<&String>| {
        if one != other {
            found.push(Difference {
                key: key.into(),
                first: one.cloned(),
                second: other.cloned(),
            });
        }
    };
    let (m, n) = (&first.manifest, &second.manifest);
    facts("version", Some(&m.version), Some(&n.version));
    facts("backend", Some(&m.backend), Some(&n.backend));
    for (name, model) in &m.models {
        if let Some(other) = n.models.get(name) {
            let key = format!("model of {name}");
            facts(&key, Some(&model.hash), Some(&other.hash));
        }
    }
    found
}

/// Adds every dotted key below `at` with its value; list items are keyed by their name or index.
fn flatten(at: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    let below = |key: &str| match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    };
    match value {
        Value::Object(fields) => {
            for (key, own) in fields {
                flatten(&below(key), own, into);
            }
        }
        Value::Array(items) => {
            for (i, own) in items.iter().enumerate() {
                let name = own.get("name").and_then(Value::as_str);
                let key = name.map_or_else(|| i.to_string(), String::from);
                flatten(&below(&key), own, into);
            }
        }
        Value::String(text) => {
            into.insert(at.into(), text.clone());
        }
        other => {
            into.insert(at.into(), other.to_string());
        }
    }
}

/// Those of the two runs that made their numbers up.
fn made_up<'n>(runs: [&Results; 2], names: [&'n str; 2]) -> Vec<&'n str> {
    let both = runs.into_iter().zip(names);
    both.filter(|(r, _)| r.manifest.backend == MadeUp::NAME)
        .map(|(_, name)| name)
        .collect()
}

fn doubts(
    runs: [&Results; 2],
    names: [&str; 2],
    changes: &[Difference],
    conditions: &[ConditionComparison],
) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let made_up = made_up(runs, names);
    if !made_up.is_empty() {
        let message = format!("every number of {} is made up", made_up.join(" and "));
        doubts.push(Warning::warning(Code::MadeUp, message));
    }
    // A foreground or background that only one experiment has is not compared, so it explains no difference.
    let apart = |d: &&Difference| {
        let listed = d.key.starts_with("foreground.") || d.key.starts_with("background.");
        !(listed && (d.first.is_none() || d.second.is_none()) && thing(&d.key) == d.key)
    };
    let things: BTreeSet<String> = changes
        .iter()
        .filter(apart)
        .map(|d| thing(&d.key))
        .collect();
    if things.len() > 1 {
        let keys: Vec<String> = things.into_iter().collect();
        let message = format!(
            "the runs differ in {} things ({}): which of them makes a difference is not known",
            keys.len(),
            keys.join(", ")
        );
        doubts.push(Warning::warning(Code::SeveralChanges, message));
    }
    if let Some(n) = fewest(conditions).filter(|&n| n < MIN_REPLICATIONS) {
        let message =
            format!("{n} replications: intervals need at least {MIN_REPLICATIONS}; run more seeds");
        doubts.push(Warning::warning(Code::FewReplications, message));
    }
    doubts
}

/// The smallest number of replications that an answer rests on.
fn fewest(conditions: &[ConditionComparison]) -> Option<usize> {
    conditions.iter().flat_map(|c| c.replications).min()
}

/// Says whether the second run directory differs from the first, and in which conditions.
fn said(
    runs: [&Results; 2],
    [first, second]: [&str; 2],
    conditions: &[ConditionComparison],
    differs: Answer,
) -> Paragraph {
    let mut sides: Vec<ComparisonText<'_>> = conditions
        .iter()
        .map(|c| {
            let at = format!("{} beside {}", c.foreground, c.background);
            let said = match c.differs {
                Answer::Yes => "differs",
                Answer::No => "does not differ",
                Answer::Unclear => "is not settled",
            };
            ComparisonText {
                answer: c.differs,
                judged: &c.judged,
                withheld: &c.withheld,
                open: &c.open,
                line: format!("{at} {said}"),
                with: format!("for {at}"),
                load: String::new(),
                first: String::new(),
                than: format!("in {first}"),
            }
        })
        .collect();
    sides.sort_by_key(|s| s.answer != differs);
    let claim = match differs {
        Answer::Yes => format!("{second} differs from {first}"),
        Answer::No => format!(
            "{second} does not differ from {first}, within {}",
            percent(MARGIN)
        ),
        Answer::Unclear => format!("Whether {second} differs from {first} is not settled"),
    };
    let mut said = paragraph(&sides, differs, [&claim, "the largest difference"], None);
    if let Some(n) = fewest(conditions).filter(|&n| n < MIN_REPLICATIONS) {
        said.text.insert_str(0, &tentative(n));
    }
    let made_up = made_up(runs, [first, second]);
    if !made_up.is_empty() {
        let text = format!("Every number of {} is made up. ", made_up.join(" and "));
        said.text.insert_str(0, &text);
    }
    said
}

#[cfg(test)]
mod tests;
