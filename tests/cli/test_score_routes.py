"""`culturekit score routes` from tables to tables."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.schemas import DISAGREEMENTS, JUDGMENTS, MATCHES, SCORES
from culturekit.core.tables import read_table, write_table
from tests.scores.test_routes import NEAREST, TAGS, judged


def ran(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return getattr(result.exception, "exit_code", result.exit_code), result.output


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
    code, said = ran(*given, *judgments, "--b", tables / "b/matches.parquet", "--out", tables / "one", "--json")
    assert code == 0, said
    assert json.loads(said.splitlines()[-1])["counts"]["disagreements"] > 0
    parts = [word for model in "abcd" for word in ("--b", tables / f"b-{model}/matches.parquet")]
    assert ran(*given, *judgments, *parts, "--out", tables / "several")[0] == 0
    one, several = (read_table(tables / name / "scores.parquet", SCORES) for name in ("one", "several"))
    assert one.equals(several)
    assert set(one["metric"]) == {"vs", "route_agreement", "route_kappa", "ranking_stability"}
    read_table(tables / "one/disagreements.parquet", DISAGREEMENTS)
