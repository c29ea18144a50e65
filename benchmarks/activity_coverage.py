"""How often corrected AHEaD holds what scenes truly show, with a judge that misses more in some countries.

Each run is the part of the recipe `cultivate` from scenes on, with its own scenes, judge and people; the pictures are
left out, because the simulated judge reads them without an error. Intervals speak about these prompts, and not about
the images that happened to be made of them: the true value is the mean over many more images of each prompt. How often
they hold that of the same images stands beside it: of these people saw a part, so that it is more often. What the judge
alone says stands beside what people put right, for every group of countries and for the gap between them.
"""

import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
from coverage_of_runs import Told, measure
from withheld import scored_or_none

from culturekit.builders.judging.image_judge import vqa_request
from culturekit.builders.judging.scene_judge import Descriptors
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.simulated import simulated_model
from culturekit.builders.simulated.simulated_model import SimulatedModel, make
from culturekit.core.inputs import Files, Numbered
from culturekit.core.registry import parse_spec
from culturekit.core.schemas import (
    ANNOTATIONS,
    AUDIT_SAMPLE,
    DESCRIPTORS,
    IMAGES,
    JUDGMENTS,
    PROMPTS,
    SCENE_ITEMS,
    SCORES,
    VALUES,
)
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.generation.simulated.scenes.scenes_backend import DIMENSIONS, Options, Scene, scene_of, world
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.llm.client import Image, Request
from culturekit.people.rated_sample import rated_sample
from culturekit.recipes.cultivate.breakdown import gaps_in, grouped_values_stage
from culturekit.recipes.cultivate.marks import SCALE, extracted_phrases, marks_stage, scene_items_stage
from culturekit.recipes.cultivate.recipe import CORRECTED
from culturekit.recipes.cultivate.scores import AheadInput, AheadOptions, PhraseVectors, score_ahead
from culturekit.recipes.cultivate.world import marks_by_person, stereotypes_by_country, truth_rows
from culturekit.scores.image_levels import country_groups
from culturekit.scores.judged import JudgedOptions, score_judged

RUNS, SEED = 200, 20261123
COUNTRIES = ("US", "FR", "IR", "BR")
MODELS = {
    "even": "simulated-scenes?knows=0.6&invents=0.1&exaggerates=0.15",
    "northern": "simulated-scenes?knows=0.75,GS:0.5&invents=0.05,GS:0.2&exaggerates=0.1,GS:0.3",
    "showy": "simulated-scenes?knows=0.5&invents=0.15&exaggerates=0.7",
    "real": "simulated-scenes?knows=0.85&exaggerates=0.05",
}
JUDGE = "simulated?omits=0.1,GS:0.35&lenient=0.05,GN:0.15&halo=0.6&invents=0.05&rewords=0.2"
PEOPLE = SimulatedPeople(accuracy=0.97, scatter=0.6, careless=0.0)
SLOTS, PER_CATEGORY, PER_PERSON, TAU = 4, 3, 3, 0.52
MANY = 24
"""Images of each prompt and model whose mean is what a model shows."""
METRICS = tuple(CORRECTED)


class Hands:
    """Stands for an engine and a progress bar that are not looked at."""

    def begin(self, total: int, unit: str) -> None:
        """Hear how much there is to do."""

    def advance(self, count: int = 1) -> None:
        """Hear how much of it is done."""


def prompts_table() -> pl.DataFrame:
    """Ask for one activity of each category in each country."""
    groups = country_groups("cultivate")
    rows = [
        {"prompt_id": f"{iso} {category} {activity}", "text": f"A photorealistic photo of {activity}.",
         "benchmark": "cultivate", "kind": "activity", "concept": category, "country": iso, "group": groups[iso],
         "language": "en", "template_id": "t"}
        for iso in COUNTRIES
        for category, known in world().categories.items()
        for activity in list(known.activities)[:PER_CATEGORY]
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=PROMPTS.schema)


def activity_of(row: Mapping[str, Any]) -> str | None:
    """Give the activity that a prompt names."""
    return world().activity_named(row["text"], row["concept"])


