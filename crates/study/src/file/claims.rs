//! Claims and their rules: computes ledgers from numbers.

use rhai::{Dynamic, Engine, Scope};
use swell_base::{Code, Warning};
use swell_experiment::file::Problems;

use super::compiled::Compiled;
use super::format::{Claim, Column, StudyFile};
use super::origin::TableLocation;
use super::reference::Numbers;
use super::results::{self, Views};
use super::script::{self, Trouble};
use super::units::written;
use crate::{Entry, Estimate, Finding, Ledger, Verdict};

/// The result of a rule.
struct Found {
    verdict: Verdict,
    value: Dynamic,
    detail: String,
}

/// The engines that evaluate claims in one column.
struct Asked<'s> {
    here: Engine,
    there: Option<Engine>,
    /// Measures without a number in at least one run.
    lacking: Vec<&'s str>,
}

/// The title of the ledger of claims that name none.
const LEDGER: &str = "The claims";

const MISSING: &str = "a claim has a value and says where it holds, or why it is untested";

/// The ledgers, in the order in which claims first name them. A ledger has each column that has runs and in which
/// at least one of its claims is evaluated.
pub(super) fn ledgers(
    compiled: &Compiled,
    ours: &Numbers,
    reference: Option<&Numbers>,
    doubts: &mut Vec<Warning>,
) -> Vec<Ledger> {
    let study = &compiled.file;
    let views = Views::of(compiled, ours);
    let theirs = reference.map(|r| Views::of(compiled, r));
    let engines: Vec<Asked<'_>> = (0..study.column.len())
        .map(|c| {
            let of = |runs: &Views| asking(compiled, runs, theirs.as_ref(), c);
            Asked {
                here: of(&views),
                // A rule may be vacuously true of no runs.
                there: theirs.as_ref().filter(|t| t.has_runs(c)).map(of),
                lacking: lacking(study, ours, c),
            }
        })
        .collect();
    let title = |claim: &Claim| claim.ledger.as_deref().unwrap_or(LEDGER).to_owned();
    let mut ledgers: Vec<Ledger> = Vec::new();
    for (first, _) in &compiled.claims {
        if ledgers.iter().any(|l| l.title == title(first)) {
            continue;
        }
        let all = || compiled.claims.iter().map(|c| &c.0);
        let mine = || all().filter(|c| title(c) == title(first));
        let columns = || {
            let each = study.column.iter().zip(&engines);
            each.filter(|(column, _)| {
                is_run(study, column) && mine().any(|claim| asked(claim, column))
            })
        };
        let entries = mine().map(|claim| {
            let findings = columns().map(|(column, both)| {
                if let Some(why) = unasked(study, claim, column, reference.is_some()) {
                    return because(why);
                }
                Finding {
                    pictures: shown_in(study, claim, column),
                    ..judged(claim, column, both, doubts)
                }
            });
            Entry {
                id: claim.id.clone(),
                claim: claim.claim.clone(),
                paper: claim.paper.clone(),
                rule: rule(claim),
                findings: findings.collect(),
            }
        });
        ledgers.push(Ledger {
            title: title(first),
            entries: entries.collect(),
            columns: columns().map(|(c, _)| c.name.clone()).collect(),
        });
    }
    ledgers
}

/// Whether any line runs in a column.
fn is_run(study: &StudyFile, column: &Column) -> bool {
    let here = |only: &Vec<String>| only.contains(&column.name);
    study
        .line
        .iter()
        .any(|l| l.columns.as_ref().is_none_or(here))
}

/// Whether a claim is evaluated in a column.
fn asked(claim: &Claim, column: &Column) -> bool {
    let only = claim.columns.as_ref();
    only.is_none_or(|c| c.contains(&column.name))
}

