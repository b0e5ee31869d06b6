"""Keys and values of a sweep that are refused before any cell starts, and those that are not."""
import concurrent.futures

import pytest

import groundswell
from small import LEARNT, TEXT

GRID = {"background.poisson.rate": ["2Mbit", "8Mbit"], "network.delay": ["2ms", "20ms"]}


def test_a_wrong_key_is_refused_before_any_cell_starts(here):
    for grid, message in (
        ({"network.dealy": ["1ms"], "network.rate": ["8Mbit", "9Mbit"]}, "did you mean `delay`"),
        ([{"network.rate": "9Mbit"}, {"network.rte": "8Mbit"}, {"network.rte": "9Mbit"}], "did you mean `rate`"),
        ({"background.mine.rate": ["1Mbit", "2Mbit"]}, "nothing here is called `mine`"),
    ):
        with pytest.raises(groundswell.UsageError, match=message):
            groundswell.sweep(TEXT, grid, concurrent.futures.ThreadPoolExecutor(1), output="sweep")
    assert not (here / "sweep").exists()


def test_what_only_a_worker_can_know_is_no_wrong_key(here):
    """Files may be there alone, and bad values are errors of their cells, also if a list begins and ends with one."""
    class There(concurrent.futures.Executor):
        cells = 0

        def submit(self, fn, /, *args):
            self.cells += 1
            future = concurrent.futures.Future()
            future.set_exception(OSError("no such worker"))
            return future

    def refused(grid, text=TEXT):
        There.cells, there = 0, There()
        with pytest.raises(groundswell.SweepError):
            groundswell.sweep(text, grid, there, output=f"sweep-{next(names)}", retries=0)
        return there.cells

    names = iter(range(9))
    assert refused({"background.poisson.model": ["away.json"], "network.delay": ["1ms", "2ms"]}, LEARNT) == 2
    points = [("1x", "1Mbit"), ("1x", "2Mbit"), ("1ms", "1Mbit"), ("1x", "3Mbit")]
    assert refused([{"network.delay": delay, "network.rate": rate} for delay, rate in points]) == 4
    # A key that does not exist is none of a file.
    with pytest.raises(groundswell.UsageError, match="unknown key `trace`"):
        groundswell.sweep(TEXT, {"network.trace": ["a", "b"]}, There(), output="none")


def test_keys_belong_in_the_grid(here):
    with pytest.raises(groundswell.UsageError, match=r'keys are in the grid: \{"run.duration": \[.20s.\]\}'):
        groundswell.sweep(TEXT, GRID, run__duration="20s")
    with pytest.raises(groundswell.UsageError, match="did you mean `replications`"):
        groundswell.sweep(TEXT, GRID, replicatons=3)