def references(prompts: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Give most of what belongs to each prompt, as proposers and a refiner would."""
    rng = np.random.default_rng([seed, 1])
    rows = [
        (row["prompt_id"], dimension, token.text, token.style, token.necessity, ["a"])
        for row in prompts.iter_rows(named=True)
        for dimension, tokens in world().expected(row["concept"], activity_of(row), row["country"]).items()
        for token in tokens
        if rng.random() < 0.9
    ]
    return pl.DataFrame(rows, schema=DESCRIPTORS.schema, orient="row")


def scenes(prompts: pl.DataFrame, seed: int, slots: range) -> Iterator[tuple[dict[str, Any], Scene]]:
    """Put together what every model shows, with the row of each image."""
    for model, spec in MODELS.items():
        how = parse_spec(spec).read(Options).knowledge
        for row in prompts.iter_rows(named=True):
            for slot in slots if model != "real" else range(SLOTS):
                key = hashlib.sha256(f"{seed} {model} {row['prompt_id']} {slot}".encode())
                scene = scene_of(
                    row["concept"], activity_of(row), row["country"], how,
                    prompt=f"{seed} {row['text']}", seed=int(key.hexdigest()[:8], 16),
                )  # fmt: skip
                yield {
                    "image_id": key.hexdigest()[:16], "path": "p", "prompt_id": row["prompt_id"], "model": model,
                    "repeat": 0, "slot": slot, "rewriter": "off", "provider_params": "{}", "status": "ok",
                    "sha256": key.hexdigest(), "width": 192, "height": 192, "truth_scene": truth_of(scene),
                }, scene  # fmt: skip


def truth_of(scene: Scene) -> str:
    """Write what is shown as the backend does."""
    return orjson.dumps(scene.as_data()).decode()


def judged_rows(
    judge: SimulatedModel, image: Mapping[str, Any], scene: Scene, stereotypes: tuple[str, ...]
) -> Iterator[tuple[object, ...]]:
    """Let the judge describe an image, and say how probable each stereotype is."""
    shown = Image(b"", "image/png", image["sha256"], 192, 192)
    simulated_model.READ[shown.sha256] = scene
    place = (image["image_id"], image["prompt_id"], judge.model)
    for dimension in DIMENSIONS:
        request = Request("image.extract", "", {"id": "x", "dimension": dimension}, Descriptors, images=(shown,))
        said = orjson.loads(judge.ask(request).text)["descriptors"]
        for phrase in said.split(", "):
            yield *place, "extract", phrase, dimension, None, None, "", "ok"
    for token in stereotypes:
        (_, yes), _ = judge.ask(vqa_request(shown, token, instructions="")).tokens
        yield *place, "stereotype", token, None, float(np.exp(yes)), None, "", "ok"
    del simulated_model.READ[shown.sha256]


def people_say(items: pl.DataFrame, truth: pl.DataFrame, values: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Let people fill in the form about each item."""
    shown: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for image, dimension, token in extracted_phrases(truth).select("image_id", "dimension", "item").iter_rows():
        shown[image].append((dimension, token))
    own = values.filter(pl.col("metric").is_in(["faith", "hal", "exag"]))
    scores = {(metric, item): value for metric, item, value in own.select("metric", "item", "value").iter_rows()}
    about = {row["item_id"]: row for row in items.iter_rows(named=True)}
    rows: list[tuple[object, ...]] = []
    for item, row in about.items():
        offered = {str(number): {"choice": phrase} for number, phrase in enumerate(dict.fromkeys(row["descriptors"]))}
        key = {"item_id": item, "kind": "item", "options": orjson.dumps({"descriptors": offered})}
        for number in range(PER_PERSON):
            person = f"{row['country']}-{number}"
            told = marks_by_person(person, key, shown=shown, scores=scores, about=about, how=PEOPLE, seed=seed)
            place = (item, person, row["country"], True, "cultivate")
            rows += [
                (*place, name, float(str(told[name])), told[name], None, 9.0, []) for name in ("faith", "hal", "exag")
            ]
            if "other" in told:
                rows.append((*place, "other", None, None, told["other"], 9.0, []))
            rows += [
                (*place, f"{question}/{one['choice']}", float(code in told.get(question, ())), None, None, 9.0, [])
                for question in {"shown", "relevant"} & told.keys()  # who ticks nothing has not answered
                for code, one in offered.items()
            ]
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema, orient="row")


