"""Weights that are published as pickles, made into safetensors; nothing else in culturekit reads a pickle."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from culturekit.errors import CultureKitError, IntegrityError, MissingDependency, UpstreamUnavailable, UsageError
from culturekit.index.weights.weight_kinds import KINDS, Kind
from culturekit.storage.atomic import STRAY
from culturekit.storage.digests import digest_file
from culturekit.storage.model_files import read_header
from culturekit.version import install_line

__all__ = ["ConvertedWeights", "convert_weights", "known_kind"]

SECONDS = 1800
"""How long a conversion may take."""

SHA256 = re.compile(r"[0-9a-f]{64}")

REFUSALS: Mapping[str, tuple[str, str]] = {
    "program": (
        "the file holds more than tensors, and nothing of it was run",
        "Weights are tensors and plain containers. If you trust its maker, ask for a file of these alone.",
    ),
    "bomb": ("the file unpacks to more than it is", "Nothing of it was unpacked."),
    "broken": ("the file is cut short or broken, or not made by torch.save", "Fetch it again."),
    "memory": ("the file takes more memory than its size allows", "Nothing was kept of it."),
}
"""What is said of a file that cannot be converted, and what to do next."""


@dataclass(frozen=True, slots=True)
class ConvertedWeights:
    """A safetensors file and where it comes from."""

    path: Path
    sha256: str
    kind: str
    variant: str
    tensors: int
    numbers: int
    left_out: tuple[str, ...]
    source_sha256: str


def convert_weights(file: Path, *, sha256: str, out: Path, kind: Kind | None = None) -> ConvertedWeights:
    """Convert a file of a known kind, if it is the one with this SHA-256; it is hashed before anything reads it.

    A process of its own unpickles it (`weights_only`), with bounded memory and time and no way out.
    """
    expected = checked(sha256, out)
    try:
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
            if found != expected:
                raise IntegrityError(
                    "not the file that was published",
                    where=str(file),
                    expected=f"SHA-256 {expected}",
                    found=found,
                    hint="Nothing in it was read. Fetch it again.",
                )
            refuse_overwriting(out, expected)
            answer = unpickled(opened, file, out, kind, expected)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError("there is no such file", where=str(file)) from error
    return ConvertedWeights(
        out,
        digest_file(out),
        answer["kind"],
        answer["variant"],
        answer["tensors"],
        answer["numbers"],
        tuple(answer["left_out"]),
        expected,
    )


def known_kind(text: str | None) -> Kind | None:
    """Look a kind up by its name."""
    for kind in KINDS:
        if kind == text:
            return kind
    if text is not None:
        raise UsageError(f"there is no kind of weights {text!r}", expected=" or ".join(KINDS))
    return None


def checked(sha256: str, out: Path) -> str:
    """Check what was asked for; give the hash in lower case."""
    expected = sha256.strip().lower().removeprefix("sha256:")
    if SHA256.fullmatch(expected) is None:
        raise UsageError("not a SHA-256", expected="64 hexadecimal digits", found=repr(sha256))
    if out.suffix != ".safetensors":
        raise UsageError("the file to write has another ending", expected="NAME.safetensors", found=out.name)
    if not out.absolute().parent.is_dir():
        raise UsageError("there is no such folder", where=str(out.parent))
    return expected


def refuse_overwriting(out: Path, sha256: str) -> None:
    """Keep a file that is not an earlier conversion of the same weights."""
    if not out.exists():
        return
    try:
        source = read_header(out).notes.get("culturekit.source_sha256") if out.is_file() else None
    except IntegrityError:
        source = None
    if source != sha256:
        raise UsageError("something else stands there", where=str(out), hint="Name another file, or move this one.")


def unpickled(opened: BinaryIO, file: Path, out: Path, kind: Kind | None, sha256: str) -> Mapping[str, Any]:
    """Let the process apart read the very file that was hashed, and write its tensors."""
    opened.seek(0)
    target = out.absolute()
    job = {
        "descriptor": opened.fileno(),
        "size": os.fstat(opened.fileno()).st_size,
        "out": str(target),
        "kind": kind,
        "notes": {"culturekit.source": file.name, "culturekit.source_sha256": sha256},
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-m", "culturekit.index.weights.weight_unpickling"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[opened.fileno()],
        env=surroundings(),
    )
    try:
        said, complaint = process.communicate(json.dumps(job).encode(), timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise UpstreamUnavailable(
            "the weights could not be read in time", where=str(file), expected=f"at most {SECONDS} seconds"
        ) from error
    finally:
        process.kill()
        process.wait()
        target.with_name(f"{STRAY}{process.pid}-{target.name}").unlink(missing_ok=True)
    return answer_of(process.returncode, said, complaint.decode(errors="replace"), file=file, kind=kind)


def surroundings() -> dict[str, str]:
    """Give the process its modules and one thread, and none of the keys that stand in the environment."""
    kept = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ
    }
    modules = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return {**kept, "PYTHONPATH": modules, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def answer_of(code: int, said: bytes, complaint: str, *, file: Path, kind: Kind | None) -> Mapping[str, Any]:
    """Read what the process answered, or say why it did not."""
    try:
        answer: dict[str, Any] = json.loads(said) if code == 0 else {}
    except ValueError:
        answer = {}
    if "kind" in answer:
        return answer
    if "refused" in answer:
        raise refusal(answer["refused"], answer["found"], file=file, kind=kind)
    if "No module named 'torch'" in complaint:
        raise MissingDependency(
            "the conversion of weights needs the package torch, which is not installed",
            hint=f"Install it with: {install_line('embed')}",
        )
    if "No space left" in complaint:
        raise UpstreamUnavailable("the weights could not be written: the disk is full", where=str(file))
    if "MemoryError" in complaint or "allocate memory" in complaint or code < 0:
        problem, hint = REFUSALS["memory"]
        raise IntegrityError(problem, where=str(file), hint=hint)
    last = complaint.strip().splitlines()[-1:] or [f"exit code {code}"]
    raise CultureKitError("the process that reads weights failed", where=str(file), found=last[0])


def refusal(reason: str, found: str, *, file: Path, kind: Kind | None) -> CultureKitError:
    """Make the error for a file that was refused."""
    if reason in REFUSALS:
        problem, hint = REFUSALS[reason]
        return IntegrityError(problem, where=str(file), found=found, hint=hint)
    expected = kind if reason == "other kind" else " or ".join(KINDS)
    return UsageError(
        "the weights are of another kind" if reason == "other kind" else "the weights are of no known kind",
        where=str(file),
        expected=str(expected),
        found=found,
    )
