use super::*;
use crate::Exchange;
use crate::testing::{any_model, model, session};
use proptest::prelude::*;
use swell_base::{Code, Dur};

proptest! {
    #[test]
    fn what_is_written_is_read_back(m in any_model()) {
        let text = m.to_json();
        let back = Model::from_slice(text.as_bytes()).expect(&text);
        prop_assert_eq!(&back, &m);
        prop_assert_eq!(back.to_json(), text);
        let packed = m.to_zstd().unwrap();
        prop_assert_eq!(Model::from_slice(&packed).unwrap(), m);
    }

    #[test]
    fn damaged_text_is_an_error_or_a_sound_model(
        m in any_model(),
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut text = m.to_json().into_bytes();
        let i = at.index(text.len());
        text[i] = with;
        if cut {
            text.truncate(i);
        }
        if let Ok(read) = Model::from_slice(&text) {
            prop_assert!(read.check().is_ok());
        }
        let mut packed = m.to_zstd().unwrap();
        let j = at.index(packed.len());
        packed[j] = with;
        if let Ok(read) = Model::from_slice(&packed) {
            prop_assert!(read.check().is_ok());
        }
    }
}

#[test]
fn what_nobody_would_read_is_not_written() {
    let mut m = model(
        Dur::from_secs(10),
        vec![session(0, Dur::from_secs(1), 5_000)],
    );
    let rest = m.to_json().len() - m.name.len();
    for (bytes, fits) in [(MAX_BYTES, true), (MAX_BYTES + 1, false)] {
        m.name = "x".repeat(bytes - rest);
        let mut file = Vec::new();
        let written = m.write(&mut file, false);
        assert_eq!((written.is_ok(), m.to_zstd().is_ok()), (fits, fits));
        assert_eq!(file.len(), if fits { bytes } else { 0 });
        let why = written.err().map_or(String::new(), |e| e.to_string());
        assert_eq!(why.contains("`--budget`"), !fits, "{why}");
    }
}

fn sample() -> String {
    let mut m = model(
        Dur::from_secs(10),
        vec![
            session(0, Dur::from_secs(1), 5_000),
            session(1, Dur::from_secs(2), 100_000),
        ],
    );
    m.sessions[1].weight = 2.5;
    m.to_json()
}

/// The error for the sample with one change.
fn error_of(from: &str, to: &str) -> String {
    let text = sample();
    assert!(text.contains(from), "{from} is not in {text}");
    match Model::from_slice(text.replacen(from, to, 1).as_bytes()) {
        Ok(_) => panic!("{from} -> {to} was read"),
        Err(e) => e.to_string(),
    }
}

/// QUIC has turns in a UDP class; exchanges that only TCP has are refused.
#[test]
fn a_udp_class_has_turns_and_no_attempts() {
    let mut m = model(Dur::from_secs(10), vec![session(0, Dur::from_secs(1), 5)]);
    let udp = m.classes.iter().position(|c| c.udp);
    m.sessions[0].class = udp.expect("a UDP class") as u32;
    assert!(m.check().is_ok());
    m.sessions[0].groups[0].connections[0].exchange = Exchange::Attempt {
        retries: Vec::new(),
        refused: true,
    };
    let error = m.check().expect_err("attempts are TCP's").to_string();
    assert!(error.contains("a TCP exchange in a UDP class"), "{error}");
}

