"""Sections of the page about activities: looked up, never guessed; what they advise can be typed."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core import roles
from culturekit.core.digests import canonical_json
from culturekit.core.errors import IntegrityError
from culturekit.core.roles import Role
from culturekit.core.schemas import SCORES
from culturekit.core.stage import Stage
from culturekit.core.tables import write_table
from culturekit.core.work import Outcome, Work
from culturekit.recipes.cultivate import roles as scene_roles
from culturekit.recipes.cultivate.page import ablations, followed, gaps, headline
from culturekit.report.provenance import every_caveat
from culturekit.report.run_folders import RunFolders
from culturekit.report.sections import Cell, Grid, Section, explained, looked_up, score_grid, side_by_side, with_params
from tests.recipes.steps.marked_scenes import made, scores_row

Rows = Sequence[Mapping[str, Any]]


def run_with(root: Path, tables: Mapping[Role, Rows], models: Sequence[str] = ("m",), **options: Any) -> RunFolders:
    """Store tables of scores as stages of a run."""

    def write(rows: Rows, work: Work) -> Outcome:
        write_table(work.out, SCORES, pl.DataFrame(rows, schema=SCORES.schema))
        return Outcome({"scores": len(rows)})

    for role, rows in tables.items():
        made(Stage(role.folder(), "kept", 1, partial(write, rows), {}, options), root / role.folder())
    return RunFolders(root, tuple(models), tuple(role.folder() for role in tables))


def score(metric: str, value: float, group: str | None = None, model: str = "m", /, **about: Any) -> dict[str, Any]:
    return scores_row(metric, value=value, group=group, model=model, params=canonical_json(about).decode())


def texts(grid: Any) -> list[list[str]]:
    return [[cell.text for cell in row] for row in grid.rows]


@pytest.mark.parametrize("stated", [row[1].text for row in ablations().grids[0].rows])
def test_an_ablation_can_be_set_as_it_is_written(stated: str) -> None:
    words = shlex.split(stated.replace("SPEC", "simulated:first"))
    assert words[::2] == ["--set"] * (len(words) // 2)
    load_any_recipe(find_recipe("cultivate"), words[1::2])


def test_a_value_without_interval_and_a_dash_say_so(tmp_path: Path) -> None:
    bare = scores_row("align", value=0.5, model="bare") | {"ci_low": None, "ci_high": None}
    held = score("align", 0.4) | {"ci_low": 0.3, "ci_high": 0.5}
    table = pl.DataFrame([bare, held], schema=SCORES.schema)
    rows: Any = [(model, {"model": model}, table) for model in ("m", "bare", "absent")]
    both = explained(score_grid("Scores", "model", [("ALIGN", {"metric": "align"})], rows))
    assert [row[1].sub for row in both.rows] == ["0.30 to 0.50", "no interval", ""]
    assert both.caption == "Scores; a dash: nothing to score"
    alone = explained(score_grid("Scores", "model", [("ALIGN", {"metric": "align"})], rows[1:2]))
    assert (alone.caption, alone.rows[0][1].sub) == ("Scores, without intervals", "")


def noting(caveat: str, work: Work) -> Outcome:
    return Outcome({}, notes={"caveat": caveat})


def test_the_page_says_all_that_a_stage_says_must_be_known(tmp_path: Path) -> None:
    said = {"a": "It is simulated.", "b": "It is simulated. One rater.", "c": "", "d": "One rater."}
    for name, caveat in said.items():
        made(Stage(name, "kept", 1, partial(noting, caveat), {}), tmp_path / name)
    run = RunFolders(tmp_path, (), ("a", "b", "c", "d"))
    assert every_caveat(run) == ("It is simulated.", "One rater.")


def test_the_caption_says_how_sure_intervals_are(tmp_path: Path) -> None:
    run = run_with(tmp_path, {scene_roles.AHEAD: [score("align", 0.5)]}, confidence=0.8)
    shown = headline(run, run.needed(scene_roles.AHEAD, SCORES), None, None)
    assert shown.grids[0].caption.endswith("with 80 % intervals")
    assert texts(shown.grids[0])[0] == ["m", "ALIGN", "0.500"]


@pytest.mark.parametrize("models", [("m",), ("m", "other")])
def test_correlations_stand_under_the_groups_that_there_are(tmp_path: Path, models: Sequence[str]) -> None:
    """Of one model there are none over all models."""
    about = {"metric": "align", "with": {"criterion": "faith"}, "method": "spearman"}
    own = [score("human_correlation", value, group, "m" if len(models) == 1 else "all", **about)
           for group, value in (("Asia", 0.2), ("Europe", 0.4), (None, 0.3))]  # fmt: skip
    others = [score("human_correlation", 0.9, None, "other", **about)] if len(models) > 1 else []
    found = followed(run_with(tmp_path, {roles.META: [*own, *others]}, models))
    assert found is not None
    assert found.grids[0].columns == ("metric", "Europe", "Asia", "overall", "Kendall, overall")
    assert texts(found.grids[0])[0] == ["ALIGN", "0.400", "0.200", "0.300", "–"]
    assert found.tables[0].caption.endswith("; a dash: nothing to score")


def test_every_pair_of_groups_has_its_gaps(tmp_path: Path) -> None:
    rows = [score("group_gap", value, pair, metric="align", labels="judged")
            for pair, value in (("Asia - Europe", 0.25), ("Asia - Oceania", 0.5))]  # fmt: skip
    found = gaps(run_with(tmp_path, {scene_roles.CORRECTED_GAPS: rows}))
    assert found is not None
    assert [(grid.caption, texts(grid)[0]) for grid in found.grids] == [
        ("Gaps, Asia - Europe", ["m", "ALIGN", "0.250"]), ("Gaps, Asia - Oceania", ["m", "ALIGN", "0.500"]),
    ]  # fmt: skip


def test_two_scores_are_never_shown_as_none() -> None:
    rows = [score("align", 0.5, labels="corrected", pool=pool) for pool in ("in-region", "out-of-region")]
    table = with_params(pl.DataFrame(rows, schema=SCORES.schema), labels="labels")
    with pytest.raises(IntegrityError, match=r"2 scores stand where the page shows one.*out-of-region"):
        looked_up(table, model="m", labels="corrected")


def test_tables_with_the_same_rows_stand_side_by_side_evenly_as_far_as_they_fit() -> None:
    def shown(caption: str, columns: int, row: str = "m") -> Grid:
        heads = ("model", *map(str, range(columns)))
        return Grid(caption, heads, ((Cell(row), *(Cell(f"{caption}{number}", "low") for number in range(columns))),))

    three = [shown(name, 3) for name in "abcd"]
    first, second = side_by_side(three)
    assert (first.parts, second.parts) == ((("a", 3), ("b", 3)), (("c", 3), ("d", 3)))
    assert first.columns == ("model", "0", "1", "2", "0", "1", "2")
    assert texts(first) == [["m", "a0", "a1", "a2", "b0", "b1", "b2"]]
    apart = [shown("a", 5), shown("b", 5), shown("c", 2), shown("d", 2, row="another")]
    assert list(side_by_side(apart)) == apart
    dashes = replace(three[0], rows=((Cell("m"), Cell("–"), Cell("–"), Cell("–")),))
    section = Section("anchor", "Title", "Lead.", (dashes, three[1]))
    assert [grid.caption for grid in section.tables] == ["a dash: nothing to score"]
