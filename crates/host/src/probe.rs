//! What the helper of a check answers: whether namespaces and devices can be had.

use super::device::{Device, DeviceConfig};
use super::rights::Rights;
use super::sys::devices as sys;
use super::way::DeviceKind;
use rustix::thread::UnshareFlags;

const OPEN_TO_ALL: &str = "`chmod 666 /dev/net/tun` as root allows it to everyone";

/// The answer of the helper. For namespaces and for the device it has one word, a line break and details; the two are
/// separated by a zero byte.
pub(super) fn answer() -> String {
    let rights = match Rights::obtain() {
        Ok(rights) => rights,
        Err(e) => return format!("missing\n{e}"),
    };
    if let Err(e) = sys::unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS) {
        return format!("missing\n{}", super::rights::refused(e.into()));
    }
    let how = if rights.rootless() {
        "in an own user namespace, without root"
    } else {
        "as root"
    };
    let open = |kind| {
        let kind = Some(kind);
        Device::open(&DeviceConfig {
            kind,
            ..DeviceConfig::default()
        })
    };
    let device = match open(DeviceKind::Tun) {
        Ok(_) => "good\n/dev/net/tun opens".to_owned(),
        Err(tun) => match open(DeviceKind::Veth) {
            Ok(_) => format!(
                "good\nveth devices, dearer per packet than TUN (/dev/net/tun: {tun}; {OPEN_TO_ALL})"
            ),
            Err(veth) => format!(
                "missing\n/dev/net/tun: {tun}; {OPEN_TO_ALL}, `modprobe tun` makes it. veth devices: {veth}"
            ),
        },
    };
    format!("good\n{how}\0{device}")
}
