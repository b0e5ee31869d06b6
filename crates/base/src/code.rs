//! Names of doubts.

use serde::{Deserialize, Serialize};

/// Makes [`Code`] of its variants and their names. A code is in the list `first`, in the order that it has there, or in
/// `others`.
macro_rules! codes {
    (
        first { $($first:ident = $first_name:literal,)* }
        others { $($other:ident = $other_name:literal,)* }
    ) => {
        /// What a doubt is about. Programs can match its name in `kebab-case`: `few-samples`, `no-rtt`.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum Code {
            $(#[doc = concat!("`", $first_name, "`")] $first,)*
            $(#[doc = concat!("`", $other_name, "`")] $other,)*
            /// A code that this version does not know: of a study's own doubt, or in a file of another version. Use
            /// [`Code::from`], so that this is none of the others.
            Other(String),
        }

        impl Code {
            /// All that this version knows.
            pub const ALL: &[Code] = &[$(Code::$first,)* $(Code::$other,)*];

            const FIRST: &[Code] = &[$(Code::$first,)*];

            /// Its name, in `kebab-case`.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Code::$first => $first_name,)*
                    $(Code::$other => $other_name,)*
                    Code::Other(name) => name,
                }
            }
        }

        impl From<&str> for Code {
            fn from(name: &str) -> Code {
                match name {
                    $($first_name => Code::$first,)*
                    $($other_name => Code::$other,)*
                    _ => Code::Other(name.into()),
                }
            }
        }
    };
}

