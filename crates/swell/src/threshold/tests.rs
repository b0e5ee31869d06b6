use super::*;

fn read(text: &str) -> Result<Threshold, Unreadable> {
    text.parse()
}

#[test]
fn thresholds_read() {
    // p99 is a percentile of the measure.
    assert_eq!(
        read("p99.slowdown > 2").unwrap().of,
        read("time.p99.ratio > 2").unwrap().of
    );
    let t = read("p95.slowdown.high > 1.5").unwrap();
    assert_eq!((t.of.clone(), t.end), (Of::Slowdown(3), IntervalEnd::High));
    assert!(t.holds(1.6) && t.holds(f64::INFINITY) && !t.holds(1.5));
    let named = read("my:back:p50.seconds<=0.25").unwrap();
    assert_eq!(named.name.as_deref(), Some("my:back"));
    assert!(named.holds(0.25) && !named.holds(0.26) && named.end == IntervalEnd::Value);
    let of = |text: &str| read(text).map(|own| (own.of, own.end)).unwrap();
    let p99 = || "p99".to_owned();
    assert_eq!(
        of("p99.value > 5"),
        (Of::Value(p99(), None), IntervalEnd::Value)
    );
    assert_eq!(
        of("p99.ratio.high > 5"),
        (Of::Ratio(p99(), None), IntervalEnd::High)
    );
    assert_eq!(
        of("x:frame rate.p5.value.low < 24"),
        (Of::Value("frame rate".into(), Some(0.05)), IntervalEnd::Low)
    );
    assert_eq!(
        of("v1.2 errors.ratio.value > 2"),
        (Of::Ratio("v1.2 errors".into(), None), IntervalEnd::Value)
    );
}

/// A background of which this is known, and why nothing is withheld.
fn known(requests: usize, withheld: &[&str]) -> BackgroundVerdict {
    let estimate = |value: f64| {
        (requests > 0).then_some(Estimate {
            value,
            low: value,
            high: value,
            level: LEVEL,
            replications: 5,
        })
    };
    let quantile = |&p: &f64| swell_verdict::Quantile {
        p,
        seconds: estimate(0.2),
        at_least: None,
        slowdown: estimate(1.0),
    };
    BackgroundVerdict {
        background: "learnt".into(),
        kind: "learnt",
        requests,
        unfinished: 0,
        failed: 0,
        replications: 5,
        load_bps: [0.0; 2],
        offered_bps: [0.0; 2],
        requested_bps: [None; 2],
        turned: false,
        quantiles: PERCENTILES.iter().map(quantile).collect(),
        judged: Vec::new(),
        beside: Vec::new(),
        withheld: withheld.iter().map(|&w| w.into()).collect(),
        open: Vec::new(),
        remedy: None,
        matters: Some(Answer::Unclear),
    }
}

/// A verdict on foregrounds of these names.
fn verdict(foregrounds: Vec<(&str, BackgroundVerdict)>) -> Verdict {
    let of = |(name, background): (&str, BackgroundVerdict)| ForegroundVerdict {
        foreground: name.into(),
        reference: Some("none".into()),
        backgrounds: vec![background],
        comparisons: Vec::new(),
        matters: Answer::Unclear,
        application_failed: false,
        parametric_enough: None,
        suite: None,
        sureness: swell_verdict::Sureness {
            replications: 5,
            widest: None,
            warnings: 0,
            replications_wanted: None,
        },
        sentence: String::new(),
        paragraphs: Vec::new(),
        doubts: Vec::new(),
    };
    Verdict {
        foregrounds: foregrounds.into_iter().map(of).collect(),
        doubts: Vec::new(),
        margin: 0.1,
    }
}

/// An experiment with two foregrounds that have requests, and one that has a measure of its own.
fn experiment() -> File {
    let file = "name = 'x'\n[network]\nrate = '10Mbit'\n\
         [[foreground]]\nname = 'page'\nkind = 'web'\nobject = '1kB'\n\
         [[foreground]]\nname = 'other'\nkind = 'web'\nobject = '1kB'\n\
         [[foreground]]\nname = 'call'\nkind = 'voice'\n\
         [[background]]\nname = 'none'\nkind = 'none'\n\
         [[background]]\nname = 'learnt'\nkind = 'poisson'\nrate = '1Mbit'";
    swell_experiment::file::read(file, "x").unwrap()
}

