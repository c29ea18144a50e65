"""Families of scores: what each says of itself, files that it takes, and what gives no score."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core.declared import declared, inputs_of, is_group, options_in, settings_of
from culturekit.core.errors import IntegrityError, NothingScored, UsageError
from culturekit.core.inputs import Files
from culturekit.core.roles import Role
from culturekit.core.run import Run, run_stage
from culturekit.core.schemas import ANNOTATIONS, MATCHES, SCORES, TASK1, TASK2
from culturekit.core.tables import read_table, write_table
from culturekit.metrics import CATALOG
from culturekit.recipes.c3.scores import score_c3
from culturekit.recipes.inclusion.scores import score_task1, score_task2
from culturekit.scores.catalog import FAMILIES
from culturekit.scores.family import Family, Scored, family_stage, scored
from culturekit.scores.inputs import LabelledVectors, asked, tables_of_matches
from culturekit.scores.listing import all_metrics, family_named
from culturekit.scores.named_in_recipe import bound_stage
from culturekit.scores.ratings import RatingOptions, score_ratings
from culturekit.scores.routes import routes
from culturekit.scores.stability import named_tables
from tests.command_line import culturekit
from tests.conftest import HereEngine, stage_here
from tests.scores.picture_tables import match_table

NOBODY: dict[str, Callable[[], Scored]] = {
    "no rows": lambda: scored([], left_out={"images not described": 45}),
    "task1": lambda: score_task1(pl.DataFrame(schema=TASK1.schema)),
    "task2": lambda: score_task2(pl.DataFrame(schema=TASK2.schema)),
    "c3": lambda: score_c3({"target": LabelledVectors(np.ones((1, 4), np.float32), ["a"])}).scored,
    "ratings": lambda: score_ratings(pl.DataFrame(schema=ANNOTATIONS.schema), options=RatingOptions()),
}


def test_nothing_scored_is_a_mistake_that_says_what_was_left_out(tmp_path: Path) -> None:
    stage = family_stage("empty", {}, {}, lambda _: NOBODY["no rows"]())
    with pytest.raises(NothingScored, match=r"nothing could be scored; .*found images not described: 45"):
        stage_here(stage, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("family", list(NOBODY))
def test_a_command_refuses_what_gives_no_score_and_a_run_goes_on_without_it(family: str, tmp_path: Path) -> None:
    stage = family_stage(family, {}, {}, lambda _: NOBODY[family]())
    with pytest.raises(NothingScored):
        run_stage(stage, tmp_path / "alone", engine=HereEngine())
    run = Run(tmp_path)
    run.add(stage, Role("nobody", holds="scores"))
    (step,) = run.steps
    done = run_stage(step.stage, tmp_path / "nobody", engine=HereEngine())
    assert done.manifest.counts == {"scores": 0}
    assert done.manifest.drops
    assert read_table(tmp_path / "nobody/scores.parquet", SCORES).is_empty()


@pytest.mark.parametrize("command", ["qvs", "distribution"])
def test_matches_of_which_nothing_can_be_said_are_refused(command: str, tmp_path: Path) -> None:
    matches = write_table(tmp_path, MATCHES, pl.DataFrame(schema=MATCHES.schema))
    done = culturekit("score", command, "--matches", matches, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing could be scored" in done.stderr or "no image has a nearest match" in done.stderr


def test_options_of_a_group_reach_the_stage() -> None:
    tables = {"images": {"images-a": Path("a")}, "quality": {"quality-a": Path("b")}}
    stated = {"by": [["country"]], "groups": {"FR": "West"}, "target": "these", "denominator": "valid"}
    options = bound_stage("questions", stated, tables, seed=1).options
    assert options["denominator"] == "valid"
    means = options["means"]
    assert isinstance(means, dict)
    assert {name: means[name] for name in ("by", "groups", "target", "benchmark")} == {
        "by": (("country",),), "groups": {"FR": "West"}, "target": "these", "benchmark": "questions",
    }  # fmt: skip


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_option_of_a_family_says_what_it_is(name: str) -> None:
    family: Family = family_named(name)
    assert inspect.getdoc(family.stage)
    reads, settings = inputs_of(family.stage), settings_of(family.stage)
    assert any(each.help for each in reads)
    inside = [each for group in settings if is_group(group) for each in declared(group.kind)]
    assert all(each.help.endswith((".", "]")) for each in (*reads, *settings, *inside) if each.help)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_what_an_option_needs_is_another_option_of_its_command(name: str) -> None:
    options = list(options_in(family_named(name).stage))
    names = {each.option.replace("_", "-") for each in options}
    assert all(
        {one.partition("=")[0] for one in each.typed.needs.split()} & names for each in options if each.typed.needs
    )


def test_our_metrics_are_those_of_the_catalogue() -> None:
    assert dict(all_metrics()) == dict(CATALOG)


def test_a_file_is_not_compared_with_itself(tmp_path: Path) -> None:
    here, again = tmp_path / "scores.parquet", tmp_path / "." / "up" / ".." / "scores.parquet"
    with pytest.raises(UsageError, match="a ranking is compared with itself; expected another file on each side"):
        named_tables([f"clip={here}", f"siglip={again}"])
    with pytest.raises(UsageError, match="a route is compared with itself"):
        routes.stage(Files([here]), Files([tmp_path / "other.parquet", again]))


@pytest.mark.parametrize("content", [b"", b"prompt_id,text\np,x\n"])
def test_prompts_that_are_no_table_of_ours_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "prompts.parquet").write_bytes(content)
    with pytest.raises(IntegrityError, match="not a readable Parquet file; expected the table prompts"):
        asked(tmp_path / "prompts.parquet", tmp_path)


def matches(folder: Path, *countries: str | None) -> Path:
    """Write matches of images, one of each country."""
    row: dict[str, Any] = {"model": "m", "artifact_id": "Q1", "artifact": "x", "continent": "Europe"}
    rows = [row | {"image_id": f"{folder.name}-{n}", "country": place} for n, place in enumerate(countries)]
    folder.mkdir()
    return write_table(folder, MATCHES, match_table(rows))


@pytest.mark.parametrize("tables", [(("FR", "IT", "France"),), (("FR", "IT"), ("South Korea",))])
def test_matches_with_the_name_of_a_country_among_codes_are_refused(
    tmp_path: Path, tables: tuple[tuple[str, ...], ...]
) -> None:
    files = Files([matches(tmp_path / str(number), *places) for number, places in enumerate(tables)])
    for read in (lambda: tables_of_matches(files.places), lambda: files.together(MATCHES)):
        with pytest.raises(UsageError, match=r"codes for others.*(FR, found 'France'|KR, found 'South K)"):
            read()


def test_a_country_on_two_continents_is_refused(tmp_path: Path) -> None:
    one, other = (matches(tmp_path / name, "FR", "IT") for name in ("one", "other"))
    pl.read_parquet(other).with_columns(continent=pl.lit("Asia")).write_parquet(other)
    for read in (lambda: tables_of_matches([one, other]), lambda: Files([one, other]).together(MATCHES)):
        with pytest.raises(
            UsageError,
            match=r"one country has two of continent; expected 'Europe'.*found country 'FR', continent 'Asia'",
        ):
            read()


@pytest.mark.parametrize("places", [("FR", None, "XX"), ("France", "Italy", "UK", "Nowhere"), ("FR", "Nowhere")])
def test_matches_with_codes_throughout_or_names_throughout_are_read(tmp_path: Path, places: tuple[str, ...]) -> None:
    files = Files([matches(tmp_path / "one", *places)])
    assert files.together(MATCHES).equals(tables_of_matches(files.places)[0].select(list(MATCHES.schema)))
