"""Sections of pages: looked up, never guessed; what a reader must know is said."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import IntegrityError
from culturekit.core.schemas import SCORES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.report.headline import waiting_forms
from culturekit.report.provenance import every_caveat
from culturekit.report.run_folders import RunFolders, with_params
from culturekit.report.sections import Cell, Grid, Section, explained, looked_up, score_grid, side_by_side
from tests.recipes.built import built, score, scores_row


def texts(grid: Any) -> list[list[str]]:
    return [[cell.text for cell in row] for row in grid.rows]


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
    caveats = {"a": "It is simulated.", "b": "It is simulated. One rater.", "c": "", "d": "One rater."}
    for name, caveat in caveats.items():
        built(Stage(name, "kept", 1, partial(noting, caveat), {}), tmp_path / name)
    run = RunFolders(tmp_path, (), ("a", "b", "c", "d"))
    assert every_caveat(run) == ("It is simulated.", "One rater.")


def handed_out(work: Work) -> Outcome:
    return Outcome({"annotation_key": 510, "items": 450, "sheets": 12})


def test_forms_that_nobody_answered_are_named_with_their_hours(tmp_path: Path) -> None:
    form = built(Stage("to-rate", "annotate-export", 1, handed_out, {}), tmp_path / "to-rate")
    assert list(waiting_forms(RunFolders(tmp_path, (), ("to-rate",)))) == [
        "Nobody has answered the form to-rate yet: 510 answers on 12 sheets, about 2.5 hours. "
        f"culturekit annotate serve {tmp_path.name}/to-rate asks for them."
    ]
    built(Stage("rated", "annotate-import", 1, partial(noting, ""), {"project": form}), tmp_path / "rated")
    assert list(waiting_forms(RunFolders(tmp_path, (), ("to-rate", "rated")))) == []


def test_columns_of_words_begin_at_the_left_and_numbers_end_at_the_right() -> None:
    rows = tuple(tuple(map(Cell, row)) for row in (("5", "–", "0.5", "< 0.001"), ("4", "Mostly right", "0.4", "–")))
    assert Grid("What it means", ("rating", "presence", "share", "p"), rows).words == {1}


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
