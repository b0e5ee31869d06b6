# A parking lot of three links in ns-2: eight long flows cross all of them, and four flows cross each link alone.
# crates/world/tests/parking_lot.rs has the same scenario. Usage: ns parking-lot.tcl [RUN [SECONDS]]
#
# Prints the packets delivered by the long flows and by the cross flows of each link, and the arrivals and drops at
# each link's queue, in packets. RUN shifts the start times of flows; all else is the same.

set run 0
set seconds 200
if {[llength $argv] > 0} { set run [lindex $argv 0] }
if {[llength $argv] > 1} { set seconds [lindex $argv 1] }

# Reno as ns-2 ran it before 2000: the profile `era` of burstiness-study.tcl.
Agent/TCP set window_ 64
Agent/TCP set windowInit_ 1
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set singledup_ 0
Agent/TCP set tcpTick_ 0.1
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1500
Agent/TCP set rfc2988_ false
Agent/TCP set timerfix_ false
Agent/TCP set minrto_ 0
Agent/TCP set maxrto_ 64
Agent/TCP set rtxcur_init_ 6.0
Agent/TCP set precisionReduce_ false
Agent/TCP set updated_rttvar_ false
Agent/TCPSink set RFC2581_immediate_ack_ false

set ns [new Simulator]
for {set i 0} {$i < 4} {incr i} { set router($i) [$ns node] }
# Rates differ a little: between links of one rate packets of one size arrive for ever at the instants of departures,
# and which of the two comes first decides who loses (Floyd & Jacobson 1991).
set rates {10.00Mb 10.07Mb 9.96Mb}
for {set i 0} {$i < 3} {incr i} {
    set next [expr {$i + 1}]
    $ns duplex-link $router($i) $router($next) [lindex $rates $i] [expr {5 * ($i + 1)}]ms DropTail
    $ns queue-limit $router($i) $router($next) 30
    $ns queue-limit $router($next) $router($i) 10000000
    set queue($i) [$ns monitor-queue $router($i) $router($next) ""]
}

# A flow between hosts of its own at two routers, and when it starts.
set flows 0
proc flow {from to} {
    global ns router flows run
    set j $flows
    incr flows
    set client [$ns node]
    set server [$ns node]
    foreach {host place} [list $client $from $server $to] {
        $ns duplex-link $host $router($place) 100Mb [expr {1 + $j % 5}]ms DropTail
        $ns queue-limit $host $router($place) 10000000
        $ns queue-limit $router($place) $host 10000000
    }
    set tcp [new Agent/TCP/Reno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $client $tcp
    $ns attach-agent $server $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [expr {0.1 * $j + (($j * 7919 + $run * 104729) % 1000) / 10000.0}] "$ftp start"
    return $tcp
}

for {set i 0} {$i < 8} {incr i} { lappend senders(long) [flow 0 3] }
for {set i 0} {$i < 3} {incr i} {
    for {set k 0} {$k < 4} {incr k} { lappend senders($i) [flow $i [expr {$i + 1}]] }
}

# Highest packets acknowledged, from 0.
proc delivered {list} {
    set sum 0
    foreach tcp $list { incr sum [expr {[$tcp set ack_] + 1}] }
    return $sum
}

proc finish {} {
    global run senders queue
    set line "$run,[delivered $senders(long)]"
    for {set i 0} {$i < 3} {incr i} {
        append line ",[delivered $senders($i)]"
        append line ",[expr {int([$queue($i) set parrivals_])}],[expr {int([$queue($i) set pdrops_])}]"
    }
    puts $line
    exit 0
}
$ns at $seconds finish
$ns run
