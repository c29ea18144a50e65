"""The most memory that this program has held since it was started."""

from pathlib import Path


def peak_mebibytes() -> float:
    """Give the highest resident size in MiB.

    `ru_maxrss` would not do: it starts at what the process that started this one had held.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kibibytes) / 1024
