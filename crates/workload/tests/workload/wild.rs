//! For any valid model, the workload carries out the whole model.

mod models;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_sound_model_is_played_to_its_end(
        data in proptest::collection::vec(any::<u8>(), 0..600),
        seed in 0..1_000u64,
    ) {
        models::played(&models::model(&data), seed);
    }
}
