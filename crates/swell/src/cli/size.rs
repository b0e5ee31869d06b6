//! The size of a picture.

/// Minimum length of a side in pixels: below this, labels cover everything.
const SMALLEST: f64 = 200.0;
/// Maximum length of a side in pixels.
const LARGEST: f64 = 10_000.0;

/// A width and an optional height, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size(pub f64, pub Option<f64>);

impl std::str::FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("`{text}` is no size: write 3.3in, 84mm, 8.4cm, 700px or 3.3x2.5in");
        let units = [
            ("in", 96.0),
            ("mm", 96.0 / 25.4),
            ("cm", 96.0 / 2.54),
            ("px", 1.0),
        ];
        let found = units
            .iter()
            .find_map(|(unit, px)| Some((text.strip_suffix(unit)?, px)));
        let (numbers, px) = found.ok_or_else(wrong)?;
        let sides = numbers.split('x').map(|side| side.trim().parse::<f64>());
        let sides: Vec<f64> = sides.collect::<Result<_, _>>().map_err(|_| wrong())?;
        let fits = |side: &f64| (SMALLEST..=LARGEST).contains(&(side * px));
        match sides[..] {
            [_] | [_, _] if !sides.iter().all(fits) => Err(format!(
                "`{text}` is too small or too large: between {SMALLEST} and {LARGEST} pixels, 96 to the inch"
            )),
            [width] => Ok(Size(width * px, None)),
            [width, height] => Ok(Size(width * px, Some(height * px))),
            _ => Err(wrong()),
        }
    }
}