/// Why a claim is not evaluated in a column, if it is not.
fn unasked(study: &StudyFile, claim: &Claim, column: &Column, compared: bool) -> Option<String> {
    let only = claim.columns.as_deref().unwrap_or_default();
    if !asked(claim, column) {
        let mut others = study.column.iter().filter(|c| asked(claim, c));
        let missing = match others.any(|c| is_run(study, c)) {
            true => "",
            false => ", which is not run here",
        };
        return Some(format!("asked of {} alone{missing}", only.join(", ")));
    }
    if claim.anchor && !compared {
        let named = study.reference.as_ref().map_or("a reference", |r| &*r.name);
        return Some(format!("about runs of {named}, which are not compared"));
    }
    claim.untested.clone()
}

/// The finding for a claim that is not tested for this reason.
fn because(why: String) -> Finding {
    Finding {
        detail: why,
        ..Finding::not_tested()
    }
}

/// Measures without a number in some run of a column, for example the mean of no values.
fn lacking<'s>(study: &'s StudyFile, numbers: &Numbers, column: usize) -> Vec<&'s str> {
    let mine = || numbers.rows.iter().filter(|r| r.place.0 == column);
    let measures = study.measure.iter().enumerate();
    let without = measures.filter(|(m, _)| mine().any(|row| row.numbers[*m].is_none()));
    without.map(|(_, measure)| &*measure.name).collect()
}

/// The pictures that show a claim in a column.
fn shown_in(study: &StudyFile, claim: &Claim, column: &Column) -> Vec<String> {
    let named = |name: &String| study.figure.iter().find(|f| f.name == *name);
    let figures = claim.figures.iter().filter_map(named);
    figures
        .filter_map(|figure| figure.picture_of(study, column))
        .collect()
}

/// The finding for a claim in a column, with the reference's verdict and number if there are any.
fn judged(claim: &Claim, column: &Column, asked: &Asked<'_>, doubts: &mut Vec<Warning>) -> Finding {
    let theirs = asked.there.as_ref().and_then(|e| decide(e, claim).ok());
    let beside = |ours: Finding| Finding {
        reference_verdict: theirs.as_ref().map(|t| t.verdict),
        reference: (theirs.as_ref()).map_or_else(String::new, |t| shown(claim, &t.value)),
        ..ours
    };
    match decide(&asked.here, claim) {
        Ok(found) => beside(finding(claim, found)),
        Err((_, Trouble::NotThere(why))) => beside(because(why)),
        Err((_, Trouble::Wrong(why))) => {
            // The rehearsal resolved every name. A name that is unknown now belongs to a measure without a number.
            let missed = |m: &&&str| why.contains(&format!("`{m}`"));
            if let Some(measure) = asked.lacking.iter().find(missed) {
                return beside(because(format!("a run has no number for {measure}")));
            }
            let (id, name) = (&claim.id, &column.name);
            let text = format!("claim {id} could not be asked in {name}: {why}");
            doubts.push(Warning::warning(Code::ClaimFailed, text));
            beside(because(format!("it could not be asked: {why}")))
        }
    }
}

/// Evaluates every claim on made-up numbers. Missing runs are not an error.
pub(super) fn rehearse(compiled: &Compiled, numbers: &Numbers) -> Result<(), Problems> {
    let views = Views::of(compiled, numbers);
    for (i, column) in compiled.file.column.iter().enumerate() {
        let engine = asking(compiled, &views, Some(&views), i);
        for (claim, place) in &compiled.claims {
            let drawn = |name: &&String| compiled.file.figure.iter().any(|f| f.name == **name);
            if let Some(name) = claim.figures.iter().find(|name| !drawn(name)) {
                return Err(place.problem("figures", &format!("no figure is called `{name}`")));
            }
            match (
                &claim.untested,
                claim.value.is_empty(),
                claim.holds.is_empty(),
            ) {
                (Some(_), true, true) => continue,
                (Some(_), _, _) => {
                    let why = "a claim that is not tested has no rule: leave out value and holds";
                    return Err(place.problem("untested", why));
                }
                (None, true, _) | (None, _, true) => return Err(place.problem("id", MISSING)),
                _ if asked(claim, column) => check(&engine, claim, place)?,
                _ => {}
            }
        }
    }
    Ok(())
}

