"""People's marks in `cultivate`, and the baselines that its scores are compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, Numbered, manifest_of
from culturekit.core.schemas import (
    ANNOTATIONS,
    AUDIT_SAMPLE,
    DESCRIPTORS,
    IMAGES,
    JUDGMENTS,
    PROMPTS,
    PROPOSED_DESCRIPTORS,
    QUALITY,
    SCENE_ITEMS,
    SCORES,
    STEREOTYPES,
    VALUES,
)
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.recipes.cultivate.baselines import (
    ablations_stage,
    baseline_values_stage,
    candidates_stage,
    compared_stage,
    level_stage,
)
from culturekit.recipes.cultivate.breakdown import gaps_of_scores_stage, grouped_values_stage
from culturekit.recipes.cultivate.marks import marks_stage, scene_items_stage
from culturekit.recipes.cultivate.page import ends_of_activities
from culturekit.recipes.cultivate.scores import PhraseVectors, score_ahead
from tests.recipes.built import built, scores_row, stored
from tests.recipes.cultivate.ahead_world import World, world
from tests.recipes.cultivate.test_scores import OPTIONS

Rows: TypeAlias = list[dict[str, Any]]
REFERENCES = {"objects": ("samovar", "hand drums"), "attire": ("silk sari",)}
EXTRACTED = {"objects": ("a samovar", "gondola"), "attire": ("beret",)}
OFFERED = ("beret", "gondola", "hand drums", "samovar", "silk sari")
PROMPT = {"benchmark": "cultivate", "kind": "activity", "language": "en", "template_id": "t", "concept": "games"}


def answered(ticks: Mapping[str, Sequence[Any]], *, flags: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Let three people fill in the form about two images: what each ticks, by question; `other` is a text."""
    rows = []
    for item, country in (("i-IR", "IR"), ("i-FR", "FR")):
        for person in range(3):
            about = {"item_id": item, "annotator": f"{country}-{person}", "annotator_region": country,
                     "in_region": True, "scheme": "cultivate", "seconds": 9.0,
                     "flags": list(flags) if person == 2 else []}  # fmt: skip
            rows += [{**about, "criterion": name, "value": 2.0, "choice": "2"} for name in ("faith", "exag")]
            if other := ticks.get("other"):
                rows.append({**about, "criterion": "other", "text": other[person]})
            rows += [
                {**about, "criterion": f"{question}/{phrase}", "value": float(phrase in ticks[question][person])}
                for question in ("shown", "relevant")
                for phrase in OFFERED
                if ticks[question][person]  # who ticks nothing has not answered the question
            ]
    return rows


def blank(item: str) -> Callable[[Rows], Rows]:
    """Leave an image without a tick of anybody."""
    return lambda rows: [row for row in rows if row["item_id"] != item or "/" not in row["criterion"]]


def marked(
    root: Path, ticks: Mapping[str, Sequence[Any]], *, flags: Sequence[str] = (), aggregate: str = "dimension",
    references: Mapping[str, Sequence[str]] = REFERENCES, change: Callable[[Rows], Rows] = list,
) -> Path:  # fmt: skip
    """List what is to be marked, have it marked, and score the marks; give the folder of the marks."""
    prompts = stored(root / "prompts", PROMPTS, [
        {"prompt_id": f"p-{iso}", "text": "A photo of wrestling.", "country": iso, **PROMPT} for iso in ("IR", "FR")
    ])  # fmt: skip
    descriptors = stored(root / "descriptors", DESCRIPTORS, [
        {"prompt_id": f"p-{iso}", "dimension": kind, "token": token, "style": "neutral", "necessity": "optional",
         "proposers": ["a"]}
        for iso in ("IR", "FR") for kind, tokens in references.items() for token in tokens
    ])  # fmt: skip
    extracted = stored(root / "extracted", JUDGMENTS, [
        {"image_id": f"i-{iso}", "prompt_id": f"p-{iso}", "judge": "j", "task": "extract", "item": token,
         "dimension": kind, "raw": "", "outcome": "ok"}
        for iso in ("IR", "FR") for kind, tokens in EXTRACTED.items() for token in tokens
    ])  # fmt: skip
    sample = stored(root / "sample", AUDIT_SAMPLE, [
        {"image_id": f"i-{iso}", "model": "m", "prompt_id": f"p-{iso}", "stratum": iso, "chance": 1.0,
         "concept": "games"}
        for iso in ("IR", "FR")
    ])  # fmt: skip
    scores = stored(root / "ahead", SCORES, [scores_row("align", params=f'{{"tau":0.52,"aggregate":"{aggregate}"}}')])
    marking = scene_items_stage(Files({"sample": sample}), prompts, descriptors, Numbered([extracted]))
    items = built(marking, root / "items") / "scene_items.parquet"
    phrases = built(embed_stage(EmbedSource(texts=(descriptors, extracted)), encoder="letters"), root / "phrases")
    annotations = stored(root / "answers", ANNOTATIONS, change(answered(ticks, flags=flags)))
    return built(marks_stage(annotations, items, descriptors, PhraseVectors(phrases), scores), root / "marks")


