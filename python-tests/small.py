"""A small experiment."""

TEXT = """
name = "small"
[network]
rate = "10Mbit"
delay = "5ms"
[[foreground]]
name = "page"
kind = "web"
object = "20kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "6Mbit"
[run]
replications = 2
warmup = "1s"
duration = "5s"
"""

# A model of the test's own instead of Poisson packets.
LEARNT = TEXT.replace('kind = "poisson"\nrate = "6Mbit"', 'kind = "learnt"\nmodel = "mine.json.zst"').replace("5s", "2s")
