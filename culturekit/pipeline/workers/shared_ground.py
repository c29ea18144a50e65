"""What a worker on another machine must share with the one who asks: versions, folders, and that one still asks.

The asker puts a marker file into the folder that it writes to. Before an item, a worker makes sure that it reads
the same marker there. When the asker is gone, so is the marker, and items that are left do nothing.
"""

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from uuid import uuid4

from culturekit.errors import UsageError
from culturekit.version import VERSION, install_line

__all__ = ["SharedGround", "lay_ground", "ready", "stand_on", "versions_here"]

PACKAGES = ("distributed", "numpy", "open_clip_torch", "pillow", "polars", "scipy", "torch", "transformers")
"""What may decide bytes, and what carries them."""

PATIENCE = 30.0
"""Seconds until a file that another machine wrote must be seen; shared file systems remember for a while what was
not there."""


@dataclass(frozen=True, slots=True)
class SharedGround:
    """What all workers share: the folder where the command runs, the marker in the one it writes to, versions.

    `patience` is how many seconds a worker looks for the marker.
    """

    folder: Path
    marker: Path
    token: str
    versions: tuple[tuple[str, str], ...]
    patience: float = PATIENCE


def lay_ground(folder: Path) -> SharedGround:
    """Put a fresh marker into a folder, which is made if it is not there; the caller removes the marker.

    Markers of killed runs of this machine are removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prefix = f".culturekit-engine-{platform.node()}-"
    for old in sorted(folder.glob(f"{prefix}*")):
        pid = old.name.removeprefix(prefix).partition("-")[0]
        if pid.isdecimal() and not alive(int(pid)):
            old.unlink(missing_ok=True)
    token = uuid4().hex
    marker = folder.resolve() / f"{prefix}{os.getpid()}-{token[:8]}"
    marker.write_text(token, encoding="ascii")
    return SharedGround(Path.cwd(), marker, token, tuple(versions_here().items()))


def alive(pid: int) -> bool:
    """Tell whether a process of this machine is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@cache
def versions_here() -> Mapping[str, str]:
    """List the versions of what may decide bytes; a package that is not installed has none."""
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "culturekit": VERSION}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def stand_on(ground: SharedGround) -> bool:
    """Go where the asker is; False when it is gone, an error when something is not shared."""
    ready(ground)
    if Path.cwd() != ground.folder:
        try:
            os.chdir(ground.folder)
        except OSError as error:
            raise not_shared(ground.folder, error) from error
    return ground.marker.exists()


@cache
def ready(ground: SharedGround) -> None:
    """Check once per process that versions and the folder are shared."""
    check_versions(ground)
    check_marker(ground)


def check_versions(ground: SharedGround) -> None:
    """Refuse to work with other versions than the asker's: the bytes could differ."""
    here = versions_here()
    differ = [(name, asked) for name, asked in ground.versions if here[name] != asked]
    if differ:
        raise UsageError(
            "a worker has other versions than the command, so its results could differ",
            where=f"worker on {platform.node()}",
            expected=", ".join(f"{name} {asked}" for name, asked in differ),
            found=", ".join(f"{name} {here[name]}" for name, _ in differ),
            hint=f"Install the same on all machines: {install_line('all')}",
        )


def check_marker(ground: SharedGround) -> None:
    """Make sure that the folder the command writes to is the same one here."""
    end = time.monotonic() + ground.patience
    while True:
        try:
            if ground.marker.read_text(encoding="ascii") == ground.token:
                return
            problem = OSError("another file of the same name")
        except OSError as error:
            problem = error
        if time.monotonic() >= end:
            raise not_shared(ground.marker.parent, problem) from problem
        time.sleep(0.2)


def not_shared(folder: Path, error: OSError) -> UsageError:
    """Say that a worker does not see a folder."""
    return UsageError(
        "a worker does not see the folder of the command",
        where=f"{folder} on {platform.node()}",
        expected="a file system that all machines share, mounted at the same path",
        found=error.strerror or str(error),
        hint="Write to a shared folder (--out, --workdir), start the command in one, or use --engine local.",
    )
