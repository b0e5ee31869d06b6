//! Lists of KEY=VALUE, as typed.

/// Splits each word into key and value, in their order.
///
/// # Errors
/// If a word is no KEY=VALUE, or a key is there twice: one of the two would be ignored.
pub(crate) fn pairs<'t>(
    words: impl IntoIterator<Item = &'t str>,
) -> Result<Vec<(&'t str, &'t str)>, String> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("`{word}` is no KEY=VALUE"))?;
        if all.iter().any(|(other, _)| *other == key) {
            return Err(format!("`{key}` is there twice"));
        }
        all.push((key, value));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_there_once() {
        assert_eq!(pairs(["a=1", "b=x=y"]).unwrap(), [("a", "1"), ("b", "x=y")]);
        assert_eq!(pairs(["a=1", "a=2"]).unwrap_err(), "`a` is there twice");
        assert_eq!(pairs(["a"]).unwrap_err(), "`a` is no KEY=VALUE");
    }
}
