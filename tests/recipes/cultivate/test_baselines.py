"""Scores of others beside ours, and ablations of ours: each held against its formula."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from culturekit.core.inputs import Files, Numbered
from culturekit.core.schemas import IMAGES, JUDGMENTS, PROMPTS, PROPOSED_DESCRIPTORS, QUALITY, STEREOTYPES, VALUES
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.recipes.cultivate.baselines import (
    ablations_stage,
    baseline_values_stage,
    candidates_stage,
    compared_stage,
    level_stage,
)
from culturekit.recipes.cultivate.page import ends_of_activities
from culturekit.recipes.cultivate.scores import score_ahead
from tests.recipes.cultivate.ahead_world import World, world
from tests.recipes.cultivate.test_scores import OPTIONS

MODELS = ("ann", "bob")


def tables(folder: Path, drawn: World, name: str) -> Path:
    """Write the images of a model, or the real ones, in a folder of their own."""
    own = drawn.tables().images.filter(model=name)
    return write_table(made(folder / name), IMAGES, own)


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def items(table: pl.DataFrame, metric: str, variant: str) -> dict[str, float]:
    about = pl.col("params").str.json_path_match("$.variant")
    rows = table.filter(about == variant, metric=metric)
    return dict(rows.select("item", "value").iter_rows())


def test_thresholds_and_proposers_are_ablated_without_asking_anybody(work: Work, tmp_path: Path) -> None:
    drawn = world()
    stored = drawn.stored(tmp_path / "stored")
    proposed = pl.DataFrame([
        {"prompt_id": row["prompt_id"], "dimension": row["dimension"], "proposer": "one", "position": place,
         "token": row["token"], "style": "neutral", "necessity": "optional",
         "outcome": "proposed" if place % 2 else "repeated"}
        for place, row in enumerate(drawn.descriptors)
    ], schema=PROPOSED_DESCRIPTORS.schema)  # fmt: skip
    proposals = write_table(made(tmp_path / "proposals"), PROPOSED_DESCRIPTORS, proposed)
    stage = ablations_stage(
        Numbered([tables(tmp_path, drawn, name) for name in MODELS]), tables(tmp_path, drawn, "real"),
        stored["prompts"], stored["descriptors"], Files({"one": proposals}), stored["extracted"], stored["phrases"],
        tau=0.5, models=MODELS,
    )  # fmt: skip
    outcome = stage.run(replace(work, in_run=True))
    found = read_table(work.out / "values.parquet", VALUES)
    for quantile in (0.25, 0.5, 0.75):
        taus = cast("dict[str, float]", outcome.notes["taus"])
        tau = taus[f"tau at quantile {quantile:g}"]
        expected = score_ahead(drawn.tables(), options=replace(OPTIONS, tau=tau)).scored.values
        ours = dict(expected.filter(pl.col("model") != "real", metric="align").select("item", "value").iter_rows())
        assert items(found, "align", f"tau at quantile {quantile:g}") == pytest.approx(ours, abs=1e-12)
    alone = replace(drawn, descriptors=[row for place, row in enumerate(drawn.descriptors) if place % 2])
    expected = score_ahead(alone.tables(), options=replace(OPTIONS, tau=0.5)).scored.values
    ours = dict(expected.filter(pl.col("model") != "real", metric="align").select("item", "value").iter_rows())
    assert items(found, "align", "proposer one") == pytest.approx(ours, abs=1e-12)
    assert set(found["model"]) == set(MODELS), "real images are held against nobody"


def test_the_score_of_cure_is_the_mean_of_two_cosines_and_the_composite_leaves_exag_out(
    work: Work, tmp_path: Path
) -> None:
    drawn = world()
    values = score_ahead(drawn.tables(), options=OPTIONS).scored.values
    places = {name: tables(tmp_path, drawn, name) for name in MODELS}
    cosines: dict[str, list[float]] = {}
    paths = []
    for level, shift in (("named", 0.0), ("placed", 0.4)):
        rows = []
        for name in MODELS:
            for number, image in enumerate(read_table(places[name], IMAGES)["image_id"]):
                value = shift + number / 100
                rows.append({"image_id": image, "scorer": "clipscore", "value": value})
                cosines.setdefault(image, []).append(value)
        missing = rows[:-1] if level == "placed" else rows
        frame = pl.DataFrame(missing, schema=QUALITY.schema)
        paths.append(write_table(made(tmp_path / level), QUALITY, frame))
    kept = write_table(made(tmp_path / "ahead"), VALUES, values)
    prompts = write_table(made(tmp_path / "asked"), PROMPTS, drawn.tables().prompts)
    by_references = [{**row, "value": 1 - row["value"]} for row in drawn.stereotypes]
    judged = write_table(made(tmp_path / "exag"), JUDGMENTS, pl.DataFrame(by_references, schema=JUDGMENTS.schema))
    real = tables(tmp_path, drawn, "real")
    baseline_values_stage(places, real, prompts, cure={"clip": paths}, exag={"references": [judged]}).run(work)
    found = read_table(work.out / "values.parquet", VALUES)
    compared_stage(kept, models=MODELS).run(work)
    ours = read_table(work.out / "values.parquet", VALUES)
    last = max(cosines, key=lambda image: list(cosines).index(image))
    whole = {image: sum(two) / 2 for image, two in cosines.items() if image != last}
    assert items(found, "cure", "clip") == pytest.approx(whole)
    both = dict(ours.filter(metric="align_hal").select("item", "value").iter_rows())
    align, hal = (dict(values.filter(metric=name).select("item", "value").iter_rows()) for name in ("align", "hal"))
    assert set(ours["model"]) == set(MODELS)
    assert both == pytest.approx({image: (align[image] + 1 - hal[image]) / 2 for image in both})
    other = score_ahead(replace(drawn, stereotypes=by_references).tables(), options=OPTIONS).scored.values
    expected = dict(other.filter(metric="exag").select("item", "value").iter_rows())
    assert items(found, "exag", "descriptors of the prompt") == pytest.approx(expected)


def test_prompts_say_less_level_by_level(work: Work, tmp_path: Path) -> None:
    about = {"prompt_id": "p", "text": "A photorealistic photo of Nowruz in Iran.", "benchmark": "cultivate",
             "kind": "activity", "country": "IR", "concept": "celebrations", "activity": "Nowruz", "language": "en",
             "template_id": "t"}  # fmt: skip
    prompts = write_table(tmp_path, PROMPTS, pl.DataFrame([about], schema={**PROMPTS.schema, "activity": pl.String}))
    said = {}
    for level in ("named", "placed"):
        level_stage(prompts, level=level).run(work)
        said[level] = read_table(work.out / "prompts.parquet", PROMPTS)["text"].to_list()
    assert said == {
        "named": ["A photorealistic photo of Nowruz."], "placed": ["A photorealistic photo of celebrations in Iran."],
    }  # fmt: skip


def test_what_most_prompts_of_a_country_ask_for_stands_for_stereotypes(work: Work, tmp_path: Path) -> None:
    stored = world().stored(tmp_path / "stored")
    candidates_stage(Numbered([stored["descriptors"]]), stored["prompts"], candidates="references").run(work)
    found = read_table(work.out / "stereotypes.parquet", STEREOTYPES)
    assert found.group_by("country").len()["len"].max() == 15
    assert set(found["country"]) == {"FR", "IN", "NG"}


def test_categories_are_counted_among_the_activities_of_each_country() -> None:
    """Figure 3(b) counts activities; means of categories, three of nine, say which is best on average."""
    faith = {"concert": (0.9, 0.8, 0.7, 0.1), "dance": (0.6, 0.5), "game": (0.2, 0.15)}
    each = [(kind, f"{kind}{n}", value) for kind, values in faith.items() for n, value in enumerate(values)]
    prompts = pl.DataFrame([{"prompt_id": name, "concept": kind, "country": "IR"} for kind, name, _ in each])
    values = pl.DataFrame([{"prompt_id": name, "model": model, "metric": "faith", "value": value + shift}
                           for _, name, value in each for model, shift in (("a", 0.0), ("b", 0.01))])  # fmt: skip
    best, worst = ends_of_activities(values, prompts)
    assert dict(best) == {"concert": 3}
    assert dict(worst) == {"game": 2, "concert": 1}
