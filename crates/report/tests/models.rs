//! Pictures of the bundled models.

use std::path::Path;

use swell_report::chart::Canvas;
use swell_report::{ModelPicture, model_html, png};
use swell_traffic::Model;

fn bundled() -> Vec<Model> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("the models are part of the repository")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.to_string_lossy().contains(".json"))
        .collect();
    files.sort();
    let read = |path| Model::from_slice(&std::fs::read(path).expect("the file can be read"));
    files
        .iter()
        .map(|f| read(f).expect("a bundled model is valid"))
        .collect()
}

#[test]
fn every_bundled_model_has_its_pictures() {
    let models = bundled();
    assert!(!models.is_empty());
    for model in &models {
        let page = model_html(model);
        assert_eq!(page, model_html(model), "equal input, equal bytes");
        assert!(!page.contains(" of ."), "{}: no trace is named", model.name);
        assert!(
            page.len() < 2_000_000,
            "{}: {} bytes",
            model.name,
            page.len()
        );
        assert!(page.contains("<h1>"));
        for picture in ModelPicture::ALL {
            assert!(page.contains(&format!("id=\"{}\"", picture.name())));
            let svg = picture.svg(model, &Canvas::file(720.0, 380.0));
            assert!(!svg.contains("NaN"), "{} of {}", picture.name(), model.name);
            let (bytes, _) = png(&svg, 1.0).expect("our own pictures can be drawn");
            assert!(bytes.len() > 1000);
        }
        let name = format!("model-{}.html", model.name);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(path, page).expect("the target directory can be written");
    }
}

/// The curve of response sizes matches a plain count over the model.
#[test]
fn the_curve_of_response_sizes_is_the_share_of_responses() {
    use swell_traffic::Exchange;
    for model in bundled() {
        let svg = ModelPicture::Sizes.svg(&model, &Canvas::file(720.0, 380.0));
        for (index, class) in model.classes.iter().enumerate() {
            let responses = model
                .sessions
                .iter()
                .filter(|s| s.class as usize == index)
                .flat_map(|s| &s.groups)
                .flat_map(|g| &g.connections)
                .map(|c| match &c.exchange {
                    Exchange::Sequential(turns) => turns.iter().filter(|t| t.response > 0).count(),
                    Exchange::Concurrent { down, .. } => {
                        down.iter().filter(|d| d.bytes > 0).count()
                    }
                    Exchange::Attempt { .. } | Exchange::Datagrams(_) => 0,
                })
                .sum::<usize>();
            let drawn = format!("data-name=\"{}\"", class.name);
            if svg.contains(&drawn) {
                let digits: String = svg
                    .split(&format!(">{}<tspan", class.name))
                    .nth(1)
                    .and_then(|rest| rest.split("n = ").nth(1))
                    .map(|rest| rest.split('<').next().unwrap_or(""))
                    .unwrap_or("")
                    .chars()
                    .filter(char::is_ascii_digit)
                    .collect();
                assert_eq!(
                    digits,
                    responses.to_string(),
                    "{} in {}",
                    class.name,
                    model.name
                );
            }
        }
    }
}