def one_run(seed: int) -> list[Told]:
    """Make a run; give metric, group, labels, value, limits, what the model shows, and what these images show."""
    with tempfile.TemporaryDirectory() as name:
        return run_in(Path(name), seed)


def work_in(folder: Path) -> Work:
    """Give hands in a folder."""
    (folder / "scratch").mkdir(parents=True)
    return Work({}, folder, folder / "scratch", None, Hands())  # type: ignore[arg-type]


def run_in(root: Path, seed: int) -> list[Told]:
    """Make a run in a folder."""
    prompts, judge = prompts_table(), make(parse_spec(f"{JUDGE}&seed={seed}"))
    write_table(make_dir(root / "prompts"), PROMPTS, prompts)
    descriptors = references(prompts, seed)
    write_table(make_dir(root / "descriptors"), DESCRIPTORS, descriptors)
    images, said, true, known = [], [], [], stereotypes_by_country(None)
    for image, scene in scenes(prompts, seed, range(SLOTS)):
        images.append(image)
        country = image["prompt_id"][:2]
        said += list(judged_rows(judge, image, scene, known[country]))
        true += list(truth_rows(image, known[country]))
    table = images_table(images)
    judgments, truth = (pl.DataFrame(rows, schema=JUDGMENTS.schema, orient="row") for rows in (said, true))
    for kind, rows in (("said", judgments), ("true", truth)):
        write_table(make_dir(root / kind), JUDGMENTS, rows)
    texts = (root / "said/judgments.parquet", root / "true/judgments.parquet", root / "descriptors/descriptors.parquet")
    embed_stage(EmbedSource(texts=texts), encoder="letters").run(work_in(root / "phrases"))
    vectors, ids = PhraseVectors(root / "phrases").vectors()
    options = AheadOptions("real", TAU, target="these")
    scored = {
        kind: score_ahead(AheadInput(table, prompts, descriptors, rows, vectors, ids, rows), options=options).scored
        for kind, rows in (("judged", judgments), ("truth", truth))
    }
    made = table.filter(pl.col("model") != "real")
    sample = rated_sample(made, prompts, count=10_000, rng=np.random.default_rng([seed, 2]))
    write_table(make_dir(root / "sample"), AUDIT_SAMPLE, sample)
    scene_items_stage(
        Files({"sample": root / "sample/audit_sample.parquet"}), root / "prompts/prompts.parquet",
        root / "descriptors/descriptors.parquet", Numbered([root / "said/judgments.parquet"]),
    ).run(work_in(root / "items"))  # fmt: skip
    items = read_table(root / "items/scene_items.parquet", SCENE_ITEMS)
    write_table(make_dir(root / "said-by-people"), ANNOTATIONS, people_say(items, truth, scored["truth"].values, seed))
    marks_stage(
        root / "said-by-people/annotations.parquet", root / "items/scene_items.parquet",
        root / "descriptors/descriptors.parquet", PhraseVectors(root / "phrases"),
        write_table(make_dir(root / "judged"), SCORES, scored["judged"].scores),
    ).run(work_in(root / "marks"))  # fmt: skip
    return compared(root, scored, true_scores(root / "many", prompts, descriptors, table, truth), sample)