/// Runs without the traffic that was asked for pass no threshold, whatever their numbers are.
#[test]
fn numbers_of_no_experiment_pass_nothing() {
    let crossed = |text: &str, withheld: &[&str]| {
        let verdict = verdict(vec![("page", known(100, withheld))]);
        read(text).unwrap().crossed(&experiment(), &verdict)
    };
    for fine in [
        "p95.slowdown.high > 1.5",
        "p95.seconds > 1",
        "failures.value > 0.1",
    ] {
        assert!(crossed(fine, &[]).is_empty());
        let lines = crossed(fine, &["learnt sent nothing"]);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("learnt sent nothing"), "{lines:?}");
    }
    let lines = crossed("p95.slowdown > 0.5", &["learnt sent nothing"]);
    assert!(lines[0].contains("has 1"), "{lines:?}");
}

/// That nothing is known of a foreground is no reason to pass, unless it could not have the measure.
#[test]
fn what_should_be_known_and_is_not_passes_nothing() {
    let late = || known(0, &["all runs were late"]);
    let crossed = |text: &str| {
        let verdict = verdict(vec![
            ("page", known(100, &[])),
            ("other", late()),
            ("call", late()),
        ]);
        read(text).unwrap().crossed(&experiment(), &verdict)
    };
    for (text, whose) in [
        ("p95.slowdown.high > 1.5", "other against learnt: all runs"),
        ("learnt:p50.seconds > 1", "other against learnt: all runs"),
        ("MOS.value < 3", "call against learnt"),
    ] {
        let lines = crossed(text);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("cannot be told of"), "{lines:?}");
        assert!(lines[0].contains(whose), "{lines:?}");
    }
    for derived in ["failures.ratio > 2", "time of 10kB.p50.ratio > 2"] {
        let lines = crossed(derived);
        assert!(lines[0].contains("other against learnt"), "{lines:?}");
    }
    assert!(crossed("page:p95.slowdown > 1.5").is_empty());
}

#[test]
fn names_that_do_not_exist_are_refused_before_the_runs() {
    let file = "name = 'x'\n[network]\nrate = '10Mbit'\n[[foreground]]\nname = 'page'\nkind = 'web'\nobject = '1kB'\n\
         [[background]]\nname = 'none'\nkind = 'none'\n[[background]]\nname = 'learnt'\nkind = 'poisson'\nrate = '1Mbit'";
    let file = swell_experiment::file::read(file, "x").unwrap();
    let check = |text: &str| super::check(&[read(text).unwrap()], &file);
    for fine in ["", "page:", "learnt:", "page:learnt:", "page : learnt :"] {
        check(&format!("{fine}p90.slowdown > 1")).unwrap();
    }
    for (wrong, hint) in [
        ("lernt", "did you mean `learnt`?"),
        ("page:lernt", "did you mean `page:learnt`?"),
        ("nothing", "there are: none, learnt, page"),
    ] {
        let fail = check(&format!("{wrong}:p90.slowdown > 1")).unwrap_err();
        assert_eq!(crate::fail::code(&fail), 2);
        assert!(fail.to_string().contains(&format!("`{wrong}`")), "{fail}");
        assert_eq!(fail.hint.as_deref(), Some(hint));
    }
    for reference in ["none", "page:none"] {
        let fail = check(&format!("{reference}:p90.slowdown > 1")).unwrap_err();
        assert!(
            fail.to_string().contains("`none` is what the others"),
            "{fail}"
        );
        assert_eq!(
            fail.hint.as_deref(),
            Some("name another background, or take its .seconds")
        );
        check(&format!("{reference}:p90.seconds > 1")).unwrap();
        // p99 is known in comparisons only.
        for p99 in ["seconds", "slowdown"] {
            let refused = check(&format!("{reference}:p99.{p99} > 1")).unwrap_err();
            let hint = refused.hint.as_deref().unwrap();
            assert!(hint.contains("p5, p50, p90 and p95 are known"), "{hint}");
        }
        for other in ["mean time.ratio", "request rate.value", "failures.ratio"] {
            let refused = check(&format!("{reference}:{other} > 1")).unwrap_err();
            assert_eq!(refused.hint.as_deref(), Some("name another background"));
        }
    }
}

