"""Finding one score by a reference that people can type."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from culturekit.errors import UsageError
from culturekit.records.schemas import SCORES
from culturekit.storage.tables import read_table
from culturekit.trail.upstream import manifest_of

__all__ = ["described", "find_score", "labels_of", "scores_folder"]


def find_score(reference: Path | str) -> tuple[Path, dict[str, Any]]:
    """Find the score that a reference names, and the folder it lies in.

    A reference is a `scores.parquet`, or a folder with one, and either `#ROW`, the row counted from 0,
    or `?column=value&...`, which must fit exactly one row. Conditions also look into the parameters;
    without one on `labels` the truth is left aside, and mapped scores where a corrected one fits;
    without one on `q` all orders but the main one, where that fits.

    Example:
        >>> folder, score = ck.find_score("runs/cube#0")
        >>> folder.name, score["n"] > 0
        ('scores', True)
    """
    reference = str(reference)
    location, hash_mark, number = reference.partition("#")
    location, _, query = location.partition("?")
    folder = scores_folder(Path(location))
    scores = read_table(folder / "scores.parquet", SCORES).with_row_index("row")
    if hash_mark:
        if not number.isdecimal() or int(number) >= scores.height:
            raise UsageError("no such row", where=reference, expected=f"#0 to #{scores.height - 1}")
        return folder, scores.row(int(number), named=True)
    fitting = [row for row in scores.iter_rows(named=True) if fits(row, query)]
    if "labels=" not in query:
        fitting = [row for row in fitting if labels_of(row) != "truth"]
        fitting = [row for row in fitting if labels_of(row) == "corrected"] or fitting
    if "q=" not in query and len(fitting) > 1:
        main = manifest_of(folder).options.get("q", 1.0)
        fitting = [row for row in fitting if msgspec.json.decode(row["params"]).get("q") in (main, None)] or fitting
    if not fitting:
        raise nothing_fits(reference, query, list(scores.iter_rows(named=True)))
    if len(fitting) != 1:
        raise UsageError(
            "the reference must fit one score",
            where=reference,
            expected="more conditions, such as ?metric=vs&model=NAME&concept=NAME&kernel=artifact&labels=mapped",
            found=f"{len(fitting)} scores" + "".join(f"\n  {folder}#{described(row)}" for row in fitting[:10]),
        )
    return folder, fitting[0]


def nothing_fits(reference: str, query: str, scores: Sequence[Mapping[str, Any]]) -> UsageError:
    """Name the conditions that no score meets, and what they could say instead."""
    every = [values_of(row) for row in scores]
    alone = [(key, value) for key, value in conditions(query) if all(str(row.get(key)) != value for row in every)]
    choices = [f"{key} {accepted(key, every)}" for key, _ in alone]
    return UsageError(
        "no score fits the reference",
        where=reference,
        expected="; ".join(choices) or "conditions that hold for one score together",
        found=", ".join(f"{key}={value}" for key, value in alone) or "0 scores",
    )


def accepted(key: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """List the values of a column, or say that there is no such column."""
    values = sorted({str(row[key]) for row in rows if key in row})
    return " or ".join(values) if values else "left out: scores have no such column"


def scores_folder(path: Path) -> Path:
    """Find the folder of a scores table from the table, its folder, or the run's folder."""
    for folder in (path.parent if path.suffix == ".parquet" else path, path / "scores"):
        if (folder / "scores.parquet").is_file():
            return folder
    raise UsageError("there are no scores", where=str(path), expected="scores.parquet, or a run folder with scores")


def conditions(query: str) -> list[tuple[str, str]]:
    """Take the conditions of a reference apart."""
    return [(key, value) for key, _, value in (part.partition("=") for part in query.split("&"))] if query else []


def values_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Give the columns of a score and, beside them, its parameters."""
    return {**msgspec.json.decode(row["params"]), **row}


def fits(row: Mapping[str, Any], query: str) -> bool:
    """Tell whether a score meets all conditions of a reference."""
    values = values_of(row)
    return all(str(values.get(key)) == value for key, value in conditions(query))


def labels_of(score: Mapping[str, Any]) -> object:
    """Tell whether a score is of mapped labels or of the truth."""
    return msgspec.json.decode(score["params"]).get("labels")


def described(row: Mapping[str, Any]) -> str:
    """Describe a score in a line of a list."""
    place = " ".join(str(row[name]) for name in ("metric", "model", "concept", "country") if row[name] is not None)
    return f"{row['row']}  {place} {row['params']} = {row['value']:.4f}"
