use proptest::prelude::*;

use super::super::tests::{configure, imitate, options, trace};
use super::super::{Plan, Playback};
use super::*;

const POOLS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 0), Ipv4Addr::new(10, 2, 0, 0)];

fn read(texts: &[&str]) -> Result<FlowModel, XmlError> {
    FlowModel::from_harpoon(texts, "x", Provenance::default(), Dur::from_secs(60))
}

/// As in the program's examples: no white space after the last number, bare addresses, prefixes, repeated
/// lines.
const CLIENT: &str = r#"<?xml version="1.0"?>
<!-- a client -->
<harpoon_plugins>
  <plugin name="TcpPlugin" objfile="tcp_plugin.so" maxthreads="23" personality="client">
    <active_sessions> 7 8</active_sessions>
    <interconnection_times> 0.5 1.5 </interconnection_times>
    <address_pool name="client_source_pool"> <address ipv4="192.168.21.0/24" port="0"/> </address_pool>
    <address_pool name="client_destination_pool">
      <address ipv4="10.0.0.7" port="10000"/> <address ipv4="10.0.0.9/32" port="10000"/>
      <address ipv4="10.0.0.7/32" port="10000"/> <address ipv4="10.0.0.7/32" port="10000"/>
    </address_pool>
  </plugin>
  <plugin name="Dummy" objfile="udpcbr_plugin.so" personality="client"><bitrate>1</bitrate></plugin>
</harpoon_plugins>"#;
const SERVER: &str = r#"<harpoon_plugins><plugin objfile="tcp_plugin.so" personality="server">
    <file_sizes>100 200<!-- and --> 300 200</file_sizes></plugin></harpoon_plugins>"#;

#[test]
fn lists_and_pools_are_read() {
    let model = read(&[CLIENT, SERVER]).unwrap();
    let sessions: Vec<u64> = model.tcp.intervals.iter().map(|i| i.sessions).collect();
    assert_eq!(sessions, [7, 8]);
    assert_eq!(
        (model.tcp.gaps.count(), model.tcp.gaps.sum()),
        (2, 2_000_000)
    );
    assert_eq!((model.tcp.down.count(), model.tcp.down.sum()), (4, 800));
    assert_eq!(model.tcp.sources.ranks, [(1, 254)]);
    assert_eq!(model.tcp.destinations.ranks, [(3, 1), (1, 1)]);
    // Sixty connections of 200 bytes per minute.
    assert_eq!(
        (
            model.tcp.intervals[0].connections,
            model.tcp.intervals[0].bytes
        ),
        (420, 84_000)
    );
    assert!(model.warnings[0].message.contains("Dummy"));
    assert!(Plan::new(&model, &Playback::default()).is_ok());
    let back = FlowModel::from_slice(model.to_json().as_bytes());
    assert_eq!(back.unwrap(), model);
}

#[test]
fn pools_may_be_of_either_family() {
    let pool = r#"<address_pool name="client_source_pool">
        <address ipv6="fd00::7"/><address ipv6="fd00::7/128"/><address ipv6="2001:db8::/120"/>
        <address ipv4="10.0.0.9"/></address_pool>"#;
    let client = CLIENT.replace("<active_sessions>", &format!("{pool}<active_sessions>"));
    let model = read(&[&client, SERVER]).unwrap();
    // The original pool of 254, then 256 and 2 of IPv6, one of which occurs twice, and one of IPv4.
    assert_eq!(model.tcp.sources.ranks, [(2, 1), (1, 254 + 256 + 1)]);
    for wrong in ["fd00::/129", "fd00::/x", "fd00:::"] {
        let text = client.replace("fd00::7/128", wrong);
        let error = read(&[&text, SERVER]).unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let model = configure(&trace(1, 100, 300).records, options());
    let [client, server] = model.to_harpoon(POOLS);
    assert!(FlowModel::is_harpoon(client.as_bytes()) && FlowModel::is_harpoon(server.as_bytes()));
    let back = read(&[&server, &client]).unwrap();
    let sessions = |m: &FlowModel| {
        m.tcp
            .intervals
            .iter()
            .map(|i| i.sessions)
            .collect::<Vec<_>>()
    };
    assert_eq!(sessions(&back), sessions(&model));
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
    near(back.tcp.gaps.sum() as f64, model.tcp.gaps.sum() as f64);
    near(back.tcp.down.sum() as f64, model.tcp.down.sum() as f64);
    assert_eq!(back.tcp.down.count(), model.tcp.down.count());
    assert_eq!(back.tcp.sources.hosts(), model.tcp.sources.hosts());
    let most = |p: &Popularity| p.ranks[0].0 as f64 / p.total() as f64;
    near(most(&back.tcp.destinations), most(&model.tcp.destinations));
    assert!(!client.contains(".0/32") && !client.contains(".255/32"));
}

#[test]
fn hostile_input_is_an_error_with_its_place() {
    let plugin = |inside: &str| {
        format!(
            "<harpoon_plugins>\n<plugin objfile=\"tcp_plugin.so\">{inside}</plugin></harpoon_plugins>"
        )
    };
    let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;&b;\">]><harpoon_plugins>&c;</harpoon_plugins>";
    let deep = "<a>".repeat(100_000);
    for (text, says) in [
        ("", "root"),
        ("{}", "1:1"),
        ("<html/>", "<html>, not <harpoon_plugins>"),
        (bomb, "DTD"),
        (&deep, ""),
        (
            &plugin("<file_sizes>1 2x</file_sizes>"),
            "line 2: file_sizes: `2x`",
        ),
        (&plugin("<file_sizes>-1</file_sizes>"), "`-1`"),
        (&plugin("<file_sizes>1e300</file_sizes>"), "`1e300`"),
        (
            &plugin("<interconnection_times>nan</interconnection_times>"),
            "`nan`",
        ),
        (&plugin("<active_sessions>inf</active_sessions>"), "`inf`"),
        (
            &plugin(
                "<address_pool name=\"client_source_pool\"><address ipv4=\"1.2.3.4/99\"/></address_pool>",
            ),
            "1.2.3.4/99",
        ),
        (
            &plugin("<file_sizes> 1 </file_sizes>"),
            "no list <interconnection_times>",
        ),
    ] {
        let error = read(&[text]).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let many = plugin(&format!(
        "<file_sizes>1</file_sizes><interconnection_times>1</interconnection_times><active_sessions>{}</active_sessions>",
        "1 ".repeat(MAX_INTERVALS + 1)
    ));
    assert_eq!(read(&[&many]), Err(XmlError::Intervals(MAX_INTERVALS + 1)));
    assert_eq!(read(&[&" ".repeat(MAX_BYTES + 1)]), Err(XmlError::TooLarge));
    // With zero gaps only, a session would open endless connections at once.
    let still = plugin(
        "<file_sizes>1</file_sizes><interconnection_times>0 0</interconnection_times><active_sessions>2</active_sessions>",
    );
    assert_eq!(imitate(&read(&[&still]).unwrap(), 1)[0].connections, 0);
}

proptest! {
    #[test]
    fn damaged_configurations_are_errors_or_models(
        at in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<char>(), 0..4),
    ) {
        let i = at.index(CLIENT.len());
        let text = format!("{}{}{}", &CLIENT[..i], with.iter().collect::<String>(), &CLIENT[i + 1..]);
        if let Ok(model) = read(&[&text, SERVER]) {
            let back = FlowModel::from_slice(model.to_json().as_bytes());
            prop_assert_eq!(back.unwrap(), model);
        }
    }
}