// Each has a row in docs/reference/warnings.md.
codes! {
    // By how much they could change an answer, the most first: invalid runs, wrong loads or measures, too little data.
    first {
        MadeUp = "made-up",
        NoReference = "no-reference",
        SeveralChanges = "several-changes",
        NoCommonLink = "no-common-link",
        EmulatorLate = "emulator-late",
        ClientFailed = "client-failed",
        InputNotRead = "input-not-read",
        LeftBehind = "left-behind",
        MulticastLost = "multicast-lost",
        OutputCut = "output-cut",
        FailedRequests = "failed-requests",
        MeasureMissing = "measure-missing",
        MeasureUnread = "measure-unread",
        OddMeasures = "odd-measures",
        StretchedMeasure = "stretched-measure",
        NoRequest = "no-request",
        NoConnection = "no-connection",
        CalledBack = "called-back",
        RateMissed = "rate-missed",
        EnergyMissed = "energy-missed",
        MatchedApart = "matched-apart",
        CopiedApart = "copied-apart",
        SlowestChanges = "slowest-changes",
        UpExceedsDown = "up-exceeds-down",
        OpenLoopLoss = "open-loop-loss",
        OwnLoss = "own-loss",
        NarrowAccess = "narrow-access",
        Stretched = "stretched",
        ChangeAfterEnd = "change-after-end",
        FewReplications = "few-replications",
        PhaseEffects = "phase-effects",
        UnintendedLoss = "unintended-loss",
        RefusedPackets = "refused-packets",
        SuperPackets = "super-packets",
        ShortWarmUp = "short-warm-up",
        CensoredQuantile = "censored-quantile",
        FewSamples = "few-samples",
        LoadYields = "load-yields",
        ManyCopies = "many-copies",
        UnevenSeeds = "uneven-seeds",
    }
    // They matter less, one as much as another.
    others {
        // Experiments
        NeverSeen = "never-seen",
        ModelRepeats = "model-repeats",
        TraceRepeats = "trace-repeats",
        DeliveriesRepeat = "deliveries-repeat",
        SamePhase = "same-phase",
        NoFonts = "no-fonts",
        // Emulation
        EmulatorStalled = "emulator-stalled",
        WaitedForProcessor = "waited-for-processor",
        Throttled = "throttled",
        StolenTime = "stolen-time",
        GaveWay = "gave-way",
        BacklogDrops = "backlog-drops",
        HostLosses = "host-losses",
        UnfollowedConnections = "unfollowed-connections",
        ServerEnded = "server-ended",
        MergedRequests = "merged-requests",
        UnaskedData = "unasked-data",
        Heartbeats = "heartbeats",
        StretchedTime = "stretched-time",
        SetWhileRunning = "set-while-running",
        UnroutablePackets = "unroutable-packets",
        JournalCut = "journal-cut",
        // Learning from packets
        ShortTrace = "short-trace",
        OneSided = "one-sided",
        OneSide = "one-side",
        FewHandshakes = "few-handshakes",
        FewRttSamples = "few-rtt-samples",
        NoRtt = "no-rtt",
        CaptureGaps = "capture-gaps",
        SnapLength = "snap-length",
        LeftCensored = "left-censored",
        RightCensored = "right-censored",
        UnclearPauses = "unclear-pauses",
        SessionsInStep = "sessions-in-step",
        SidesVoted = "sides-voted",
        Sides = "sides",
        TimeStepsBack = "time-steps-back",
        FarOffTimes = "far-off-times",
        ClockSet = "clock-set",
        CoarseClock = "coarse-clock",
        KeepAlives = "keep-alives",
        PutInOrder = "put-in-order",
        CapturedTwice = "captured-twice",
        RecurringPackets = "recurring-packets",
        LinkRtt = "link-rtt",
        LinkQueue = "link-queue",
        LinkRate = "link-rate",
        LinkLosses = "link-losses",
        LinkDelay = "link-delay",
        PacedSenders = "paced-senders",
        RepeatedCapture = "repeated-capture",
        TranslatedBetween = "translated-between",
        TapClocks = "tap-clocks",
        FlowsForgotten = "flows-forgotten",
        CommonTime = "common-time",
        GapInTrace = "gap-in-trace",
        Silence = "silence",
        Thinned = "thinned",
        UdpOpenLoop = "udp-open-loop",
        Quic = "quic",
        BurstsSpread = "bursts-spread",
        TurnsMerged = "turns-merged",
        SessionsCut = "sessions-cut",
        Private = "private",
        PrivateSizes = "private-sizes",
        PrivateOrdinary = "private-ordinary",
        PrivateLoad = "private-load",
        Concurrent = "concurrent",
        LoadLeftOut = "load-left-out",
        GroupAddresses = "group-addresses",
        Unmodelled = "unmodelled",
        Oddities = "oddities",
        NoTraffic = "no-traffic",
        TraceDamaged = "trace-damaged",
        CaptureBlocks = "capture-blocks",
        CaptureLinkType = "capture-link-type",
        CaptureShort = "capture-short",
        CaptureShortTransport = "capture-short-transport",
        CaptureBadIp = "capture-bad-ip",
        CaptureBadRecord = "capture-bad-record",
        CaptureBadTransport = "capture-bad-transport",
        CaptureDropped = "capture-dropped",
        CaptureTimes = "capture-times",
        CaptureNoTimes = "capture-no-times",
        OldVersion = "old-version",
        NoJointInformation = "no-joint-information",
        NotATrace = "not-a-trace",
        ServerThinkUnknown = "server-think-unknown",
        PagesAreSingleObjects = "pages-are-single-objects",
        SizesWithinBins = "sizes-within-bins",
        PathsInside = "paths-inside",
        PausesBetweenFiles = "pauses-between-files",
        // Flow records
        FileDamaged = "file-damaged",
        RecordsSkipped = "records-skipped",
        ExportLost = "export-lost",
        Sampled = "sampled",
        SampledCounts = "sampled-counts",
        SampledSizes = "sampled-sizes",
        OutOfReach = "out-of-reach",
        TimesAhead = "times-ahead",
        LateRecords = "late-records",
        RepeatedRecords = "repeated-records",
        SidesApart = "sides-apart",
        Backward = "backward",
        Scaled = "scaled",
        ExportRepeated = "export-repeated",
        ExportOutOfOrder = "export-out-of-order",
        SamplingUnknown = "sampling-unknown",
        CountedBehind = "counted-behind",
        AmbiguousSampling = "ambiguous-sampling",
        Censored = "censored",
        Evicted = "evicted",
        NoFlags = "no-flags",
        NoGaps = "no-gaps",
        OneWay = "one-way",
        BothInterfaces = "both-interfaces",
        NoStart = "no-start",
        NoTimes = "no-times",
        NoPacketCounts = "no-packet-counts",
        PacketsOfBoth = "packets-of-both",
        FewConnections = "few-connections",
        FewPerInterval = "few-per-interval",
        SilentBetween = "silent-between",
        PluginsLeftOut = "plugins-left-out",
        // Live traffic and studies
        ThreadPanicked = "thread-panicked",
        SmallDatagrams = "small-datagrams",
        GeneratorBehind = "generator-behind",
        TimersLate = "timers-late",
        ConnectionsFailed = "connections-failed",
        TransfersFailed = "transfers-failed",
        SourcesFailed = "sources-failed",
        DescriptorLimit = "descriptor-limit",
        NoDescriptors = "no-descriptors",
        AddressesShared = "addresses-shared",
        DatagramsRefused = "datagrams-refused",
        DatagramsLost = "datagrams-lost",
        NumbersInUse = "numbers-in-use",
        Strangers = "strangers",
        AccessNotApplied = "access-not-applied",
        Ipv6AsIpv4 = "ipv6-as-ipv4",
        WindowsNotCapped = "windows-not-capped",
        LateAcknowledgements = "late-acknowledgements",
        Withheld = "withheld",
        LostParties = "lost-parties",
        AgentLost = "agent-lost",
        AgentAway = "agent-away",
        FlowsLost = "flows-lost",
        AgentLimit = "agent-limit",
        AgentReturned = "agent-returned",
        AgentTwice = "agent-twice",
        DialInRefused = "dial-in-refused",
        CongestionControlMissing = "congestion-control-missing",
        CongestionControlNotInKernel = "congestion-control-not-in-kernel",
        TcpSettingsNotApplied = "tcp-settings-not-applied",
        Drained = "drained",
        QuietBeginning = "quiet-beginning",
        TapOverflown = "tap-overflown",
        LossesNotTold = "losses-not-told",
        RouterNotSeparate = "router-not-separate",
        QuickStudy = "quick-study",
        ChangedStudy = "changed-study",
        FewSeeds = "few-seeds",
        SeedsWithoutNumber = "seeds-without-number",
        ClaimFailed = "claim-failed",
        FigureFailed = "figure-failed",
        TableFailed = "table-failed",
        ReferenceDiffers = "reference-differs",
        ReferenceLength = "reference-length",
        // Doubts of the bundled studies
        StandIn = "stand-in",
        OtherRouter = "other-router",
        AlwaysOn = "always-on",
        Ties = "ties",
    }
}

