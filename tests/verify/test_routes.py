"""Two routes: what the metrics score, the verification works out again, and finds what was tampered with."""

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from culturekit.families.handles.inputs import Files
from culturekit.families.routes import RouteOptions, RouteReads, routes
from culturekit.records.schemas import JUDGMENTS, MATCHES, QUALITY
from culturekit.records.tables import Table
from culturekit.storage.tables import write_table
from culturekit.verify.verify_run import Verification, verify_run
from tests.conftest import stage_here
from tests.families.test_routes import NEAREST, TAGS, judged, without_label
from tests.verify.forging import change_table, reseal


def kept(folder: Path, name: str, table: Table, rows: pl.DataFrame) -> Path:
    (folder / name).mkdir(parents=True)
    return write_table(folder / name, table, rows.sort(table.key))


def made(folder: Path, options: RouteOptions, *, judgments: bool = True) -> Path:
    """Tags of whom some are refused, some say that nothing is shown, some are unsure, and some were never asked for."""
    silent, none = [f"d-art-{repeat}-3" for repeat in (0, 1)], [f"b-art-{repeat}-6" for repeat in range(4)]
    tags = without_label(TAGS, *silent, *none).filter(pl.col("image_id") != "c-cuisine-1-1")
    tags = tags.with_columns(abstained=pl.col("abstained") | (pl.col("slot") == 7))
    said_of: list[tuple[str, str | None, str]] = [(image, None, "refused") for image in silent]
    said_of += [(image, "no", "ok") for image in none]
    replies = {image.replace("-", "_"): (choice, outcome) for image, choice, outcome in said_of}
    said = judged(tags, **replies)
    value = pl.int_range(pl.len()).cast(pl.Float64) / NEAREST.height
    quality = NEAREST.select("image_id", scorer=pl.lit("one"), value=value).tail(-5)
    given = RouteReads(
        Files([kept(folder, "matches", MATCHES, NEAREST)]),
        Files([kept(folder, "tags", MATCHES, tags)]),
        Files([kept(folder, "judgments", JUDGMENTS, said)] if judgments else []),
        Files([kept(folder, "quality", QUALITY, quality)]),
    )
    stage = routes(given, options)
    stage_here(stage, folder / "routes")
    return folder / "routes"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores to tamper with copies of, and what they were made from."""
    return made(tmp_path_factory.mktemp("routes") / "run", RouteOptions()).parent


def verdicts(answer: Verification) -> set[str]:
    return {verdict.verdict for verdict in answer.verdicts}


@pytest.mark.parametrize(
    ("options", "judgments"),
    [
        (RouteOptions(), True),
        (RouteOptions(partial="paper", missing="equal", q=2.0, confidence=0.8), True),
        (RouteOptions(), False),
    ],
)
def test_every_row_is_worked_out_again(tmp_path: Path, options: RouteOptions, judgments: bool) -> None:
    answer = verify_run(made(tmp_path, options, judgments=judgments))
    assert [str(finding) for finding in answer.findings] == []
    assert verdicts(answer) == {"verified"}
    metrics = {verdict.metric for verdict in answer.verdicts}
    assert metrics == {"vs", "qvs", "route_agreement", "route_kappa", "ranking_stability"}


def in_row(metric: str, column: str, change: pl.Expr) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def tampered(table: pl.DataFrame) -> pl.DataFrame:
        first = (pl.col("metric") == metric) & pl.col("value").is_finite()
        chosen = first & first.cum_sum().eq(1)
        return table.with_columns(pl.when(chosen).then(change).otherwise(pl.col(column)).alias(column))

    return tampered


TAMPERINGS: dict[str, tuple[str, Callable[[pl.DataFrame], pl.DataFrame]]] = {
    "a share": ("scores", in_row("route_agreement", "value", pl.col("value") * 0.99)),
    "a limit of kappa": ("scores", in_row("route_kappa", "ci_low", pl.col("value") - 0.5)),
    "a count": ("scores", in_row("route_agreement", "params", pl.col("params").str.replace('b":0', 'b":1'))),
    "a tau": ("scores", in_row("ranking_stability", "value", pl.col("value") * 0.5)),
    "a score of a route": ("scores", in_row("vs", "value", pl.col("value") * 1.01)),
    "a row gone": ("scores", lambda table: table.filter(pl.int_range(pl.len()) != 7)),
    "a value": ("values", lambda table: table.with_columns(value=pl.col("value") * 0.9)),
    "a disagreement": ("disagreements", lambda table: table.with_columns(images=pl.col("images") + 1)),
    "a disagreement gone": ("disagreements", lambda table: table.tail(-1)),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_was_tampered_with_is_found(finished: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(finished, tmp_path / "run") / "routes"
    file, change = TAMPERINGS[name]
    change_table(folder / f"{file}.parquet", change)
    reseal(folder)
    assert verify_run(folder).exit_code == 4
