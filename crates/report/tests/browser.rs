//! Tests the page in a real browser: no errors, no requests, and a working script. Needs
//! Chromium.

mod common;

use std::path::Path;
use std::process::Command;

use common::results;

/// Records errors of any script.
const PROBE: &str = "<script>addEventListener('error', (e) => \
    document.documentElement.setAttribute('data-error', e.message));</script>";
/// Drives the page and writes its observations into the document, which the browser then prints.
const DRIVE: &str = include_str!("drive.js");

fn chromium() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            Command::new(name)
                .arg("--version")
                .output()
                .is_ok_and(|o| o.status.success())
        })
}

fn dump(browser: &str, page: &Path, profile: &Path, width: u32) -> (String, String) {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            "--hide-scrollbars",
        ])
        .args([
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--virtual-time-budget=3000",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={width},1000"))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser answered to --version");
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn the_page_works_in_a_browser_offline() {
    let Some(browser) = chromium() else {
        assert!(!swell_needs::programs(&["chromium"]), "it does not start");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let page = swell_report::render(&results(dir.path()));
    let driven = page
        .replacen("<head>", &format!("<head>{PROBE}"), 1)
        .replacen("</body>", &format!("<script>{DRIVE}</script></body>"), 1);
    let path = dir.path().join("page.html");
    std::fs::write(&path, driven).expect("the scratch directory can be written");
    for (width, narrow) in [(1000, "none"), (500, "block")] {
        let (dom, log) = dump(
            browser,
            &path,
            &dir.path().join(format!("profile-{width}")),
            width,
        );
        assert!(
            !dom.contains("data-error="),
            "{}",
            dom.get(..400).unwrap_or(&dom)
        );
        let complaints: Vec<&str> = log.lines().filter(|l| l.contains(":CONSOLE")).collect();
        assert!(complaints.is_empty(), "{complaints:?}");
        let seen = dom
            .split("data-seen=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_else(|| panic!("the page was not driven; the browser said: {log}"))
            .replace("&quot;", "\"");
        let wants = |what: &str| assert!(seen.contains(what), "{what} not in {seen}");
        wants("\"requests\":0");
        wants(&format!("\"narrow\":\"{narrow}\""));
        wants("\"overflow\":false");
        wants("\"before\":true,\"off\":false,\"on\":true");
        wants("\"readout\":3");
        wants("\"drawn\":\"svg true true\"");
        wants("\"saved\":\"image/svg+xml text/csv\"");
        wants("\"buttons\":\"SVG PNG PDF CSV Vega-Lite\"");
        wants("\"rows\":true");
        wants("\"zoomed\":true,\"reset\":true");
        let spec = dom.split("data-spec=\"").nth(1).unwrap_or("");
        assert!(
            spec.starts_with("none cbr poisson"),
            "{}",
            spec.get(..80).unwrap_or(spec)
        );
    }
}
