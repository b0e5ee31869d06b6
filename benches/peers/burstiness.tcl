# The scenario of crates/world/benches/hops.rs in ns-2: M clients submit packets with exponential
# gaps of 10 ms on average to TCP Reno; access links of 10 Mbit/s and 25 ms, a gateway of
# 50 Mbit/s, 25 ms and 50 packets, scaled by M/60 above 60 (Tinnakornsrisuphap, Feng & Philp 2000,
# table 1). Usage: ns burstiness.tcl [M] [seconds]
#
# Prints packet-hops, CPU seconds of the whole process and of the simulation alone. A packet-hop is
# one packet completely received at the far end of one link.

set clients 60
set seconds 200
if {[llength $argv] > 0} { set clients [lindex $argv 0] }
if {[llength $argv] > 1} { set seconds [lindex $argv 1] }
set scale [expr {$clients > 60 ? $clients / 60.0 : 1.0}]

# Reno as at the time of the paper, as far as this release has switches for it. The receiver
# acknowledges every packet. A packet has 1500 bytes including headers.
Agent/TCP set window_ 20
Agent/TCP set windowInit_ 1
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set singledup_ 0
Agent/TCP set tcpTick_ 0.1
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1500

# User and system time of this process in seconds (proc(5)), in ticks of 10 ms.
proc cpu_seconds {} {
    set f [open /proc/self/stat]
    set after_name [lindex [split [read $f] ")"] end]
    close $f
    return [expr {([lindex $after_name 11] + [lindex $after_name 12]) / 100.0}]
}

set ns [new Simulator]
set gateway [$ns node]
set server [$ns node]
$ns duplex-link $gateway $server [expr {50e6 * $scale}] 25ms DropTail
$ns queue-limit $gateway $server [expr {int(50 * $scale)}]
$ns queue-limit $server $gateway 10000000
set bottleneck [$ns monitor-queue $gateway $server ""]

for {set i 0} {$i < $clients} {incr i} {
    set client [$ns node]
    $ns duplex-link $client $gateway 10Mb 25ms DropTail
    $ns queue-limit $client $gateway 10000000
    $ns queue-limit $gateway $client 10000000

    set tcp [new Agent/TCP/Reno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $client $tcp
    $ns attach-agent $server $sink
    $ns connect $tcp $sink

    # Bursts of one packet with exponential silences between them: a Poisson process.
    set source [new Application/Traffic/Exponential]
    $source set packetSize_ 1500
    $source set rate_ 1e15
    $source set burst_time_ 0
    $source set idle_time_ 10ms
    $source attach-agent $tcp
    $ns at 0.0 "$source start"
}

proc finish {} {
    global bottleneck clients seconds begun
    set now [cpu_seconds]
    set arrived [$bottleneck set parrivals_]
    set departed [$bottleneck set pdepartures_]
    # Arrived packets have crossed an access link, departed ones also the bottleneck. Each of the
    # latter is acknowledged at once, over two links. Packets in flight at the end are negligible.
    set hops [expr {int($arrived + 3 * $departed)}]
    puts "clients $clients  seconds $seconds  arrivals [expr {int($arrived)}]  dropped\
        [expr {int([$bottleneck set pdrops_])}]  hops $hops  cpu [format %.2f [expr {$now - $begun}]] s  process [format %.2f $now] s"
    exit 0
}
$ns at $seconds finish
# `run` computes routes before the first event, so all time before this event is set-up.
$ns at 0.0 {set begun [cpu_seconds]}
$ns run
