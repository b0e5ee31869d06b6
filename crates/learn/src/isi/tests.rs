use super::*;

#[test]
fn a_distribution_is_drawn_as_it_was_measured() {
    let cdf = Cdf::parse("x", "1 5 0.5\n2 6 0.6\n10 10 1\n", 1.0).unwrap();
    let mut rng = Stream::new(1, "cdf");
    let n = 20_000;
    let mut counts = [0u32; 3];
    for _ in 0..n {
        let x = cdf.draw(&mut rng);
        counts[match x {
            0.0..1.0 => 0,
            1.0..2.0 => 1,
            9.0..10.0 => 2,
            _ => panic!("{x} lies in no bin"),
        }] += 1;
    }
    // Binomial standard deviations are at most 71; five of them.
    for (got, want) in counts.iter().zip([0.5, 0.1, 0.4]) {
        assert!(
            (f64::from(*got) - want * f64::from(n)).abs() < 355.0,
            "{counts:?}"
        );
    }
}

#[test]
fn other_files_are_refused_with_their_line() {
    for (text, line) in [
        ("", 0),
        ("1 2\n", 1),
        ("1 1 0.5\n1 2 1\n", 2),
        ("1 1 0.5\n2 2 0.4\n", 2),
        ("1 1 0.5\n2 2 0.8\n", 2),
        ("-1 1 1\n", 1),
        ("nan 1 1\n", 1),
        ("1 1 2\n", 1),
    ] {
        let Err(CdfError::Line { line: got, .. }) = Cdf::parse("x", text, 0.0) else {
            panic!("{text:?} was read");
        };
        assert_eq!(got, line, "{text:?}");
    }
    assert!(matches!(
        model(&[], "x", Provenance::default(), 1),
        Err(CdfError::Missing(_))
    ));
}
