//! Colours and dashes.
//!
//! The hues are those of Okabe & Ito, "Color Universal Design" (2008), which remain distinguishable with the common
//! colour-vision deficiencies. Purple, sky and orange are slightly darker, so that a line has a contrast of 3:1 against
//! white (WCAG 2.2, success criterion 1.4.11). Every slot also has its own dash pattern and hatch for greyscale prints.

/// Number of slots of backgrounds: slot 0 is the reference (no background), drawn in grey.
pub const SLOTS: usize = 8;

/// The slot of foreground traffic, which no background has.
pub const FOREGROUND: usize = SLOTS;

/// How one series is drawn.
struct Look {
    light: &'static str,
    dark: &'static str,
    dash: &'static str,
}

const LOOKS: [Look; SLOTS + 1] = [
    look("#6f6f6f", "#a6a6a6", "1.5 3.5"),
    look("#0072b2", "#5db0ee", "9 3.5"),
    look("#00875f", "#35c49a", "9 3 2 3"),
    look("#d55e00", "#ff8f4f", "none"),
    look("#b0568c", "#e39cc8", "4.5 2.5"),
    look("#2f8fc4", "#8fd3f7", "14 3 2 3 2 3"),
    look("#b37a00", "#f0b232", "3 2 9 2"),
    look("#7a4a21", "#c8966b", "6 2 1.5 2"),
    look("#1f1f1f", "#f2f2f2", "1 1"),
];

const fn look(light: &'static str, dark: &'static str, dash: &'static str) -> Look {
    Look { light, dark, dash }
}

/// Colour variables other than series: (name, light, dark).
const VARIABLES: [(&str, &str, &str); 7] = [
    ("paper", "#ffffff", "#14171a"),
    ("ink", "#1b1f23", "#e7e9ea"),
    ("soft", "#5a6168", "#a4acb3"),
    ("grid", "#e4e7ea", "#2b3137"),
    ("rule", "#9aa1a8", "#6b747c"),
    ("wash", "#f4f6f7", "#1c2024"),
    ("alarm", "#b3261e", "#ff8a80"),
];

/// The style rules of every chart, with colours as variables.
const CHART_CSS: &str = include_str!("chart.css");

/// Series slots for backgrounds of the given roles, distinct as long as there are enough.
pub fn slots(roles: &[Role]) -> Vec<usize> {
    let mut used = [0_u32; SLOTS];
    roles
        .iter()
        .map(|role| {
            let preferred: &[usize] = match role {
                Role::Reference => return 0,
                Role::Learnt => &[3, 4, 6, 5, 7, 1, 2],
                Role::Other => &[1, 2, 5, 7, 6, 4, 3],
            };
            let slot = preferred
                .iter()
                .copied()
                .min_by_key(|&s| used[s])
                .unwrap_or(1);
            used[slot] += 1;
            slot
        })
        .collect()
}

/// The role of a background in the comparison, which determines its look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The reference of the comparison: no background.
    Reference,
    /// A learnt model, drawn with a solid line.
    Learnt,
    /// Anything else.
    Other,
}

/// Colour of a slot on white.
pub(crate) fn colour(slot: usize) -> &'static str {
    LOOKS[slot % LOOKS.len()].light
}

/// Dashes of a slot: lengths drawn and skipped in turn; a solid line is one dash without gap.
pub(crate) fn dash(slot: usize) -> Vec<f64> {
    let lengths = LOOKS[slot % LOOKS.len()].dash.split(' ');
    let lengths: Option<Vec<f64>> = lengths.map(|l| l.parse().ok()).collect();
    lengths.unwrap_or_else(|| vec![1.0, 0.0])
}

fn variables(dark: bool) -> String {
    let mut out = String::new();
    for (name, l, d) in VARIABLES {
        out.push_str(&format!("--{name}:{};", if dark { d } else { l }));
    }
    for (i, look) in LOOKS.iter().enumerate() {
        out.push_str(&format!(
            "--s{i}:{};",
            if dark { look.dark } else { look.light }
        ));
    }
    out
}

/// The style rules of the slots.
fn series_rules() -> String {
    LOOKS
        .iter()
        .enumerate()
        .map(|(i, look)| {
            format!(
                ".c{i}{{stroke:var(--s{i})}}.f{i}{{fill:var(--s{i})}}.d{i}{{stroke-dasharray:{}}}",
                look.dash
            )
        })
        .collect()
}

/// Style for a page: light and dark by the reader's preference, light in print.
pub(crate) fn page_css() -> String {
    format!(
        ":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}{}{}",
        variables(false),
        variables(true),
        CHART_CSS,
        series_rules()
    )
}

/// Style for a standalone picture: light, and without variables, which some renderers do not support.
pub(crate) fn standalone_css() -> String {
    let mut css = format!("{CHART_CSS}{}", series_rules());
    for (name, light, _) in VARIABLES {
        css = css.replace(&format!("var(--{name})"), light);
    }
    for (i, look) in LOOKS.iter().enumerate() {
        css = css.replace(&format!("var(--s{i})"), look.light);
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Relative luminance and contrast ratio as WCAG 2.2 defines them.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |hex: &str| {
            let part = |i: usize| {
                let v = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
                if v <= 0.04045 {
                    v / 12.92
                } else {
                    libm::pow((v + 0.055) / 1.055, 2.4)
                }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (x, y) = (luminance(a), luminance(b));
        (x.max(y) + 0.05) / (x.min(y) + 0.05)
    }

    #[test]
    fn every_line_stands_out_from_its_paper() {
        for look in &LOOKS {
            assert!(
                contrast(look.light, VARIABLES[0].1) >= 3.0,
                "{}",
                look.light
            );
            assert!(contrast(look.dark, VARIABLES[0].2) >= 3.0, "{}", look.dark);
        }
        for text in [1, 2, 6] {
            assert!(contrast(VARIABLES[text].1, VARIABLES[0].1) >= 4.5);
            assert!(contrast(VARIABLES[text].2, VARIABLES[0].2) >= 4.5);
        }
    }

    #[test]
    fn dashes_differ_and_slots_are_not_shared_early() {
        let dashes: BTreeSet<&str> = LOOKS.iter().map(|l| l.dash).collect();
        assert_eq!(dashes.len(), LOOKS.len());
        let colours: BTreeSet<&str> = LOOKS.iter().map(|l| l.light).collect();
        assert_eq!(colours.len(), LOOKS.len());
        use Role::{Learnt, Other, Reference};
        let roles = [
            Reference, Other, Other, Learnt, Learnt, Other, Other, Learnt,
        ];
        let got: BTreeSet<usize> = slots(&roles).into_iter().collect();
        assert_eq!(got.len(), SLOTS);
        assert!(!got.contains(&FOREGROUND));
        assert_eq!(slots(&[Reference, Other, Other, Learnt]), [0, 1, 2, 3]);
        assert!(slots(&[Other; 100]).iter().all(|&s| s < SLOTS));
    }

    #[test]
    fn a_picture_on_its_own_has_no_variables() {
        assert!(!standalone_css().contains("var("));
    }
}
