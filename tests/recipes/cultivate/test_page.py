"""The page of `cultivate`: scores are looked up, an interval decides who is first, what it advises can be typed."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core import roles
from culturekit.core.roles import Role
from culturekit.core.schemas import SCORES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import write_table
from culturekit.recipes.cultivate import roles as folders
from culturekit.recipes.cultivate.page import ablations, followed, gaps, headline, verdict
from culturekit.report.run_folders import RunFolders
from tests.recipes.built import built, score

Rows = Sequence[Mapping[str, Any]]


def run_with(root: Path, tables: Mapping[Role, Rows], models: Sequence[str] = ("m",), **options: Any) -> RunFolders:
    """Store tables of scores as stages of a run."""

    def write(rows: Rows, work: Work) -> Outcome:
        write_table(work.out, SCORES, pl.DataFrame(rows, schema=SCORES.schema))
        return Outcome({"scores": len(rows)})

    for role, rows in tables.items():
        built(Stage(role.folder(), "kept", 1, partial(write, rows), {}, options), root / role.folder())
    return RunFolders(root, tuple(models), tuple(role.folder() for role in tables))


def texts(grid: Any) -> list[list[str]]:
    return [[cell.text for cell in row] for row in grid.rows]


@pytest.mark.parametrize("stated", [row[1].text for row in ablations().grids[0].rows])
def test_an_ablation_can_be_set_as_it_is_written(stated: str) -> None:
    words = shlex.split(stated.replace("SPEC", "simulated:first"))
    assert words[::2] == ["--set"] * (len(words) // 2)
    load_any_recipe(find_recipe("cultivate"), words[1::2])


def test_the_caption_says_how_sure_intervals_are(tmp_path: Path) -> None:
    run = run_with(tmp_path, {folders.AHEAD: [score("align", 0.5)]}, confidence=0.8)
    shown = headline(run, run.needed(folders.AHEAD, SCORES), None, None)
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
    found = gaps(run_with(tmp_path, {folders.CORRECTED_GAPS: rows}))
    assert found is not None
    assert [(grid.caption, texts(grid)[0]) for grid in found.grids] == [
        ("Gaps, Asia - Europe", ["m", "ALIGN", "0.250"]), ("Gaps, Asia - Oceania", ["m", "ALIGN", "0.500"]),
    ]  # fmt: skip


MODELS = ("broad", "showy")


def scores(labels: str, **values: tuple[float, float, float]) -> pl.DataFrame:
    """Make a table with ALIGN of models over all countries: value and limits."""
    rows = [
        {"metric": "align", "labels": labels, "model": model, "country": None, "group": None}
        | {"value": value, "ci_low": low, "ci_high": high, "n": 9}
        for model, (value, low, high) in values.items()
    ]
    return pl.DataFrame(rows, schema_overrides={"country": pl.String, "group": pl.String})


JUDGED = scores("judged", broad=(0.5, 0.49, 0.51), showy=(0.6, 0.59, 0.61))


def test_people_turn_the_order_round() -> None:
    corrected = scores("corrected", broad=(0.6, 0.55, 0.65), showy=(0.4, 0.35, 0.45))
    truth = scores("truth", broad=(0.61, 0.6, 0.62), showy=(0.41, 0.4, 0.42), real=(0.9, 0.8, 1.0))
    assert list(verdict(JUDGED, corrected, truth, MODELS)) == [
        "By the corrected scores, broad comes first in ALIGN (0.600 [0.550, 0.650]), surely ahead of the other.",
        "The truth puts broad first too.",
        "By the judge alone, showy comes first instead (0.600 [0.590, 0.610]), surely ahead of the other.",
    ]


def test_models_whose_intervals_overlap_are_not_told_apart() -> None:
    corrected = scores("corrected", broad=(0.6, 0.5, 0.7), showy=(0.55, 0.45, 0.65))
    assert ", but not surely ahead of the other." in next(iter(verdict(JUDGED, corrected, None, MODELS)))


def test_a_model_that_people_did_not_put_right_is_not_ranked_last() -> None:
    first, _ = verdict(JUDGED, scores("corrected", broad=(0.6, 0.5, 0.7)), None, MODELS)
    assert first == (
        "By the corrected scores, broad comes first in ALIGN (0.600 [0.500, 0.700], the only one with such a score)."
    )
    alone, nobody = verdict(JUDGED, None, None, MODELS)
    assert alone.startswith("By the judge alone, showy comes first")
    assert nobody == "Nobody has put the judge right: what it says of the models stands as it is."
