//! Generates the list of bundled models and experiments, which become part of the program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Symbolic links to folders of the repository; a package contains the files themselves.
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?).join("bundled.rs");
    let mut code = String::new();
    // A model file is JSON, plain or compressed (docs/model.md). Other files in the folder are ignored.
    let models = list(&root.join("models"), &[".json", ".json.zst"])?;
    let flow_models = list(&root.join("models/flow-level"), &[".json", ".json.zst"])?;
    let experiments = list(&root.join("experiments"), &[".toml"])?;
    for (constant, files) in [
        ("MODELS", models),
        ("FLOW_MODELS", flow_models),
        ("EXPERIMENTS", experiments),
    ] {
        let _ = writeln!(code, "pub(super) const {constant}: &[(&str, &[u8])] = &[");
        for (name, path) in files {
            let _ = writeln!(code, "    ({name:?}, include_bytes!({path:?})),");
        }
        let _ = writeln!(code, "];");
    }
    fs::write(out, code)
}

/// Names (without suffix) and paths of the files in `dir`, by name. A missing folder is empty.
fn list(dir: &Path, suffixes: &[&str]) -> io::Result<Vec<(String, PathBuf)>> {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut found = Vec::new();
    if !dir.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or("")
            .to_owned();
        if let Some(stem) = suffixes.iter().find_map(|s| name.strip_suffix(s)) {
            found.push((stem.to_owned(), fs::canonicalize(&path)?));
        }
    }
    found.sort();
    Ok(found)
}