ALL: dict[str, Sequence[Any]] = {"shown": [("samovar", "gondola")] * 3, "relevant": [("samovar", "hand drums")] * 3}


def joined_by_others(rows: Rows) -> Rows:
    """Add as many people of other countries, who tick everything."""
    others = [{**row, "annotator": f"{row['annotator']}-abroad", "in_region": False} for row in rows]
    return rows + [{**row, "value": 1.0} if "/" in row["criterion"] else row for row in others]


TWO_OF = {"shown": [("samovar", "gondola")] * 2 + [("samovar", "gondola", "silk sari")]}
WITH_PLACES = {"objects": ("samovar", "hand drums"), "background": ("bazaar",)}
IN_BOTH = {"objects": ("samovar", "hand drums"), "attire": ("samovar",)}
WITH_PEOPLE = {"objects": ("samovar", "hand drums"), "attire": ("silk sari",), "people": ("beret",)}
# One of three names, ticks and finds relevant what the others do not
ALONE = {"shown": [("samovar",), (), ()], "relevant": [("samovar",), (), ()], "other": ["objects: kite", "", ""]}
WITHOUT_KIND = "things that people name without a kind"
JUST_HALF = "ticks of just half of the people, which do not count"
ABROAD = "answers of people of other countries"
# What people tick and how they are asked; ALIGN and HAL of an image, of how many people, and what is counted.
# Of objects 1 of 2 references is shown and 1 of 2 things wrong; of attire nothing is shown, which is 0 and 0.
MARKED: dict[str, tuple[dict[str, Any], dict[str, Any], float, float, int, dict[str, int]]] = {
    "most people decide": ({}, {}, 0.25, 0.25, 3, {}),
    "one of three decides nothing": (TWO_OF, {}, 0.25, 0.25, 3, {}),
    "what most name is wrong": (
        {"other": ["objects: talking drum; attire: fez", "Objects:  Talking Drum", "objects: kite"]}, {},
        0.25, (2 / 3 + 0) / 2, 3, {},
    ),
    "a kind has two names": (
        {"other": ["setting: palm tree;", "Background: palm tree; a tall building", "fez"]},
        {"references": WITH_PLACES}, 0.25, (0.5 + 1) / 2, 3, {WITHOUT_KIND: 2 * 2},
    ),
    "who did not read along does not count": (
        {"shown": [("samovar",), ("samovar",), OFFERED]}, {"flags": ["too-fast"]}, 0.25, 0.0, 2, {}
    ),
    "half is not shown": (
        {"shown": [("samovar", "gondola"), ("samovar",), ()]}, {"flags": ["too-fast"]}, 0.25, 0.0, 2, {JUST_HALF: 2}
    ),
    "where somebody was found is no reason": ({}, {"flags": ["recruitment:prolific"]}, 0.25, 0.25, 3, {}),
    "nobody ticks anything": ({}, {"change": blank("i-IR")}, 0.0, 0.0, 3, {}),
    "who ticks nothing was asked too": (ALONE, {}, 0.0, 0.0, 3, {WITHOUT_KIND: 2 * 2}),
    "pooled as the scores are": ({}, {"aggregate": "pooled"}, 1 / 3, 0.5, 3, {}),
    "other countries are apart": ({}, {"change": joined_by_others}, 0.25, 0.25, 3, {ABROAD: 2 * 3 * 12}),
    "a phrase of two dimensions": ({}, {"references": IN_BOTH}, 0.75, 0.25, 3, {}),
    "what is not extracted is no part": ({}, {"references": WITH_PEOPLE}, 0.25, 0.25, 3, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", MARKED)
def test_align_and_hal_are_those_of_what_most_people_tick(case: str, tmp_path: Path) -> None:
    ticks, how, align, hal, people, counted = MARKED[case]
    folder = marked(tmp_path, {**ALL, **ticks}, **how)
    table = read_table(folder / "annotations.parquet", ANNOTATIONS).filter(item_id="i-IR")
    for name, value in (("align_marked", align), ("hal_marked", hal)):
        assert table.filter(criterion=name)["value"].to_list() == pytest.approx([value] * people)
    drops = manifest_of(folder).drops
    assert {reason: drops.get(reason, 0) for reason in (WITHOUT_KIND, JUST_HALF, ABROAD)} == {
        WITHOUT_KIND: 0, JUST_HALF: 0, ABROAD: 0, **counted,
    }  # fmt: skip


def test_each_thing_is_offered_once_with_its_kinds(tmp_path: Path) -> None:
    for references, offered, kinds in (
        (REFERENCES, OFFERED, ["attire", "objects", "objects", "objects", "attire"]),
        (IN_BOTH, ("beret", "gondola", "hand drums", "samovar", "samovar"),
         ["attire", "objects", "objects", "attire", "objects"]),
    ):  # fmt: skip
        root = tmp_path / str(len(references["attire"][0]))
        marks = read_table(marked(root, ALL, references=references) / "annotations.parquet", ANNOTATIONS)
        items = read_table(root / "items/scene_items.parquet", SCENE_ITEMS)
        row = items.filter(item_id="i-IR").to_dicts()[0]
        assert tuple(row["descriptors"]) == offered, "a samovar and samovar are one thing"
        assert row["dimensions"] == kinds
        assert (row["country_name"], row["model"], row["activity"]) == ("Iran", "m", "A photo of wrestling.")
        if references is REFERENCES:
            faith = marks.filter(item_id="i-IR", criterion="faith_marked")["value"].to_list()
            assert faith == pytest.approx([(0.25 + 0.75 + 0.75) / 3] * 3), "2 of 1 to 5 is 0.25"


def test_people_who_tick_at_random_are_refused(tmp_path: Path) -> None:
    ticks = {**ALL, "shown": [OFFERED[:3], OFFERED[3:], OFFERED[2:4]]}
    with pytest.raises(UsageError, match="the raters disagree too often"):
        marked(tmp_path, ticks)


@pytest.mark.parametrize(
    ("ticks", "how", "iran", "france"),
    [
        (ALL, {}, 2 / 3, 2 / 3),
        (ALL, {"change": blank("i-IR")}, 0.0, 2 / 3),
        (ALONE, {}, 1 / 9, 1 / 9),
        (ALL, {"change": joined_by_others}, 2 / 3, 2 / 3),
    ],
)
def test_the_share_of_references_that_matter_is_scored_by_country(
    ticks: dict[str, Any], how: dict[str, Any], iran: float, france: float, tmp_path: Path
) -> None:
    scores = read_table(marked(tmp_path, ticks, **how) / "scores.parquet", SCORES)
    assert set(scores["metric"]) == {"descriptor_accuracy"}
    assert scores.select("country", "value", "n").sort("country").rows() == [
        (None, pytest.approx((iran + france) / 2), 18), ("FR", pytest.approx(france), 9), ("IR", pytest.approx(iran), 9)
    ]  # fmt: skip


def test_values_stand_under_groups_of_countries_too(tmp_path: Path) -> None:
    row = {"metric": "align", "model": "m", "benchmark": "b", "params": "{}", "item": "i", "value": 0.5}
    values = stored(tmp_path / "values", VALUES, [
        {**row, "country": "IR", "prompt_id": "p"}, {**row, "country": "SE", "item": "j", "prompt_id": "q"},
        {**row, "metric": "faith", "country": "FR", "item": "k", "prompt_id": "r"},
    ])  # fmt: skip
    folder = built(grouped_values_stage(values, scheme="cultivate", metrics=["align"]), tmp_path / "by-group")
    found = read_table(folder / "values.parquet", VALUES).select("item", "country", "group").sort("item", "country")
    assert found.rows() == [("i", None, "GS"), ("i", "IR", None), ("j", "SE", None)]


def test_each_pair_of_groups_has_a_gap(tmp_path: Path) -> None:
    judged = stored(tmp_path / "judged", SCORES, [
        scores_row("align", group=group, value=value)
        for group, value in (("Europe", 0.5), ("Asia", 0.75), ("Oceania", 0.25))
    ])  # fmt: skip
    folder = built(gaps_of_scores_stage(Numbered([judged]), None, scheme="un-m49-region"), tmp_path / "gaps")
    found = read_table(folder / "scores.parquet", SCORES).sort("group")
    assert found.select("group", "value").rows() == [
        ("Asia - Europe", 0.25), ("Asia - Oceania", 0.5), ("Europe - Oceania", 0.25),
    ]  # fmt: skip


def test_gaps_of_scores_are_judged_corrected_and_true(tmp_path: Path) -> None:
    pair = [
        ("GN", '{"labels":"judged"}', 0.7, 0.68, 0.72), ("GS", '{"labels":"judged"}', 0.4, 0.37, 0.43),
        ("GN", '{"labels":"corrected","pool":"in"}', 0.6, 0.5, 0.7),
        ("GS", '{"labels":"corrected","pool":"in"}', 0.6, None, None),
    ]  # fmt: skip
    judged = stored(tmp_path / "judged", SCORES, [
        scores_row("align", group=group, params=params, value=value, ci_low=low, ci_high=high)
        for group, params, value, low, high in pair
    ])  # fmt: skip
    truth = stored(tmp_path / "truth", SCORES, [
        scores_row(metric, group=group) for metric in ("align", "sdiv") for group in ("GN", "GS")
    ])  # fmt: skip
    folder = built(gaps_of_scores_stage(Numbered([judged]), truth, scheme="cultivate"), tmp_path / "gaps")
    labelled = pl.col("params").str.json_path_match("$.labels")
    found = read_table(folder / "scores.parquet", SCORES).with_columns(labels=labelled).sort("labels")
    assert found["labels"].to_list() == ["corrected", "judged", "truth"]
    assert set(found["group"]) == {"GN - GS"}
    assert found["value"].to_list() == pytest.approx([0.0, 0.3, 0.0])
    alone = found.row(1, named=True)
    assert alone["ci_high"] - alone["value"] == pytest.approx((0.02**2 + 0.03**2) ** 0.5)
    assert found["ci_low"].to_list()[::2] == [None, None]
    assert found["n"].to_list() == [18] * 3


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
