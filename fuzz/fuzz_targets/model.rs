//! A traffic model's file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(model) = swell_traffic::Model::from_slice(data) else {
        return;
    };
    assert!(
        model.check().is_ok(),
        "a model that was read is one that may be written"
    );
    let again = swell_traffic::Model::from_slice(model.to_json().as_bytes());
    assert_eq!(
        again.ok().as_ref(),
        Some(&model),
        "what is written is what was read"
    );
});