/// A background without one failed request, whose p95 is only known to be at least `low` times as long.
fn bound(low: f64) -> BackgroundVerdict {
    let at_least = Estimate {
        value: low,
        low,
        high: f64::INFINITY,
        level: LEVEL,
        replications: 2,
    };
    let quantile = |p| swell_verdict::Quantile {
        p,
        seconds: None,
        at_least: Some(low),
        slowdown: Some(at_least),
    };
    BackgroundVerdict {
        background: "learnt".into(),
        kind: "learnt",
        requests: 100,
        unfinished: 100,
        failed: 0,
        replications: 2,
        load_bps: [0.0; 2],
        offered_bps: [0.0; 2],
        requested_bps: [None; 2],
        turned: false,
        quantiles: PERCENTILES.map(quantile).into(),
        judged: Vec::new(),
        beside: Vec::new(),
        withheld: Vec::new(),
        open: Vec::new(),
        remedy: None,
        matters: Some(Answer::Yes),
    }
}

#[test]
fn what_is_only_a_bound_never_passes_for_a_number() {
    let tested = |text: &str, b: &BackgroundVerdict| read(text).unwrap().tested(b, false);
    // Two runs in which nothing finished: "at least 0.14 times".
    let hang = bound(0.14);
    assert_eq!(tested("p95.slowdown > 3", &hang), Tested::Unknown);
    assert_eq!(tested("p95.slowdown < 0.1", &hang), Tested::Passes);
    assert_eq!(
        tested("p95.slowdown.high > 3", &hang),
        Tested::Holds(f64::INFINITY)
    );
    assert_eq!(tested("p95.slowdown > 3", &bound(5.0)), Tested::Holds(5.0));
    assert_eq!(tested("p95.slowdown < 9", &bound(5.0)), Tested::Unknown);
    assert_eq!(tested("p95.slowdown < 4", &bound(5.0)), Tested::Passes);
    assert_eq!(tested("p50.seconds < 4", &bound(5.0)), Tested::Passes);
    assert_eq!(tested("p50.seconds.high < 4", &bound(5.0)), Tested::Passes);
    assert_eq!(tested("p50.seconds > 4", &bound(5.0)), Tested::Holds(5.0));
    assert_eq!(tested("p50.seconds < 9", &bound(5.0)), Tested::Unknown);
    assert_eq!(tested("p50.seconds.low < 9", &bound(5.0)), Tested::Unknown);
    // Where none failed, the number is known.
    assert_eq!(tested("failures.value > 0.05", &hang), Tested::Passes);
    assert_eq!(tested("failures.ratio.high > 1.5", &hang), Tested::Passes);
}

#[test]
fn mistakes_are_told_with_their_column() {
    let column = |text: &str| read(text).unwrap_err().column;
    assert_eq!(column("p95.slowdown"), 13);
    assert_eq!(column("p98.slowdown > 1"), 1);
    assert_eq!(column("p95.speed > 1"), 5);
    assert_eq!(column("p95 > 1"), 5);
    assert_eq!(column("p95.slowdown.mid > 1"), 14);
    assert_eq!(column("p95.slowdown > many"), 15);
    assert_eq!(column(".ratio > 1"), 1);
    assert_eq!(column("p99.ratio.low.er > 1"), 15);
    assert_eq!(column(""), 1);
    assert_eq!(column("é: p95.slowdown > NaN"), 19);
}

