//! Points that figures take from the tables of a run.

use rhai::{Array, Dynamic};

use super::compiled::Compiled;
use super::group::{self, Group};
use super::kept::Points;
use super::script::{self, Trouble};
use super::source::Wrong;
use super::tables::Tables;

/// Maximum number of points kept of a list: more than a picture has pixels.
const SHOWN: usize = 2000;

/// The points that an expression yields for the tables of a combination's run.
pub(super) fn of(
    compiled: &Compiled,
    group: &Group,
    (tables, seconds): (Tables, f64),
    text: &str,
) -> Result<Points, Wrong> {
    let mut known = group::scope_of(compiled, group, tables, seconds);
    let ast = script::compile(&compiled.engine, text).map_err(|t| ("points", t))?;
    let found = script::value(&compiled.engine, &ast, &mut known, text);
    points(found.map_err(|t| ("points", t))?)
}

fn points(found: Dynamic) -> Result<Points, Wrong> {
    let list = |value: Dynamic| {
        let kind = value.type_name();
        let why = format!("a value of type {kind} is not a list of [x, y]");
        value.try_cast::<Array>().ok_or_else(|| wrong(&why))
    };
    let mut all = Vec::new();
    for item in list(found)? {
        let pair = list(item)?;
        let [first, second] = &pair[..] else {
            return Err(wrong("a point is [x, y]"));
        };
        let both = script::number(first).zip(script::number(second));
        let (x, y) = both.ok_or_else(|| wrong("a point is [x, y], two numbers"))?;
        if x.is_finite() && y.is_finite() {
            all.push([x, y]);
        }
    }
    all.sort_by(|a, b| a[0].total_cmp(&b[0]));
    Ok(thinned(all))
}

/// Thins a long list: keeps the minimum and the maximum of each group of neighbours; groups are equally long.
fn thinned(all: Points) -> Points {
    if all.len() <= SHOWN {
        return all;
    }
    let neighbours = all.chunks(all.len().div_ceil(SHOWN / 2));
    let ends = neighbours.flat_map(|some| {
        let rank = |a: &usize, b: &usize| some[*a][1].total_cmp(&some[*b][1]);
        let least = (0..some.len()).min_by(rank).unwrap_or(0);
        let most = (0..some.len()).max_by(rank).unwrap_or(0);
        let pair = [least.min(most), least.max(most)];
        let different = if least == most { 1 } else { 2 };
        pair.into_iter().take(different).map(|i| some[i])
    });
    ends.collect()
}

pub(super) fn wrong(why: &str) -> Wrong {
    ("points", Trouble::Wrong(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_keeps_its_extremes() {
        let list = |n: usize| -> Points { (0..n).map(|i| [i as f64, (i as f64).sin()]).collect() };
        assert_eq!(thinned(list(2000)), list(2000));
        for n in [2001, 3999, 20_000] {
            let mut all = list(n);
            all[1234][1] = 9.0;
            all[1235][1] = -9.0;
            let few = thinned(all.clone());
            assert!(few.len() <= 2000 && few.len() > 1000, "{n}: {}", few.len());
            assert!(few.is_sorted_by(|a, b| a[0] < b[0]));
            assert!(few.contains(&[1234.0, 9.0]) && few.contains(&[1235.0, -9.0]));
            assert!(few.iter().all(|p| all.contains(p)));
        }
    }
}
