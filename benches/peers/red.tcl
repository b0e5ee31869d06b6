# An open-loop source through one RED queue of ns-2.35: packets of the given sizes in turn at
# exponential gaps, so that the queue alone decides what happens. crates/path/tests/queues/ns2_red.rs
# holds the results against ours.
#
# Usage: ns red.tcl key=value ...
#   load=1.0 seed=1 duration=200 rate=10e6 delay=0.01 limit=50 sizes="1000"
#   thresh=5 maxthresh=15 qw=0.002 linterm=10 mean=1000 wait=true gentle=false adaptive=0
#   bytes=false qib=false usemark=false     as of 1999-2000; all true as released
#   trace=FILE                              FILE: every change of the average; FILE.arrivals:
#                                           instant and size of every arrival
#
# Prints arrivals, drops, the mean queue in packets and the last max_p.

array set O {load 1.0 seed 1 duration 200 rate 10e6 delay 0.01 limit 50 sizes 1000 thresh 5
    maxthresh 15 qw 0.002 linterm 10 mean 1000 wait true gentle false adaptive 0 bytes false
    qib false usemark false trace ""}
foreach a $argv {
    if {![regexp {^([a-z]+)=(.*)$} $a -> k v] || ![info exists O($k)]} {
	puts stderr "bad argument: $a"; exit 2
    }
    set O($k) $v
}
foreach {name key} {thresh_ thresh maxthresh_ maxthresh q_weight_ qw linterm_ linterm
    mean_pktsize_ mean wait_ wait gentle_ gentle adaptive_ adaptive bytes_ bytes
    queue_in_bytes_ qib use_mark_p_ usemark} {
    Queue/RED set $name $O($key)
}

set ns [new Simulator]
$defaultRNG seed $O(seed)
set a [$ns node]
set b [$ns node]
$ns simplex-link $a $b $O(rate) $O(delay)s RED
$ns simplex-link $b $a $O(rate) $O(delay)s DropTail
$ns queue-limit $a $b $O(limit)
set queue [[$ns link $a $b] queue]
set monitor [$ns monitor-queue $a $b ""]

# A datagram is as large as it is sent, up to packetSize_.
set source [new Agent/UDP]
$source set packetSize_ 65000
set sink [new Agent/Null]
$ns attach-agent $a $source
$ns attach-agent $b $sink
$ns connect $source $sink

set mean 0.0
foreach s $O(sizes) { set mean [expr {$mean + double($s) / [llength $O(sizes)]}] }
set gap [expr {8.0 * $mean / $O(rate) / $O(load)}]
set rng [new RNG]
set number 0
proc arrive {} {
    global ns source rng gap number O arrivals
    set size [lindex $O(sizes) [expr {$number % [llength $O(sizes)]}]]
    if {$O(trace) != ""} { puts $arrivals "[format %.12f [$ns now]] $size" }
    incr number
    $source send $size
    $ns at [expr {[$ns now] + [$rng exponential $gap]}] arrive
}
if {$O(trace) != ""} {
    set averages [open $O(trace) w]
    set arrivals [open $O(trace).arrivals w]
    $queue trace ave_
    $queue attach $averages
}
proc finish {} {
    global O monitor queue averages arrivals
    set area [$monitor get-pkts-integrator]
    $area newpoint $O(duration) [$monitor set pkts_]
    puts "arrivals=[$monitor set parrivals_] drops=[$monitor set pdrops_]\
	mean_queue=[format %.4f [expr {[$area set sum_] / $O(duration)}]]\
	max_p=[$queue set cur_max_p_]"
    if {$O(trace) != ""} { close $averages; close $arrivals }
    exit 0
}
$ns at 0.001 arrive
$ns at $O(duration) finish
$ns run