impl Code {
    /// Its place among doubts of one severity: those that could change an answer most come first.
    pub fn rank(&self) -> usize {
        let first = Code::FIRST.iter().position(|c| c == self);
        first.unwrap_or(Code::FIRST.len())
    }
}

impl From<String> for Code {
    fn from(name: String) -> Code {
        Code::from(&*name)
    }
}

impl From<Code> for String {
    fn from(code: Code) -> String {
        code.as_str().into()
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_code_is_read_from_its_name() {
        for code in Code::ALL {
            assert_eq!(Code::from(code.as_str()), *code);
            let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(code.as_str().chars().all(kebab), "{code}");
        }
        assert_eq!(Code::from("of-tomorrow"), Code::Other("of-tomorrow".into()));
    }

    #[test]
    fn each_code_is_explained_and_nothing_else() {
        let page = include_str!("../../../docs/reference/warnings.md");
        let rows = page.lines().filter_map(|l| l.strip_prefix("| `"));
        let explained: BTreeSet<&str> = rows
            .filter_map(|row| row.split_once("` |"))
            .flat_map(|(codes, _)| codes.split("`, `"))
            .collect();
        let known: BTreeSet<&str> = Code::ALL.iter().map(Code::as_str).collect();
        assert_eq!(explained, known);
    }
}
