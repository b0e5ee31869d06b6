//! An experiment file.
#![no_main]

use std::path::Path;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(file) = swell_experiment::file::read(text, "fuzz") {
        let resolved = file.to_toml();
        let again = swell_experiment::file::read(&resolved, "resolved");
        assert_eq!(
            again.ok().as_ref(),
            Some(&file),
            "the resolved file says the same"
        );
    } else if let Err(problems) =
        swell_experiment::Plan::resolve(text, "fuzz", Path::new("/nonexistent"))
    {
        assert!(!problems.to_string().is_empty());
    }
});