/// A mean whose ratio is not known is not a median.
#[test]
fn without_a_percentile_no_median_stands_for_a_mean_of_samples() {
    let v = verdict(vec![("call", known(100, &[])), ("page", known(100, &[]))]);
    let of = |text: &str, i: usize| {
        let threshold = read(text).unwrap();
        threshold.is_of_samples(&experiment(), &v.foregrounds[i])
    };
    assert!(of("MOS.value < 3", 0) && of("MOS.p5.ratio < 1", 0));
    assert!(!of("time.value > 1", 1) && !of("p95.slowdown > 1", 1));
}

/// What cannot be measured is refused before the runs, not after them.
#[test]
fn measures_that_no_foreground_can_have_are_refused_before_the_runs() {
    let check = |text: &str| check(&[read(text).unwrap()], &experiment());
    for fine in [
        "MOS.value < 3",
        "call:MOS.p5.ratio < 1",
        "learnt:MOS.value < 3",
        "call:learnt:unplayed.value > 0.1",
        "goodput.ratio < 0.5",
        "mean time.ratio > 2",
        "time of 10kB.p50.ratio > 2",
        "failures.value > 0.1",
        "p50.seconds > 1",
    ] {
        check(fine).unwrap();
    }
    for (wrong, message, hint) in [
        (
            "gooodput.ratio < 0.5",
            "no foreground has measure `gooodput`",
            "did you mean `goodput`?",
        ),
        (
            "request-rate.ratio < 0.5",
            "no foreground has measure `request-rate`",
            "did you mean `request rate`?",
        ),
        (
            "mos.value < 3",
            "no foreground has measure `mos`",
            "did you mean `MOS`?",
        ),
        (
            "page:MOS.value < 3",
            "page has no measure `MOS`",
            "it has: time, request rate, failures, goodput, mean time",
        ),
        (
            "call:p95.slowdown > 2",
            "call has no request times",
            "it has MOS, unplayed: write MOS.ratio or MOS.value",
        ),
        (
            "call:learnt:p95.seconds > 2",
            "call has no request times",
            "it has MOS, unplayed: write MOS.ratio or MOS.value",
        ),
    ] {
        let fail = check(wrong).unwrap_err();
        assert_eq!(crate::fail::code(&fail), 2);
        assert!(fail.to_string().ends_with(message), "{fail}");
        assert_eq!(fail.hint.as_deref(), Some(hint));
    }
    let file = "name = 'x'\nnetwork = { rate = '10Mbit' }\nforeground = [{ name = 'page', kind = 'web', object = '1kB' }]\n\
         background = [{ name = 'p', kind = 'poisson', rate = '1Mbit' }]";
    let file = swell_experiment::file::read(file, "x").unwrap();
    let fail = super::check(&[read("p95.slowdown > 2").unwrap()], &file).unwrap_err();
    assert!(
        fail.to_string().contains("no background of kind none"),
        "{fail}"
    );
    super::check(&[read("p95.seconds > 2").unwrap()], &file).unwrap();
    let p99 = super::check(&[read("p99.seconds > 2").unwrap()], &file).unwrap_err();
    let hint = p99.hint.as_deref().unwrap();
    assert!(hint.starts_with("add one, or take p5"), "{hint}");
}

/// Bounds and unknown ends are not told as numbers.
#[test]
fn bounds_are_told_as_bounds() {
    let line = |text: &str, b: BackgroundVerdict| {
        let lines = read(text)
            .unwrap()
            .crossed(&experiment(), &verdict(vec![("page", b)]));
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0].clone()
    };
    let hang = || bound(6.927);
    assert_eq!(
        line("p50.slowdown > 5", hang()),
        "p50.slowdown > 5: page against learnt has at least 6.927"
    );
    assert_eq!(
        line("p50.slowdown.high > 5", hang()),
        "p50.slowdown.high > 5: the upper end for page against learnt is not known, because too many requests did not finish"
    );
    let mut single = known(100, &[]);
    for q in &mut single.quantiles {
        let e = q.slowdown.unwrap();
        q.slowdown = Some(Estimate {
            low: 0.0,
            high: f64::INFINITY,
            replications: 1,
            ..e
        });
    }
    assert!(
        line("p95.slowdown.high > 5", single)
            .ends_with("is not known, because there is only 1 replication; five give an interval")
    );
}
