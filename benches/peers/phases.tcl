# Ten long flows over one drop-tail queue in ns-2: round trips of five are 40 ms, of five 160 ms, and the link sends a packet
# in 1.2 ms. Round numbers lock phases, so senders take a random time before each packet (`overhead_`).
# crates/world/tests/phases.rs has the same scenario. Usage: ns phases.tcl RUN PACKETS OVERHEAD [SECONDS]
#
# Prints what the near and the far flows delivered, in Mbit/s. RUN draws starts and times.

lassign $argv run packets overhead seconds
if {$seconds eq ""} { set seconds 120 }
$defaultRNG seed [expr {$run + 1}]
set starts [new RNG]
$starts seed [expr {$run + 100}]

Agent/TCP set packetSize_ 1460
Agent/TCP set overhead_ $overhead
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 10Mb 0ms DropTail
$ns queue-limit $left $right $packets
$ns queue-limit $right $left 1000000
for {set i 0} {$i < 10} {incr i} {
    set client [$ns node]
    set server [$ns node]
    foreach {host router} [list $client $left $server $right] {
        $ns duplex-link $host $router 100000Mb [expr {$i % 2 ? 40 : 10}]ms DropTail
        $ns queue-limit $host $router 1000000
        $ns queue-limit $router $host 1000000
    }
    set tcp($i) [new Agent/TCP/Reno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $client $tcp($i)
    $ns attach-agent $server $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$starts uniform 0 1] "$ftp start"
}

proc finish {} {
    global tcp run packets overhead seconds
    set line "$run,$packets,$overhead"
    foreach first {0 1} {
        set n 0
        for {set i $first} {$i < 10} {incr i 2} { incr n [expr {[$tcp($i) set ack_] + 1}] }
        append line [format ",%.3f" [expr {$n * 1460 * 8.0 / $seconds / 1e6}]]
    }
    puts $line
    exit 0
}
$ns at $seconds finish
$ns run
