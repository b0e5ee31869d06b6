//! Templates: keys to set, with expressions in `${...}`.

use rhai::{Dynamic, Engine, Scope};

use super::script::{self, Trouble};

/// `text` with each `${...}` replaced by its value.
pub(super) fn filled(
    engine: &Engine,
    text: &str,
    scope: &mut Scope<'_>,
) -> Result<String, Trouble> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("${") {
        let (before, after) = rest.split_at(begin);
        let Some(end) = closing(&after[2..]) else {
            return Err(Trouble::Wrong("`${` without its `}`".into()));
        };
        let inner = &after[2..2 + end];
        let ast = script::compile(engine, inner)?;
        out.push_str(before);
        out.push_str(&written(&script::value(engine, &ast, scope, inner)?)?);
        rest = &after[2 + end + 1..];
    }
    Ok(out + rest)
}

/// The position of the brace that closes the one opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| match c {
        '{' => {
            depth += 1;
            None
        }
        '}' if depth == 0 => Some(at),
        '}' => {
            depth -= 1;
            None
        }
        _ => None,
    })
}

/// A value in the notation of an experiment file; whole numbers have no decimal point.
fn written(value: &Dynamic) -> Result<String, Trouble> {
    if let Some(x) = script::number(value) {
        if !x.is_finite() {
            return Err(Trouble::Wrong(format!("{x} is not a number to set")));
        }
        return Ok(x.to_string());
    }
    if let Ok(b) = value.as_bool() {
        return Ok(b.to_string());
    }
    match value.clone().into_string() {
        Ok(text) => Ok(text),
        Err(kind) => Err(Trouble::Wrong(format!("{kind} is nothing to set"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_braces_is_computed() {
        let engine = script::engine();
        let mut scope = Scope::new();
        scope.push("clients", 30.0).push("name", "reno".to_owned());
        let mut fill = |text: &str| filled(&engine, text, &mut scope);
        assert_eq!(fill("a.sources=${clients}").unwrap(), "a.sources=30");
        assert_eq!(
            fill("a.rate=${clients * 1.2}Mbit, ${name}, ${if clients > 3 { 1 } else { 2 }}")
                .unwrap(),
            "a.rate=36Mbit, reno, 1"
        );
        assert_eq!(fill("q={ kind = 'red' }").unwrap(), "q={ kind = 'red' }");
        assert!(fill("${clients").is_err());
        assert!(fill("${1.0 / 0.0}").is_err());
        assert!(fill("${client}").is_err());
    }
}
