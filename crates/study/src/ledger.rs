//! The ledger: the claims of a paper, what the paper says, what our runs show, and a verdict by a rule that was
//! written down in advance.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Estimate;

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ClaimVerdict")]
pub enum Verdict {
    /// As stated, with the stated numbers.
    Holds,
    /// In direction, not in the stated numbers or not everywhere.
    InPart,
    /// Not even in direction.
    DoesNotHold,
    /// The runs that it needs are not there.
    NotTested,
}

impl Verdict {
    /// The better of "holds" and "holds in part" that is true, or "does not hold".
    pub fn of(holds: bool, in_part: bool) -> Verdict {
        match (holds, in_part) {
            (true, _) => Verdict::Holds,
            (false, true) => Verdict::InPart,
            (false, false) => Verdict::DoesNotHold,
        }
    }

    /// The verdict in as few words as possible.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::InPart => "holds in part",
            Verdict::DoesNotHold => "does not",
            Verdict::NotTested => "not tested",
        }
    }
}

/// What was found about a claim under one set of circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// By the claim's rule.
    pub verdict: Verdict,
    /// Whether it rests on runs of a single seed, so that chance may have made it.
    pub tentative: bool,
    /// The number that decides, with its unit; may be empty.
    pub value: String,
    /// Its interval, where it was found and what else is to be said; may be empty.
    pub detail: String,
    /// The number itself.
    pub measured: Option<Estimate>,
    /// The same number from a reference simulator, with its unit; may be empty.
    pub reference: String,
    /// What the same rule makes of the reference's numbers; none where they do not answer it.
    pub reference_verdict: Option<Verdict>,
    /// Names of the study's pictures that show it.
    pub pictures: Vec<String>,
}

impl Finding {
    /// The finding for missing runs.
    pub fn not_tested() -> Finding {
        Finding {
            verdict: Verdict::NotTested,
            tentative: false,
            value: String::new(),
            detail: String::new(),
            measured: None,
            reference: String::new(),
            reference_verdict: None,
            pictures: Vec::new(),
        }
    }

    /// The verdict in words, and whether it is tentative.
    pub fn words(&self) -> String {
        match (self.tentative, self.verdict) {
            (true, verdict) if verdict != Verdict::NotTested => {
                format!("tentative: {}", verdict.words())
            }
            (_, verdict) => verdict.words().to_owned(),
        }
    }

    /// The reference's verdict and number in words; empty if it has neither.
    pub fn beside(&self) -> Vec<&str> {
        let verdict = self.reference_verdict.map(Verdict::words);
        let number = Some(&*self.reference).filter(|n| !n.is_empty());
        verdict.into_iter().chain(number).collect()
    }
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// Its name, `S2.4a`.
    pub id: String,
    /// What is claimed, in a few words.
    pub claim: String,
    /// The paper's figure or words; short.
    pub paper: String,
    /// By which rule the verdicts are found.
    pub rule: String,
    /// One for each column of the ledger.
    pub findings: Vec<Finding>,
}

/// Claims in rows, circumstances in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ledger {
    /// What it holds.
    pub title: String,
    /// Circumstances: short names.
    pub columns: Vec<String>,
    /// The claims.
    pub entries: Vec<Entry>,
}

impl Ledger {
    /// How many findings have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let all = self.entries.iter().flat_map(|e| &e.findings);
        all.filter(|f| f.verdict == verdict).count()
    }

    /// Claims on which the reference's numbers and ours disagree, each with the columns where they do; `None` if no rule
    /// was evaluated on a reference.
    pub fn apart(&self) -> Option<Vec<String>> {
        let mut asked = false;
        let mut apart = Vec::new();
        for entry in &self.entries {
            let mut columns = Vec::new();
            for (column, finding) in self.columns.iter().zip(&entry.findings) {
                let Some(theirs) = finding.reference_verdict else {
                    continue;
                };
                asked = true;
                if ![theirs, Verdict::NotTested].contains(&finding.verdict) {
                    columns.push(column.as_str());
                }
            }
            if !columns.is_empty() {
                apart.push(format!("{} ({})", entry.id, columns.join(", ")));
            }
        }
        asked.then_some(apart)
    }
}
