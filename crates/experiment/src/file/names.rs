//! Hints for names that are not known.

/// Message and hint for an unknown `name`.
pub fn unknown_name(what: &str, name: &str, known: &[&str]) -> (String, String) {
    (
        format!("unknown {what} `{name}`"),
        suggest(name, known, "known"),
    )
}

/// A hint: "did you mean", or the list of known names.
pub fn suggest(name: &str, known: &[&str], label: &str) -> String {
    // Names with a distance above a third of their length are not considered typing errors.
    let close = known
        .iter()
        .map(|k| match k.eq_ignore_ascii_case(name) {
            true => (0, k),
            false => (strsim::osa_distance(&name.to_lowercase(), k), k),
        })
        .filter(|(distance, k)| {
            let shorter = k.chars().count().min(name.chars().count());
            *distance <= shorter.div_ceil(3)
        })
        .min_by_key(|(distance, _)| *distance);
    match close {
        Some((_, k)) => format!("did you mean `{k}`?"),
        None if known.is_empty() => format!("{label}: none"),
        None => format!("{label}: {}", known.join(", ")),
    }
}
