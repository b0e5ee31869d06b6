//! Offload features of a device, by the names that `ethtool -k` shows (linux/ethtool.h).
#![expect(unsafe_code, reason = "the ioctl has no safe wrapper")]

use rustix::io;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::os::fd::{AsRawFd, OwnedFd};

use super::socket::last;

/// Commands, and the number of the set of strings that names the features.
const GET_STRINGS: u32 = 0x1b;
const COUNT_STRINGS: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const FEATURES: u32 = 4;
/// Words of a name of 32 bytes.
const NAME: usize = 8;
/// More features than any kernel has (Linux 6.18: 64).
const MOST: u32 = 1024;

/// `struct ifreq` of `linux/if.h`, as far as SIOCETHTOOL uses it.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    data: *mut u32,
    rest: [u8; 16],
}

/// A device of the calling thread's network namespace.
struct Device {
    socket: OwnedFd,
    name: [u8; libc::IFNAMSIZ],
    /// All features, by their bit.
    features: Vec<String>,
}

impl Device {
    fn of(name: &str) -> io::Result<Device> {
        let kind = SocketType::DGRAM;
        let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
        let mut device = Device {
            socket,
            name: [0; libc::IFNAMSIZ],
            features: Vec::new(),
        };
        if name.len() >= libc::IFNAMSIZ {
            return Err(io::Errno::NAMETOOLONG);
        }
        device.name[..name.len()].copy_from_slice(name.as_bytes());
        device.features = device.names()?;
        Ok(device)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        // `struct ethtool_sset_info`: the set is a bit of a number of 64 bits.
        let set = (1u64 << FEATURES).to_ne_bytes();
        let half = |from: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| set[from + i]));
        let mut info = [COUNT_STRINGS, 0, half(0), half(4), 0];
        // SAFETY: the kernel writes one number after the set.
        unsafe { self.call(&mut info)? };
        let count = info[4].min(MOST);
        // `struct ethtool_gstrings`.
        let mut strings = vec![0; 3 + (MOST as usize) * NAME];
        strings[..3].copy_from_slice(&[GET_STRINGS, FEATURES, count]);
        // SAFETY: the kernel writes as many names as it has just counted, and there is space for more.
        unsafe { self.call(&mut strings)? };
        let names = strings[3..].chunks_exact(NAME).take(count as usize);
        let name = |words: &[u32]| {
            let bytes = words.iter().flat_map(|w| w.to_ne_bytes());
            let bytes: Vec<u8> = bytes.take_while(|&b| b != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ok(names.map(name).collect())
    }

    /// Words of a set of features.
    fn words(&self) -> usize {
        self.features.len().div_ceil(32)
    }

    /// Executes the command in the first word.
    ///
    /// # Safety
    /// The words must have space for all that the kernel writes.
    unsafe fn call(&self, words: &mut [u32]) -> io::Result<()> {
        let mut request = Request {
            name: self.name,
            data: words.as_mut_ptr(),
            rest: [0; 16],
        };
        // SAFETY: SIOCETHTOOL takes a `struct ifreq`, which this is; it and the words outlive the call, and the caller
        // has made space.
        let answer = unsafe {
            libc::ioctl(
                self.socket.as_raw_fd(),
                libc::SIOCETHTOOL as _,
                &raw mut request,
            )
        };
        if answer < 0 { Err(last()) } else { Ok(()) }
    }
}

/// Turns features of a device off. Those that the device or the kernel does not have are passed over.
///
/// # Errors
/// If there is no such device, or this process may not change it.
pub fn turn_off(device: &str, features: &[&str]) -> io::Result<()> {
    let device = Device::of(device)?;
    let count = device.words();
    // `struct ethtool_sfeatures`: for each word, which bits to set, and their values.
    let mut words = vec![0; 2 + 2 * count];
    words[..2].copy_from_slice(&[SET_FEATURES, count as u32]);
    for (bit, name) in device.features.iter().enumerate() {
        if features.contains(&name.as_str()) {
            words[2 + 2 * (bit / 32)] |= 1 << (bit % 32);
        }
    }
    // SAFETY: the kernel only reads these words.
    unsafe { device.call(&mut words) }
}

/// The features of a device that are on.
///
/// # Errors
/// If there is no such device.
pub fn active(device: &str) -> io::Result<Vec<String>> {
    let device = Device::of(device)?;
    let count = device.words();
    // `struct ethtool_gfeatures`: for each word, the features that exist, are wanted, are on, and never change.
    let mut words = vec![0; 2 + 4 * count];
    words[..2].copy_from_slice(&[GET_FEATURES, count as u32]);
    // SAFETY: the kernel writes four words for each of `count`.
    unsafe { device.call(&mut words)? };
    let on = |bit: usize| words[2 + 4 * (bit / 32) + 2] >> (bit % 32) & 1 == 1;
    let features = device.features.iter().enumerate();
    let on = features.filter(|&(bit, _)| on(bit));
    Ok(on.map(|(_, name)| name.clone()).collect())
}
