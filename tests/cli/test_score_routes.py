"""`culturekit score routes` from tables to tables."""

import json
from pathlib import Path

import pytest

from culturekit.core.schemas import DISAGREEMENTS, JUDGMENTS, MATCHES, SCORES
from culturekit.core.tables import read_table, write_table
from tests.command_line import culturekit
from tests.scores.test_routes import NEAREST, TAGS, judged


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    for name, table, rows in (("a", MATCHES, NEAREST), ("b", MATCHES, TAGS), ("said", JUDGMENTS, judged(TAGS))):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name, table, rows.sort(table.key))
    return tmp_path


def test_one_table_or_several_give_the_same_scores(tables: Path) -> None:
    for model in "abcd":
        folder = tables / f"b-{model}"
        folder.mkdir()
        write_table(folder, MATCHES, TAGS.filter(model=model).sort(MATCHES.key))
    given = ("score", "routes", "--a", tables / "a/matches.parquet", "--kernel", "country")
    judgments = ("--judgments", tables / "said/judgments.parquet")
    done = culturekit(
        *given, *judgments, "--b", tables / "b/matches.parquet", "--out", tables / "one", "--json", ends=0
    )
    assert json.loads(done.stdout)["counts"]["disagreements"] > 0
    parts = [word for model in "abcd" for word in ("--b", tables / f"b-{model}/matches.parquet")]
    culturekit(*given, *judgments, *parts, "--out", tables / "several", ends=0)
    one, several = (read_table(tables / name / "scores.parquet", SCORES) for name in ("one", "several"))
    assert one.equals(several)
    assert set(one["metric"]) == {"vs", "route_agreement", "route_kappa", "ranking_stability"}
    read_table(tables / "one/disagreements.parquet", DISAGREEMENTS)
