//! What ns-2.35 gave for the same traces in the same settings: its strict-priority queue
//! (`Queue/SimpleIntServ`, two classes), its replayer of traces over UDP and its `TCP/Sack1` with
//! delayed acknowledgements, released defaults, 600 s. Measured once, as means over each run.

/// A run of ns-2.35.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchor {
    /// Name of the stand-in trace.
    pub trace: &'static str,
    /// Mbit/s.
    pub rate: u32,
    /// Milliseconds.
    pub latency: u32,
    /// Pre-existing packets in the filler's direction.
    pub present: Figures,
    /// Mean delay of pre-existing packets in the other direction, milliseconds.
    pub reverse_delay: f64,
    /// The filler's data, where there was a filler.
    pub filler: Option<Figures>,
}

/// What was measured of one kind of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Percent of the arrivals at the central queue.
    pub dropped: f64,
    /// Queue, transmission and latency of the central link, milliseconds.
    pub delay: f64,
    /// Thousands of bytes per second.
    pub kilobytes: f64,
}

const fn row(
    trace: &'static str,
    rate: u32,
    latency: u32,
    present: [f64; 3],
    reverse_delay: f64,
    filler: Option<[f64; 3]>,
) -> Anchor {
    const fn figures([dropped, delay, kilobytes]: [f64; 3]) -> Figures {
        Figures {
            dropped,
            delay,
            kilobytes,
        }
    }
    Anchor {
        trace,
        rate,
        latency,
        present: figures(present),
        reverse_delay,
        filler: match filler {
            Some(f) => Some(figures(f)),
            None => None,
        },
    }
}

