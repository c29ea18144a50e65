"""A dask cluster as an engine meets it: started here or found at an address, and what it means when it fails."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import CancelledError, Client, LocalCluster

from culturekit.errors import UpstreamUnavailable, UsageError
from culturekit.pipeline.workers.worker_process import SINGLE_THREAD
from culturekit.version import install_line

__all__ = ["cluster", "connected", "dead", "deserted", "lost", "talking_to", "unready"]

CONNECTING_SECONDS = 10

AT_REST = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "10s",
}
"""How seldom processes look at themselves: four workers at rest, with all that keeps them, took .27 of a
processor, and take .03 so."""


@contextmanager
def cluster(processes: int) -> Iterator[LocalCluster]:
    """Start workers of this machine, one process each with one thread for arithmetic, and no web page."""
    with (
        dask.config.set(AT_REST),
        LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            memory_limit=0,
            silence_logs=logging.ERROR,
            env=dict.fromkeys(SINGLE_THREAD, "1"),
        ) as made,
    ):
        yield made


@contextmanager
def connected(target: "str | LocalCluster") -> Iterator[Client]:
    """Connect to a scheduler."""
    try:
        client = Client(target, timeout=CONNECTING_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UpstreamUnavailable(
            "the dask scheduler cannot be reached",
            where=str(target),
            found=str(error),
            hint="Start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`; or leave "
            "--engine out.",
        ) from error
    with quiet(), client:
        yield client


@contextmanager
def quiet() -> Iterator[None]:
    """Keep dask from telling in tracebacks what is told in culturekit's words: it writes to stderr by itself."""
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def talking_to(place: str) -> Iterator[None]:
    """Say what it means when a scheduler stops to answer, or cannot read what it is sent."""
    try:
        yield
    except (CancelledError, OSError) as error:
        raise lost(place, error) from error
    except (ImportError, RuntimeError) as error:
        raise unready(error) from error


def dead(item: object) -> UpstreamUnavailable:
    """Say on which item workers keep dying, and what usually kills them."""
    return UpstreamUnavailable(
        "workers died again and again on one item",
        found=repr(item),
        hint="Their machines may be out of memory: start fewer workers on each.",
    )


def deserted(place: str, seconds: float) -> UpstreamUnavailable:
    """Say that nobody is there to work."""
    return UpstreamUnavailable(
        f"the scheduler has had no worker for {seconds:.0f} seconds",
        where=place,
        hint="Start some with `dask worker ADDRESS --nthreads 1`, or wait longer: --engine 'ADDRESS?wait=3600'.",
    )


def lost(place: str, error: BaseException) -> UpstreamUnavailable:
    """Say that the scheduler is gone, in the words of who noticed."""
    return UpstreamUnavailable(
        "the connection to the scheduler was lost",
        where=place,
        found=f"{type(error).__name__}: {str(error).partition(chr(10))[0].rstrip('.')}",
        hint="What was done is kept, and the same command goes on from there.",
    )


def unready(problem: Exception) -> UsageError:
    """Say that the machines of a cluster cannot even read what they are asked."""
    return UsageError(
        "the dask cluster cannot run culturekit",
        expected="the same packages on the scheduler and on all workers as here",
        found=f"{type(problem).__name__}: {problem}",
        hint=f"Install the same on all machines: {install_line('all')}",
    )
