# One run of the burstiness study (studies/burstiness) in ns-2.35. scripts/burstiness-ns2 makes the reference table of
# the study from such runs. (burstiness.tcl, beside this file, measures speed.)
#
#   clients --- 10 Mbit/s, 25 ms ---> gateway --- 50 Mbit/s, 25 ms ---> server
#
# Each client submits single packets of 1500 bytes with exponential gaps of 10 ms (Tinnakornsrisuphap, Feng & Philp
# 2000, table 1). Only the gateway's queue towards the server has a limit.
#
# Usage: ns burstiness-study.tcl key=value ...
#   profile=modern      the defaults of ns-2.35; era: those of 1999 and 2000, as far as 2.35 has switches for them
#   transport=reno      of the clients: udp, reno, renodelack (acknowledgements delayed), vegas
#   clients=30 background=0     clients, and added Reno clients that submit the same load each
#   queue=fifo buffer=50        or red, with min=10 max=40 (packets)
#   seed=1 seconds=200
#
# Prints the c.o.v. of packets that arrive at the gateway per tenth of a second, drops included: over the whole run and
# after 10 s. Then a line for the clients and, if there is any, one for the background: packets delivered in order,
# arrived at the gateway, dropped there.

array set O {
    profile modern transport reno clients 30 background 0 queue fifo buffer 50 min 10 max 40 seed 1 seconds 200
}
foreach a $argv {
    if {![regexp {^([a-z]+)=(.*)$} $a -> k v] || ![info exists O($k)]} {
	puts stderr "bad argument: $a"; exit 2
    }
    set O($k) $v
}

# The dates, from its change log, say when ns-2 changed the default. useHeaders_ adds 40 bytes to packetSize_.
set payload 1460
if {$O(profile) == "era"} {
    set payload 1500
    Agent/TCP set useHeaders_ false	;# 2001-11
    Agent/TCP set windowInit_ 1		;# 2001-05
    Agent/TCP set syn_ false		;# 2001-05
    Agent/TCP set delay_growth_ false	;# 2001-05
    Agent/TCP set timerfix_ false	;# 2001-05
    Agent/TCP set singledup_ 0		;# 2001-11
    Agent/TCP set tcpTick_ 0.1		;# 2002-03
    Agent/TCP set rfc2988_ false	;# 2002-03
    Agent/TCP set minrto_ 0		;# the floor was two ticks
    Agent/TCP set maxrto_ 64
    Agent/TCP set rtxcur_init_ 6.0	;# 2006-01
    Agent/TCP set precisionReduce_ false	;# 2006-01
    Agent/TCP set updated_rttvar_ false	;# 2006-01
    Agent/TCPSink set RFC2581_immediate_ack_ false
    Queue/RED set gentle_ false		;# 2001-04
    Queue/RED set q_weight_ 0.002	;# 2001-12
    Queue/RED set bytes_ false		;# 2004-10
    Queue/RED set queue_in_bytes_ false	;# 2004-10
    Queue/RED set use_mark_p_ false
} elseif {$O(profile) != "modern"} {
    puts stderr "no such profile: $O(profile)"; exit 2
}
Agent/TCP set window_ 20
# If the queue is measured in bytes, thresholds count packets of this size.
Queue/RED set mean_pktsize_ 1500
Queue/RED set thresh_ $O(min)
Queue/RED set maxthresh_ $O(max)

set ns [new Simulator]
$defaultRNG seed [expr {1000 + $O(seed)}]
array set discipline {fifo DropTail red RED}
set gateway [$ns node]
set server [$ns node]
$ns simplex-link $gateway $server 50Mb 25ms $discipline($O(queue))
$ns simplex-link $server $gateway 50Mb 25ms DropTail
$ns queue-limit $gateway $server $O(buffer)
$ns queue-limit $server $gateway 1000000

# Flow 1 is the background, flow 2 the clients.
set total [expr {$O(background) + $O(clients)}]
for {set i 0} {$i < $total} {incr i} {
    set node($i) [$ns node]
    $ns duplex-link $node($i) $gateway 10Mb 25ms DropTail
    $ns queue-limit $node($i) $gateway 1000000
    $ns queue-limit $gateway $node($i) 1000000
}
for {set i 0} {$i < $total} {incr i} {
    set flow [expr {$i < $O(background) ? 1 : 2}]
    set transport [expr {$flow == 1 ? "reno" : $O(transport)}]
    set size $payload
    switch $transport {
	udp        { set from [new Agent/UDP]; set to [new Agent/LossMonitor] }
	reno       { set from [new Agent/TCP/Reno]; set to [new Agent/TCPSink] }
	renodelack { set from [new Agent/TCP/Reno]; set to [new Agent/TCPSink/DelAck] }
	vegas      { set from [new Agent/TCP/Vegas]; set to [new Agent/TCPSink] }
	default    { puts stderr "no such transport: $transport"; exit 2 }
    }
    # These two agents add no headers to the packet size.
    if {$transport == "udp" || $transport == "vegas"} { set size 1500 }
    $from set packetSize_ $size
    $from set fid_ $flow
    $ns attach-agent $node($i) $from
    $ns attach-agent $server $to
    $ns connect $from $to
    lappend sinks($flow) $to

    # Bursts of one packet with exponential silences between them: a Poisson process.
    set source [new Application/Traffic/Exponential]
    $source use-rng [new RNG]
    $source set packetSize_ $size
    $source set rate_ 1e15
    $source set burst_time_ 0
    $source set idle_time_ 10ms
    $source attach-agent $from
    $ns at 0.0 "$source start"
}

set seen [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $gateway $server] $seen
set bins {}
set before 0
proc sample {} {
    global ns seen bins before
    set arrived [$seen set parrivals_]
    lappend bins [expr {$arrived - $before}]
    set before $arrived
    $ns at [expr {[$ns now] + 0.1}] sample
}
$ns at 0.1 sample

proc cov {bins} {
    set n [llength $bins]
    set sum 0.0
    foreach b $bins { set sum [expr {$sum + $b}] }
    set mean [expr {$sum / $n}]
    set squares 0.0
    foreach b $bins { set squares [expr {$squares + ($b - $mean) ** 2}] }
    return [format %.5f [expr {sqrt($squares / ($n - 1)) / $mean}]]
}
proc finish {} {
    global O seen bins sinks
    puts "[cov $bins] [cov [lrange $bins 100 end]]"
    foreach flow {2 1} {
	if {![info exists sinks($flow)]} continue
	set delivered 0
	foreach to $sinks($flow) {
	    if {[$to info class] == "Agent/LossMonitor"} {
		incr delivered [$to set npkts_]
	    } else {
		incr delivered [expr {int([$to set bytes_]) / 1500}]
	    }
	}
	foreach f [$seen flows] {
	    if {[$f set flowid_] == $flow} { puts "$delivered [$f set parrivals_] [$f set pdrops_]" }
	}
    }
    exit 0
}
$ns at $O(seconds) finish
$ns run
