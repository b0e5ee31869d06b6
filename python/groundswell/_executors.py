"""Adapters that give executors of other libraries the interface of `concurrent.futures`."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable
from typing import Any

from groundswell.errors import UsageError

POLL = 0.2
"""Seconds between two looks at jobs that cannot call back."""


def adapt(executor: Any) -> concurrent.futures.Executor:
    """`executor` itself if it has this interface, otherwise an adapter: for the module `ray`, or an executor of submitit.

    Raises `UsageError` for anything else."""
    if isinstance(executor, concurrent.futures.Executor):
        return executor
    if hasattr(executor, "ObjectRef") and hasattr(executor, "remote"):
        return _Ray(executor)
    if hasattr(executor, "submit"):
        return _Polled(executor)
    raise UsageError(
        f"{executor!r} is no executor",
        "give an executor of concurrent.futures, Dask or submitit, the module ray, or a number",
        2,
    )


class _Ray(concurrent.futures.Executor):
    """Runs calls as tasks of Ray, with futures for their results."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        # The caller retries failures.
        return self._ray.remote(fn).options(max_retries=0).remote(*args, **kwargs).future()


class _Polled(concurrent.futures.Executor):
    """Jobs with `done()` and `result()` but without callbacks, such as submitit's: one thread polls them all."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._jobs: dict[concurrent.futures.Future[Any], Any] = {}
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        job = self._executor.submit(fn, *args, **kwargs)
        if isinstance(job, concurrent.futures.Future):
            return job  # pyright: ignore[reportUnknownVariableType]
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            self._jobs[future] = job
            if self._watcher is None:
                # A daemon thread, so that an interrupted caller does not wait for jobs of a cluster.
                self._watcher = threading.Thread(target=self._watch, name="jobs", daemon=True)
                self._watcher.start()
        return future

    def _watch(self) -> None:
        while True:
            with self._lock:
                jobs = list(self._jobs.items())
                if not jobs:
                    self._watcher = None
                    return
            for future, job in jobs:
                try:
                    if not job.done():
                        continue
                    result = job.result()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
                with self._lock:
                    del self._jobs[future]
            time.sleep(POLL)
