//! Makes a model from a directory of measured distributions: `isi DIRECTORY MODEL.json[.zst] [NOTE]`.
#![expect(clippy::disallowed_methods, reason = "an example opens files")]

mod model;

use std::error::Error;

use swell_traffic::Provenance;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, out, rest @ ..] = &args[..] else {
        return Err("usage: isi DIRECTORY MODEL.json[.zst] [NOTE]".into());
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".cdf") {
            files.push((name.into_owned(), std::fs::read_to_string(&path)?));
        }
    }
    files.sort();
    let provenance = Provenance {
        sources: files.iter().map(|f| f.0.clone()).collect(),
        note: rest.first().cloned().unwrap_or_default(),
        ..Provenance::default()
    };
    let model = model::model(&files, "isi-2pm", provenance, 1)?;
    model.check()?;
    model.write(std::fs::File::create(out)?, out.ends_with(".zst"))?;
    Ok(())
}
