"""`culturekit verify`: make a finished run again."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing import progress_for, show
from culturekit.core.atomic import check_writable, write_atomically
from culturekit.core.errors import UsageError, counted

if TYPE_CHECKING:
    from culturekit.verify.verify_run import Verification


SHOWN = 40  # Findings of a kind that are printed; `--json` and `--out` give all
WRITTEN = ("findings.jsonl", "scores.jsonl", "verification.json")  # What `--out` has in the end

TITLES = {"broken": "BROKEN", "finding": "finding", "note": "note"}


def verify(
    run_folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run, or one finished stage folder such as scores.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the findings and the verdict on each score, as JSON lines.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Make costly stages again too: pictures, vectors of models, a large dump.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Make these again alone: a stage, the first part of its name, or a table such as scores. Repeatable.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes to use; the result never depends on it. [this one]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a finished run again and compare every hash.

    Its stages are made from its recipe, one by one; nothing is bought or sent.
    """
    if out is not None:
        check_place(out, run_folder)
    from culturekit.core.engines import engine_for
    from culturekit.verify.verify_run import verify_run

    pool = nullcontext(None) if workers is None else engine_for("local", workers=workers, folder=run_folder)
    with progress_for(as_json=as_json) as progress, pool as engine:
        progress.stage("verify")
        answer = verify_run(run_folder, everything=everything, only=only or (), engine=engine, progress=progress)
    if out is not None:
        write_verification(answer, out)
    show(as_data(answer), lines_of(answer), as_json=as_json)
    if answer.exit_code:
        raise typer.Exit(answer.exit_code)


def as_data(answer: "Verification") -> dict[str, Any]:
    """Give all of it as data, without the place of the run."""
    return {
        "run": answer.root.name, "fingerprint": answer.fingerprint, "exit_code": answer.exit_code,
        "stages": answer.stages, "checked": answer.checked,
        "verdicts": dict(sorted(Counter(verdict.verdict for verdict in answer.verdicts).items())),
        "findings": [asdict(finding) for finding in answer.findings],
        "scores": [asdict(verdict) for verdict in answer.verdicts],
    }  # fmt: skip


def lines_of(answer: "Verification") -> Iterator[str]:
    """Tell what was looked at, what is wrong, and what became of the scores."""
    for severity, title in TITLES.items():  # the first of a kind only where there are many
        alike = [one for one in answer.findings if one.severity == severity]
        yield from (f"{title:<8} {finding.check}: {finding}" for finding in alike[:SHOWN])
        if len(alike) > SHOWN:
            yield f"{title:<8} ... and {len(alike) - SHOWN:,} more"
    looked_at = ", ".join(counted(count, what) for what, count in answer.checked.items())
    yield f"looked at    {looked_at}"
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for one in answer.verdicts:
        groups[one.folder, one.verdict, one.how].append(one.metric)
    for (folder, verdict, how), metrics in sorted(groups.items()):
        yield f"{verdict:<14}  {len(metrics):>6,}  {folder}: {', '.join(sorted(set(metrics)))}: {how}"
    yield f"fingerprint  {answer.fingerprint}"
    yield sentence(answer)


def sentence(answer: "Verification") -> str:
    """Say how it ended."""
    counts = Counter(finding.severity for finding in answer.findings)
    scores = Counter(verdict.verdict for verdict in answer.verdicts)
    kept = ", ".join(f"{scores[name]:,} {name}" for name in ("verified", "not verifiable") if scores[name])
    of = f"{counted(len(answer.verdicts), 'scores')}{': ' if kept else ''}{kept}"
    if counts["broken"]:
        wrong = f", {scores['wrong']:,} wrong" if scores["wrong"] else ""
        return f"NOT VERIFIED: {counts['broken']:,} things are not what they are said to be; {of}{wrong}"
    if counts["finding"]:
        return f"verified with {counted(counts['finding'], 'findings to look at')}; {of}"
    return f"verified; {of}"


def check_place(out: Path, root: Path) -> None:
    """Refuse, before the work, a folder that cannot be written, holds something else, or lies in the run."""
    if out.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            "the output lies in the run itself", where=str(out), hint="Choose an --out outside of what is verified."
        )
    if out.exists() and (not out.is_dir() or {path.name for path in out.iterdir()} - set(WRITTEN)):
        raise UsageError(
            "the output holds something else", where=str(out), expected="a new or empty folder, or an earlier result"
        )
    check_writable(out / WRITTEN[0])


def write_verification(answer: "Verification", out: Path) -> None:
    """Write `verification.json`, and findings and scores as JSON lines."""
    out.mkdir(parents=True, exist_ok=True)
    data = as_data(answer)
    for name in ("findings", "scores"):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in data.pop(name))
        write_atomically(out / f"{name}.jsonl", lines.encode())
    write_atomically(out / "verification.json", (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode())
