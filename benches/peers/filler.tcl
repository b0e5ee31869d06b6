# The filler study (studies/filler) in ns-2.35: replayed packets in both directions over a link of two strict
# priorities, and one endless transfer at low priority. scripts/filler-ns2 makes the traces, runs the settings and
# writes the reference table of the study.
#
#   2 --\            /-- 3      pre-existing packets, replayed over UDP both ways
#        4 ======== 5
#   0 --/            \-- 1      filler: SACK with delayed acknowledgements, 0 -> 1
#
# Usage: ns filler.tcl key=value ...
#   forward=FILE reverse=FILE   packets with the filler and against it, as Application/Traffic/Trace reads them
#   rate=10 latency=20          of the central link, Mbit/s and ms
#   filler=1 seconds=600
#   start=0                     when the transfer begins, in seconds
#   high=32 low=32              queue limits of pre-existing packets and of filler, in packets
#
# Prints a line for each flow and direction at the central link: flow (present, filler, ack), direction,
# packets that arrived, percent dropped, mean wait and mean delay in ms (the wait, the transmission of a packet
# of mean size and the latency), thousands of bytes carried in a second, and that mean size in bytes.

array set O {forward "" reverse "" rate 10 latency 20 filler 1 seconds 600 high 32 low 32 start 0}
foreach a $argv {
    if {![regexp {^([a-z]+)=(.*)$} $a -> k v] || ![info exists O($k)]} {
	puts stderr "bad argument: $a"; exit 2
    }
    set O($k) $v
}

# Packets of 1000 bytes with headers, as those of 2001: the 40 bytes are not added to packetSize_.
Agent/TCP set packetSize_ 1000
Agent/TCP set useHeaders_ false
Agent/TCP set window_ 20000
# Two FIFO classes without preemption; flow 0 has low priority. A class holds one packet less than its limit.
Queue/SimpleIntServ set qlimit0_ [expr {$O(low) + 1}]
Queue/SimpleIntServ set qlimit1_ [expr {$O(high) + 1}]
Tracefile set debug_ 0

set ns [new Simulator]
ns-random 1
for {set i 0} {$i < 6} {incr i} { set n($i) [$ns node] }
$ns duplex-link $n(4) $n(5) $O(rate)Mb $O(latency)ms SimpleIntServ
foreach {a b} {0 4 2 4 1 5 3 5} {
    $ns duplex-link $n($a) $n($b) 1000Mb 0.01ms DropTail
    $ns queue-limit $n($a) $n($b) 1000000
    $ns queue-limit $n($b) $n($a) 1000000
}

foreach {a b file flow} [list 2 3 $O(forward) 1 3 2 $O(reverse) 2] {
    set trace [new Tracefile]
    $trace filename $file
    set from [new Agent/UDP]
    # Larger packets would be split.
    $from set packetSize_ 1500
    $from set fid_ $flow
    set to [new Agent/Null]
    $ns attach-agent $n($a) $from
    $ns attach-agent $n($b) $to
    $ns connect $from $to
    set replay [new Application/Traffic/Trace]
    $replay attach-tracefile $trace
    $replay attach-agent $from
    $ns at 0 "$replay start"
}
if {$O(filler)} {
    set from [new Agent/TCP/Sack1]
    set to [new Agent/TCPSink/Sack1/DelAck]
    $from set fid_ 0
    $to set fid_ 0
    $ns attach-agent $n(0) $from
    $ns attach-agent $n(1) $to
    $ns connect $from $to
    set transfer [new Application/FTP]
    $transfer attach-agent $from
    $ns at $O(start) "$transfer start"
}

foreach {direction a b} {forward 4 5 reverse 5 4} {
    set seen($direction) [$ns makeflowmon Fid]
    $ns attach-fmon [$ns link $n($a) $n($b)] $seen($direction)
}
proc finish {} {
    global O seen
    foreach direction {forward reverse} {
	foreach f [$seen($direction) flows] {
	    set left [$f set pdepartures_]
	    if {$left == 0} continue
	    set name present
	    if {[$f set flowid_] == 0} { set name [expr {$direction == "forward" ? "filler" : "ack"}] }
	    set size [expr {double([$f set bdepartures_]) / $left}]
	    set wait [expr {1e3 * [[$f get-delay-samples] mean]}]
	    set delay [expr {$wait + $size * 8 / ($O(rate) * 1e6) * 1e3 + $O(latency)}]
	    puts [list $name $direction [$f set parrivals_] \
		[format %.5f [expr {100.0 * [$f set pdrops_] / [$f set parrivals_]}]] \
		[format %.5f $wait] [format %.5f $delay] \
		[format %.3f [expr {[$f set bdepartures_] / $O(seconds) / 1e3}]] [format %.1f $size]]
	}
    }
    exit 0
}
$ns at $O(seconds) finish
$ns run