#[test]
fn errors_say_where_and_why() {
    for (from, to, says) in [
        (
            "swell-traffic-model",
            "swell-run",
            "`format` is \"swell-run\"",
        ),
        ("\"version\":3", "\"version\":4", "`version` is 4"),
        ("\"version\":3", "\"version\":1", "`version` is 1"),
        ("\"version\":3", "\"version\":\"3\"", "`version` is \"3\""),
        (
            "\"turns\":[[300",
            "\"overlap\":[2,0],\"turns\":[[300",
            "connections[0]: `overlap` is [2, 0]",
        ),
        (
            "\"turns\":[[300",
            "\"waits\":[[1,0,0]],\"turns\":[[300",
            "connections[0]: `waits` must begin with turn 0",
        ),
        (
            "\"turns\":[[300",
            "\"waits\":[[0,0,0],[9,1,0]],\"turns\":[[300",
            "connections[0]: `waits` names a turn beyond",
        ),
        (
            "\"class\":1",
            "\"class\":3",
            "sessions[1].class: 3 is not an index into `classes`, which has 3",
        ),
        (
            "\"client\":0",
            "\"client\":1",
            "sessions[0].client: 1 is not an index",
        ),
        (
            "\"server\":0",
            "\"server\":9",
            "sessions[0].groups[0].connections[0]: server: 9 is not an index",
        ),
        (
            "\"start\":2000000",
            "\"start\":500",
            "sessions[1].start: sessions are not in order",
        ),
        (
            "\"start\":2000000",
            "\"start\":10000000",
            "sessions[1].start: not before `duration`",
        ),
        (
            "\"weight\":2.5",
            "\"weight\":-2.5",
            "sessions[1].weight: -2.5 is not positive",
        ),
        ("\"weight\":2.5", "\"weight\":1e999", "line "),
        (
            "\"weight\":2.5",
            "\"weight\":1e308",
            "sessions[1].weight: 1e308 sessions are more than 1e15",
        ),
        ("\"gap\":0", "\"gap\":-1", "line "),
        ("\"gap\":0", "\"gap\":NaN", "line "),
        ("\"gap\":0", "\"gap\":0.5", "line "),
        (
            "\"gap\":0",
            "\"gap\":18446744073709551615",
            "longer than thirty years",
        ),
        (
            "[10000,null,null,0.0,0.0,9,0,0]",
            "[10000,null,null,1.5,0.0,9,0,0]",
            "client_paths[0]: loss up is 1.5",
        ),
        (
            "[10000,null,null,0.0,0.0,9,0,0]",
            "[10000,0,null,0.0,0.0,9,0,0]",
            "client_paths[0]: capacity up is zero",
        ),
        (
            "\"turns\":[[300,20000,5000,0]]",
            "\"up\":[]",
            "sessions[0].groups[0].connections[0]: needs exactly one of",
        ),
        ("\"name\"", "\"nom\"", "unknown field `nom`"),
        (
            "\"bytes\":[[],[]]",
            "\"bytes\":[[],[1]]",
            "load.bytes: the two directions differ",
        ),
    ] {
        let error = error_of(from, to);
        assert!(error.contains(says), "{from} -> {to}: {error}");
    }
}

/// A later version may have more codes of warnings; a program that does not know one reads the model, and keeps it.
#[test]
fn a_warning_with_an_unknown_code_is_kept() {
    let warning = r#"{"code":"of-tomorrow","severity":"note","message":"x"}"#;
    let later = sample().replacen("\"warnings\":[]", &format!("\"warnings\":[{warning}]"), 1);
    let m = Model::from_slice(later.as_bytes()).unwrap();
    assert_eq!(m.warnings[0].code, Code::Other("of-tomorrow".into()));
    assert!(m.to_json().contains(warning));
}

#[test]
fn a_file_of_the_version_before_is_read_and_says_so() {
    let old = sample().replacen("\"version\":3", "\"version\":2", 1);
    let m = Model::from_slice(old.as_bytes()).unwrap();
    assert_eq!(m.warnings[0].code, Code::OldVersion);
    assert_eq!(m.sessions.len(), 2);
    let again = Model::from_slice(m.to_json().as_bytes()).unwrap();
    assert_eq!(again, m, "it is said once");
}

#[test]
fn other_peoples_files_are_refused() {
    for file in [
        &b""[..],
        b"{}",
        b"[1,2,3]",
        b"null",
        b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00",
        b"\x28\xb5\x2f\xfd",
        b"\x28\xb5\x2f\xfd\x00\x00\x00",
        "[".repeat(100_000).as_bytes(),
    ] {
        let error = Model::from_slice(file).unwrap_err();
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_decompression_bomb_is_not_unpacked() {
    let zeros = vec![b' '; MAX_BYTES + 10];
    let bomb = zstd::stream::encode_all(zeros.as_slice(), 3).unwrap();
    assert!(bomb.len() < 100_000);
    assert!(matches!(
        Model::from_slice(&bomb),
        Err(ModelError::TooLarge)
    ));
}

#[test]
fn times_are_rounded_to_the_microsecond() {
    let mut m = model(Dur::from_secs(10), vec![session(0, Dur::ZERO, 1)]);
    m.duration = Dur::from_nanos(9_999_999_500);
    m.sessions[0].start = Dur::from_nanos(1_499);
    let back = Model::from_slice(m.to_json().as_bytes()).unwrap();
    assert_eq!(back.duration, Dur::from_secs(10));
    assert_eq!(back.sessions[0].start, Dur::from_micros(1));
}
