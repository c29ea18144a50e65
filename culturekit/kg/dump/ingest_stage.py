"""The stage from a dump to a graph; apart from the others, so that reading a dump waits for none of their packages."""

import logging
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from culturekit.core.errors import UsageError
from culturekit.core.stage import Stage
from culturekit.kg.dump.ingest import IngestOptions, ingest
from culturekit.kg.dump.members import STDIN, tells_damage

logger = logging.getLogger(__name__)

INGEST_VERSION = 5
SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def ingest_stage(
    dump: Sequence[Path],
    options: IngestOptions,
    *,
    sha256: Sequence[str] = (),
    redirects: Path | None = None,
) -> Stage:
    """Read a dump into a graph; `sha256` holds its files, in their order, to what was published."""
    if len(sha256) not in {0, len(dump)}:
        raise UsageError("give a SHA-256 for each dump file, in their order", found=f"{len(sha256)} for {len(dump)}")
    for text in sha256:
        if not SHA256.fullmatch(text):
            raise UsageError("not a SHA-256", where="--sha256", expected="64 hexadecimal digits", found=repr(text))
    if STDIN in dump:
        return stdin_stage(dump, options, sha256, redirects)
    for path in dump:
        if not sha256 and path.is_file() and not tells_damage(path):
            logger.warning("nothing in %s tells whether it is whole: hold it to its published --sha256", path)
    return Stage(
        "graph",
        "ingest",
        INGEST_VERSION,
        lambda work: ingest(work, dump, options, redirects=redirects),
        {**{f"dump-{number}": path for number, path in enumerate(dump)}, **redirect_input(redirects)},
        asdict(options),
        packages=("isal", "msgspec", "numpy", "polars"),
        expected={f"dump-{number}": text for number, text in enumerate(sha256)},
    )


def redirect_input(redirects: Path | None) -> dict[str, Path]:
    """Name the file of redirects as an input, where there is one."""
    return {} if redirects is None else {"redirects": redirects}


def stdin_stage(dump: Sequence[Path], options: IngestOptions, sha256: Sequence[str], redirects: Path | None) -> Stage:
    """Read standard input into a graph: what it holds is known only afterwards, so that its graph is never reused."""
    if len(dump) > 1:
        raise UsageError("standard input is the whole dump", expected="- alone", found=" ".join(map(str, dump)))
    if sha256:
        raise UsageError(
            "standard input cannot be held to a SHA-256 before it is read",
            hint="Check the stream on its way: curl ... | tee >(sha256sum >&2) | culturekit kg ingest -",
        )
    return Stage(
        "graph",
        "ingest",
        INGEST_VERSION,
        lambda work: ingest(work, dump, options, redirects=redirects),
        redirect_input(redirects),
        {**asdict(options), "standard input, begun": datetime.now(UTC).isoformat()},
        packages=("isal", "msgspec", "numpy", "polars"),
    )