fn check(engine: &Engine, claim: &Claim, place: &TableLocation) -> Result<(), Problems> {
    match decide(engine, claim) {
        Err((key, Trouble::Wrong(why))) => Err(place.problem(key, &why)),
        _ => Ok(()),
    }
}

/// An engine that knows the runs of a column and the reference's numbers for them.
fn asking(compiled: &Compiled, views: &Views, reference: Option<&Views>, column: usize) -> Engine {
    let mut engine = compiled.asker();
    views.register(column, &mut engine);
    let theirs = match (&compiled.file.reference, reference) {
        (None, _) => Err("the study has no [reference]"),
        (_, theirs) => Ok(theirs.map(|r| r.column(column))),
    };
    results::register_reference(theirs, &mut engine);
    engine
}

/// Evaluates a claim, or returns the key that failed and the reason.
fn decide(engine: &Engine, claim: &Claim) -> Result<Found, (&'static str, Trouble)> {
    let mut scope = Scope::new();
    let ask = |key: &'static str, text: &str, known: &mut Scope<'_>| {
        let asked = script::compile(engine, text);
        let asked = asked.and_then(|ast| script::value(engine, &ast, known, text));
        asked.map_err(|t| (key, t))
    };
    // The value of the statements is unused: their variables remain in the scope.
    let _ = ask("given", &claim.given, &mut scope)?;
    let value = ask("value", &claim.value, &mut scope)?;
    scope.push_dynamic("value", value.clone());
    let yes = |key: &'static str, answer: &Dynamic| script::truth(answer).map_err(|t| (key, t));
    let answer = ask("holds", &claim.holds, &mut scope)?;
    let holds = yes("holds", &answer)?;
    let in_part = match &claim.in_part {
        Some(text) => {
            let second = ask("in_part", text, &mut scope)?;
            yes("in_part", &second)?
        }
        None => false,
    };
    let detail = match &claim.detail {
        Some(text) => ask("detail", text, &mut scope)?.to_string(),
        None => String::new(),
    };
    Ok(Found {
        verdict: Verdict::of(holds, in_part),
        value,
        detail,
    })
}

fn finding(claim: &Claim, found: Found) -> Finding {
    let measured = script::estimate(&found.value);
    let interval = measured
        .and_then(|e| e.interval)
        .map_or_else(String::new, |i| {
            let [low, high] = i.map(|x| written(claim.unit, x));
            format!("[{low} … {high}]")
        });
    let parts = [interval, found.detail];
    let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).collect();
    // A measure with a number for a single seed. Plain numbers have no seeds.
    let of_one = found.value.clone().try_cast::<Estimate>();
    Finding {
        verdict: found.verdict,
        tentative: of_one.is_some_and(|e| e.n < 2),
        value: shown(claim, &found.value),
        detail: parts.join(" "),
        measured,
        reference: String::new(),
        reference_verdict: None,
        pictures: Vec::new(),
    }
}

fn shown(claim: &Claim, value: &Dynamic) -> String {
    let known: Option<Estimate> = script::estimate(value);
    match (known, value.as_bool()) {
        (Some(e), _) => written(claim.unit, e.value),
        (None, Ok(true)) => "yes".into(),
        (None, Ok(false)) => "no".into(),
        _ => value.to_string(),
    }
}

/// The rule as the page prints it: the text, then the conditions.
fn rule(claim: &Claim) -> String {
    let mut text = claim.rule.clone();
    if !text.is_empty() {
        text += ". ";
    }
    let tidy = |t: &str| t.split_whitespace().collect::<Vec<_>>().join(" ");
    if claim.untested.is_some() {
        return claim.rule.clone();
    }
    text += &format!("It holds where {}", tidy(&claim.holds));
    if let Some(in_part) = &claim.in_part {
        text += &format!("; in part where {}", tidy(in_part));
    }
    text
}