@cache
def many() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draw many images of each prompt and model, and say what they truly show: what models show in every run."""
    known = stereotypes_by_country(None)
    drawn = [image for image, _ in scenes(prompts_table(), SEED - 1, range(MANY)) if image["model"] != "real"]
    rows = [row for image in drawn for row in truth_rows(image, known[image["prompt_id"][:2]])]
    return images_table(drawn), pl.DataFrame(rows, schema=JUDGMENTS.schema, orient="row")


def true_scores(
    root: Path, prompts: pl.DataFrame, descriptors: pl.DataFrame, images: pl.DataFrame, truth: pl.DataFrame
) -> pl.DataFrame:
    """Score what models truly show on these prompts, by what belongs there and the real images of a run."""
    real = images.filter(model="real")
    drawn, said = many()
    every = pl.concat([drawn, real]), pl.concat([said, truth.join(real, on="image_id", how="semi")])
    texts = []
    for name, kind, table in (("true", JUDGMENTS, every[1].unique("item")), ("asked", DESCRIPTORS, descriptors)):
        texts.append(make_dir(root / name) / f"{kind.name}.parquet")
        write_table(root / name, kind, table)
    embed_stage(EmbedSource(texts=tuple(texts)), encoder="letters").run(work_in(root / "phrases"))
    vectors, ids = PhraseVectors(root / "phrases").vectors()
    given = AheadInput(every[0], prompts, descriptors, every[1], vectors, ids, every[1])
    return score_ahead(given, options=AheadOptions("real", TAU, target="these")).scored.scores


def images_table(images: list[dict[str, Any]]) -> pl.DataFrame:
    """Give images as their table has them."""
    return pl.DataFrame([{k: v for k, v in one.items() if k in IMAGES.columns} for one in images], schema=IMAGES.schema)


def make_dir(folder: Path) -> Path:
    """Make a folder."""
    folder.mkdir(parents=True)
    return folder


def compared(root: Path, scored: Mapping[str, Any], shown: pl.DataFrame, sample: pl.DataFrame) -> list[Told]:
    """Put people right what the judge says, and lay it beside what models show, and what these images show."""
    write_table(make_dir(root / "ahead"), VALUES, scored["judged"].values)
    grouping = grouped_values_stage(root / "ahead/values.parquet", scheme="cultivate", metrics=METRICS)
    grouping.run(work_in(root / "by-group"))
    values = read_table(root / "by-group/values.parquet", VALUES)
    marks = read_table(root / "marks/annotations.parquet", ANNOTATIONS)
    rows = []
    truths = by_place(shown), by_place(scored["truth"].scores)
    for metric in METRICS:
        criterion = CORRECTED[metric]
        low, high = SCALE if criterion == metric else (None, None)
        options = JudgedOptions(criterion, None, None, low, high, (metric,), "countries")
        answered = scored_or_none(partial(score_judged, values, marks, sample, options=options))
        found = answered.scores
        whole = found.filter(pl.col("country").is_null())
        for row in whole.iter_rows(named=True):
            place = (metric, row["model"], row["group"])
            rows.append(told(row, *(one.get(place) for one in truths)))
        for row in gaps_in(whole, "", "cultivate"):
            true = (gap(one, metric, row["model"]) for one in truths)
            rows.append(told({**row, "group": "gap"}, *true))
    return [row for row in rows if row is not None]


def by_place(scores: pl.DataFrame) -> dict[tuple[str, str, str | None], float]:
    """Give scores over countries by metric, model and group."""
    over = scores.filter(pl.col("country").is_null())
    return {(row["metric"], row["model"], row["group"]): row["value"] for row in over.to_dicts()}


def gap(exact: Mapping[Any, float], metric: str, model: str) -> float | None:
    """Subtract the true value of the Global South from that of the North."""
    sides = [exact.get((metric, model, group)) for group in ("GN", "GS")]
    return None if None in sides else sides[0] - sides[1]  # type: ignore[operator]


def told(row: Mapping[str, Any], shown: float | None, own: float | None) -> Told | None:
    """Say of a score what it is, and what it should be."""
    if shown is None or own is None or row["model"] == "real" or row["ci_low"] is None:
        return None
    about = orjson.loads(row["params"])
    metric = about["metric"] if row["metric"] == "group_gap" else row["metric"]
    place = [metric, row["group"] or "all", about["labels"]]
    return place, row["value"], row["ci_low"], row["ci_high"], shown, own


if __name__ == "__main__":
    measure("activity_coverage", one_run, of=("metric", "countries", "labels"), first=SEED, runs=RUNS,
            title="Corrected AHEaD in {runs} runs of simulated scenes")  # fmt: skip
