"""The version of culturekit, which stands in every manifest, and how more of it is installed."""

import shlex
from pathlib import Path

VERSION = "0.1.0"
"""The version, as manifests state it."""

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
"""Versions known to work; a checkout has them."""


def install_line(extra: str = "", *, packages: str = "") -> str:
    """Give the command that installs an extra, or packages; in a checkout with the versions that are known to work."""
    known = CONSTRAINTS.name if CONSTRAINTS.parent == Path.cwd() else shlex.quote(str(CONSTRAINTS))
    pinned = f"-c {known} " if CONSTRAINTS.is_file() else ""
    return f"pip install {pinned}" + (packages or f"'culturekit[{extra}]'")
