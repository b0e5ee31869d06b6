#!/bin/bash
# The network of the QUIC interop runner: replaces its ns-3 container by `swell bridge`. It has the same environment:
# SCENARIO, such as "drop-rate --delay=15ms --bandwidth=10Mbps --queue=25 --rate_to_client=2 --rate_to_server=2", and
# WAITFORSERVER, such as "server:443". One scenario is additional: "learnt --model=access-link --load=6Mbps
# --delay=15ms --bandwidth=10Mbps --queue=25" has a learnt background in the queues.
# The left interface is eth0, the right one eth1 (or LEFT and RIGHT); packets are written to LOGS (/logs).
set -u
left=${LEFT:-eth0} right=${RIGHT:-eth1} logs=${LOGS:-/logs}
# The kernel must not forward packets around the emulated link.
for tables in iptables ip6tables; do
  $tables -P FORWARD DROP 2>/dev/null || $tables -A FORWARD -j DROP 2>/dev/null || true
done
if [ -n "${WAITFORSERVER:-}" ]; then
  # The server answers an unknown version with the versions that it supports (RFC 9000 section 6).
  # Wait at most ten seconds.
  hello=$(mktemp)
  { printf '\xc0\x0a\x1a\x2a\x3a\x08interops\x08runnerss'; head -c 1300 /dev/zero; } >"$hello"
  for _ in $(seq 50); do
    answer=$(timeout 1 socat -b 2000 -t 0.2 - "UDP:$WAITFORSERVER" <"$hello" 2>/dev/null | head -c 1 | wc -c)
    [ "$answer" = 0 ] || break
  done
fi
mkdir -p "$logs"
jobs=()
for end in "$left left" "$right right"; do
  tcpdump -U -i "${end% *}" -w "$logs/trace_node_${end#* }.pcap" 2>/dev/null & jobs+=($!)
done
echo "Using scenario: $SCENARIO"
exec 3< <(exec swell bridge "${BACKGROUND:-none}" --left "$left" --right "$right" --route --scenario "$SCENARIO" 2>&1)
bridge=$!
trap 'kill -INT $bridge' INT TERM
while IFS= read -r line <&3; do
  echo "$line"
  # Endpoints wait until this port is open.
  case $line in *joined*) socat TCP-LISTEN:57832,fork,reuseaddr /dev/null & jobs+=($!) ;; esac
done
kill "${jobs[@]}" 2>/dev/null
wait
