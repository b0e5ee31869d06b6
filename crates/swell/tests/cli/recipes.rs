//! Runs every recipe of `experiments/programs` once, with real programs and without background.

#![expect(clippy::print_stdout, reason = "a test that is tried again says why")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use toml::{Table, Value};

use super::{Scratch, run, text};
use crate::under::emulates;

/// Where the recipes are.
fn recipes() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/programs");
    let files = std::fs::read_dir(folder).unwrap();
    let mut all: Vec<PathBuf> = files.map(|f| f.unwrap().path()).collect();
    all.sort();
    all
}

/// The programs that a recipe requires in its first line.
fn needs(text: &str) -> Vec<&str> {
    let first = text.lines().next().unwrap_or_default();
    let needs = first.strip_prefix("# needs: ").expect("the first line");
    needs.split_whitespace().collect()
}

/// The shortened recipe: one run without background, in which its clients run once.
fn cut_short(text: &str) -> String {
    let mut recipe: Table = text.parse().unwrap();
    let set = |table: &mut Value, key: &str, value: Value| {
        table.as_table_mut().unwrap().insert(key.into(), value);
    };
    for foreground in recipe["foreground"].as_array_mut().unwrap() {
        set(foreground, "count", 1.into());
    }
    let backgrounds = recipe["background"].as_array_mut().unwrap();
    backgrounds.retain(|b| b["kind"].as_str() == Some("none"));
    assert_eq!(backgrounds.len(), 1, "a recipe compares with no background");
    set(&mut recipe["run"], "replications", 1.into());
    set(&mut recipe["run"], "warmup", "1s".into());
    set(&mut recipe["run"], "duration", "60s".into());
    recipe.to_string()
}

/// Number of requests in the only row of the table.
fn requests(said: &str) -> Option<u32> {
    let row = said.lines().find(|l| l.starts_with("none "))?;
    row.split_whitespace().nth(2)?.parse().ok()
}

#[test]
fn every_recipe_runs() {
    if !emulates(&Scratch::new("recipes")) {
        return;
    }
    let left = Mutex::new(recipes());
    assert!(left.lock().unwrap().len() >= 10);
    // The programs are mostly idle, so several recipes run concurrently.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(path) = { left.lock().unwrap().pop() } {
                    let recipe = std::fs::read_to_string(&path).unwrap();
                    let name = path.file_stem().unwrap().to_str().unwrap();
                    if !swell_needs::programs(&needs(&recipe)) {
                        continue;
                    }
                    let dir = Scratch::new(&format!("recipe-{name}"));
                    dir.write("recipe.toml", &cut_short(&recipe));
                    let again = || run(&dir, &["run", "recipe.toml", "-o", "out", "--fresh"]);
                    let mut out = again();
                    // External programs have their own time-outs and may give up on a busy machine: one retry is allowed.
                    if text(&out.stderr).contains("[client-failed]") {
                        println!("{name} once more: {}", text(&out.stderr));
                        out = again();
                    }
                    let (said, complained) = (text(&out.stdout), text(&out.stderr));
                    assert!(out.status.success(), "{name}: {said}\n{complained}");
                    assert!(
                        requests(&said).is_some_and(|n| n > 0),
                        "{name}: {said}\n{complained}"
                    );
                    assert!(
                        !complained.contains("[client-failed]"),
                        "{name}: {said}\n{complained}"
                    );
                }
            });
        }
    });
}
