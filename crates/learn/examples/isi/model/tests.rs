use super::*;

#[test]
fn a_distribution_is_drawn_as_it_was_measured() {
    let cdf = Cdf::parse("x", "1 5 0.5\n2 6 0.6\n10 10 1\n", 1.0, 10).unwrap();
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
        let Err(CdfError::Line { line: got, .. }) = Cdf::parse("x", text, 0.0, 10) else {
            panic!("{text:?} was read");
        };
        assert_eq!(got, line, "{text:?}");
    }
    assert!(matches!(
        model(&[], "x", Provenance::default(), 1),
        Err(CdfError::Missing(_))
    ));
}

/// Every file that [`model`] needs, with one small value each.
fn files() -> Vec<(String, String)> {
    let mut names: Vec<String> = Vec::new();
    for side in ["inbound", "outbound"] {
        for of in ["winc", "wins", "delay", "BW"] {
            names.extend(["www", "ftp"].map(|class| format!("{class}.{side}.{of}.cdf")));
        }
        for of in ["sess.inter", "fileno", "file.inter", "size"] {
            names.push(format!("ftp.{side}.{of}.cdf"));
        }
    }
    for side in ["in", "out"] {
        for of in ["sess.inter", "pagecnt", "idle", "pagesize", "req"] {
            names.push(format!("www.{side}.{of}.cdf"));
        }
    }
    names.extend(["www", "ftp"].map(|class| format!("{class}.inbound.server.cdf")));
    names.into_iter().map(|n| (n, "2 1 1\n".into())).collect()
}

/// [`files`] with the one called `name` replaced.
fn with(name: &str, text: &str) -> Vec<(String, String)> {
    let mut files = files();
    let file = files.iter_mut().find(|f| f.0 == name).unwrap();
    file.1 = text.into();
    files
}

fn made(files: &[(String, String)]) -> Result<Model, CdfError> {
    model(files, "x", Provenance::default(), 1)
}

#[test]
fn small_files_make_a_model_that_may_be_written() {
    let model = made(&files()).unwrap();
    model.check().unwrap();
    // Sessions of two pages or files each, two seconds apart, of four kinds, for 600 s.
    assert!(
        (1190..=1210).contains(&model.sessions.len()),
        "{}",
        model.sessions.len()
    );
    assert_eq!(model.server_paths.len(), 2 + 1 + 2 + 1);
}

#[test]
fn values_that_cannot_be_meant_are_refused() {
    for name in [
        "www.inbound.server.cdf",
        "www.in.pagecnt.cdf",
        "www.in.pagesize.cdf",
        "www.in.idle.cdf",
        "ftp.outbound.delay.cdf",
        "ftp.outbound.BW.cdf",
    ] {
        let error = made(&with(name, "1 1 0.5\n1e300 2 1\n")).unwrap_err();
        assert!(
            matches!(&error, CdfError::TooLarge { file, line: 2, .. } if file == name),
            "{error}"
        );
    }
}

#[test]
fn traffic_without_end_is_refused() {
    for (name, text, pages) in [
        // A session every half millisecond for 43 800 s, two pages each.
        ("www.in.sess.inter.cdf", "0 1 1\n", 175_200_000),
        // A session of a million files every two seconds.
        ("ftp.outbound.fileno.cdf", "1000000 1 1\n", 21_900_000_000),
    ] {
        let error = made(&with(name, text)).unwrap_err();
        assert!(
            matches!(error, CdfError::TooBusy { pages: p, .. } if p == pages),
            "{error}"
        );
    }
}

/// A number of servers that is no whole number is rounded, and so is the number of each server drawn.
#[test]
fn every_server_drawn_has_a_path() {
    for (value, servers) in [("2.4", 2), ("2.6", 3), ("0.2", 1)] {
        let text = format!("{value} 1 1\n");
        let model = made(&with("ftp.inbound.server.cdf", &text)).unwrap();
        assert_eq!(model.server_paths.len(), 2 + 1 + servers + 1, "{value}");
        // The last path is the site's own server, which only remote users ask.
        let own = model.server_paths.len() as u32 - 1;
        let local = model.sessions.iter().filter(|s| !s.outside);
        assert!(local.flat_map(Session::connections).all(|c| c.server < own));
    }
}