/// Every run.
#[rustfmt::skip]
pub const ANCHORS: [Anchor; 66] = [
    row("selfsim1", 3, 20, [0.44914, 22.44783, 181.263], 21.58672, None),
    row("selfsim1", 3, 20, [0.60853, 23.53347, 180.987], 21.58751, Some([1.29583, 39.29074, 160.845])),
    row("selfsim1", 4, 20, [0.00681, 21.4033, 182.072], 21.05422, None),
    row("selfsim1", 4, 20, [0.01003, 22.30268, 182.058], 21.0549, Some([0.62512, 35.39829, 285.878])),
    row("selfsim1", 6, 20, [0.0, 20.7394, 182.078], 20.63026, None),
    row("selfsim1", 6, 20, [0.0, 21.36437, 182.076], 20.63073, Some([0.24491, 32.64003, 531.53])),
    row("selfsim1", 8, 20, [0.0, 20.50289, 182.078], 20.44917, None),
    row("selfsim1", 8, 20, [0.0, 20.98215, 182.076], 20.44956, Some([0.124, 32.3245, 781.273])),
    row("selfsim1", 10, 20, [0.0, 20.38096, 182.078], 20.34894, None),
    row("selfsim1", 10, 20, [0.0, 20.7668, 182.078], 20.34926, Some([0.0826, 31.9657, 1030.226])),
    row("selfsim1", 15, 20, [0.0, 20.23721, 182.078], 20.22406, None),
    row("selfsim1", 15, 20, [0.0, 20.49714, 182.078], 20.22426, Some([0.03483, 31.69403, 1645.543])),
    row("selfsim1", 10, 3, [0.01683, 3.38065, 182.042], 3.34893, None),
    row("selfsim1", 10, 3, [0.05838, 3.69392, 181.968], 3.34924, Some([1.54281, 4.99125, 845.036])),
    row("selfsim1", 10, 10, [0.0, 10.38096, 182.078], 10.34894, None),
    row("selfsim1", 10, 10, [0.0, 10.75871, 182.078], 10.34925, Some([0.22411, 16.16923, 1009.861])),
    row("selfsim1", 10, 30, [0.0, 30.38096, 182.078], 30.34894, None),
    row("selfsim1", 10, 30, [0.0, 30.7703, 182.076], 30.34925, Some([0.04468, 47.8389, 1036.593])),
    row("selfsim1", 10, 40, [0.0, 40.38096, 182.078], 40.34894, None),
    row("selfsim1", 10, 40, [0.0, 40.77144, 182.078], 40.34925, Some([0.03875, 64.4912, 1040.503])),
    row("selfsim1", 10, 250, [0.0, 250.38096, 182.078], 250.34894, None),
    row("selfsim1", 10, 250, [0.0, 250.75073, 182.076], 250.34923, Some([0.07992, 358.108, 989.226])),
    row("selfsim2", 3, 20, [0.09966, 22.0723, 156.728], 21.56334, None),
    row("selfsim2", 3, 20, [0.15697, 23.18327, 156.628], 21.56425, Some([1.1925, 36.47324, 181.726])),
    row("selfsim2", 4, 20, [0.00042, 21.25125, 156.871], 21.04287, None),
    row("selfsim2", 4, 20, [0.00042, 22.1611, 156.871], 21.04363, Some([0.55502, 34.61369, 310.851])),
    row("selfsim2", 6, 20, [0.0, 20.6953, 156.874], 20.62571, None),
    row("selfsim2", 6, 20, [0.0, 21.3223, 156.874], 20.62623, Some([0.21784, 32.14153, 557.281])),
    row("selfsim2", 8, 20, [0.0, 20.48161, 156.874], 20.44716, None),
    row("selfsim2", 8, 20, [0.0, 20.96109, 156.874], 20.44754, Some([0.10838, 32.2645, 809.543])),
    row("selfsim2", 10, 20, [0.0, 20.36817, 156.874], 20.34793, None),
    row("selfsim2", 10, 20, [0.0, 20.75334, 156.874], 20.34823, Some([0.06666, 31.7718, 1051.905])),
    row("selfsim2", 15, 20, [0.0, 20.23182, 156.874], 20.2237, None),
    row("selfsim2", 15, 20, [0.0, 20.49168, 156.874], 20.22391, Some([0.02712, 31.57093, 1670.861])),
    row("selfsim2", 10, 3, [0.00664, 3.36807, 156.863], 3.34793, None),
    row("selfsim2", 10, 3, [0.02242, 3.68779, 156.838], 3.34824, Some([1.4811, 4.97542, 879.801])),
    row("selfsim2", 10, 10, [0.0, 10.36817, 156.874], 10.34793, None),
    row("selfsim2", 10, 10, [0.0, 10.74743, 156.874], 10.34825, Some([0.20951, 16.16186, 1035.941])),
    row("selfsim2", 10, 30, [0.0, 30.36817, 156.874], 30.34793, None),
    row("selfsim2", 10, 30, [0.0, 30.75707, 156.874], 30.34825, Some([0.04485, 47.6857, 1062.285])),
    row("selfsim2", 10, 40, [0.0, 40.36817, 156.874], 40.34793, None),
    row("selfsim2", 10, 40, [0.0, 40.75844, 156.874], 40.34823, Some([0.02736, 63.6079, 1065.77])),
    row("selfsim2", 10, 250, [0.0, 250.36817, 156.874], 250.34793, None),
    row("selfsim2", 10, 250, [0.0, 250.64525, 156.874], 250.34814, Some([0.17994, 273.998, 734.891])),
    row("poisson", 3, 20, [0.02126, 21.99992, 168.208], 21.55642, None),
    row("poisson", 3, 20, [0.04253, 23.11741, 168.158], 21.55733, Some([1.12845, 37.40384, 174.641])),
    row("poisson", 4, 20, [0.0, 21.23235, 168.248], 21.04257, None),
    row("poisson", 4, 20, [0.0, 22.14709, 168.246], 21.0433, Some([0.46877, 35.45479, 303.601])),
    row("poisson", 6, 20, [0.0, 20.69286, 168.248], 20.62736, None),
    row("poisson", 6, 20, [0.0, 21.32358, 168.246], 20.62785, Some([0.18281, 32.92943, 549.651])),
    row("poisson", 8, 20, [0.0, 20.48089, 168.248], 20.44856, None),
    row("poisson", 8, 20, [0.0, 20.96116, 168.246], 20.44895, Some([0.10737, 32.9515, 800.133])),
    row("poisson", 10, 20, [0.0, 20.36799, 168.248], 20.34885, None),
    row("poisson", 10, 20, [0.0, 20.75523, 168.246], 20.34914, Some([0.05687, 32.0892, 1045.653])),
    row("poisson", 15, 20, [0.0, 20.23181, 168.248], 20.22421, None),
    row("poisson", 15, 20, [0.0, 20.49175, 168.246], 20.22442, Some([0.03125, 32.00003, 1663.225])),
    row("poisson", 10, 3, [0.00503, 3.36792, 168.24], 3.34885, None),
    row("poisson", 10, 3, [0.01508, 3.6843, 168.215], 3.34915, Some([1.54352, 4.96887, 857.721])),
    row("poisson", 10, 10, [0.0, 10.36799, 168.248], 10.34885, None),
    row("poisson", 10, 10, [0.0, 10.74681, 168.246], 10.34917, Some([0.19153, 16.17648, 1025.736])),
    row("poisson", 10, 30, [0.0, 30.36799, 168.248], 30.34885, None),
    row("poisson", 10, 30, [0.0, 30.75587, 168.246], 30.34916, Some([0.03698, 48.473, 1049.811])),
    row("poisson", 10, 40, [0.0, 40.36799, 168.248], 40.34885, None),
    row("poisson", 10, 40, [0.0, 40.75907, 168.246], 40.34917, Some([0.02708, 65.4722, 1058.156])),
    row("poisson", 10, 250, [0.0, 250.36799, 168.248], 250.34885, None),
    row("poisson", 10, 250, [0.0, 250.62693, 168.246], 250.34906, Some([0.11222, 269.4843, 703.016])),
];
