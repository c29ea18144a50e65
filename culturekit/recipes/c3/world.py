"""The simulated world of `c3`: pictures of the web with captions, what they deserve, and people who rate them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import polars as pl

from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws, step
from culturekit.core.declared import staged
from culturekit.core.inputs import roles
from culturekit.core.package_data import shipped
from culturekit.core.schemas import CAPTIONS, IMAGES, PROMPTS, RIGHTS, TRANSLATIONS, VALUES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, scan_table, table_outcome, write_table
from culturekit.generation.simulated.scenes.scenes_backend import (
    LANGUAGE,
    VOCABULARY,
    all_named,
    dice,
    foreign_share,
    named_in,
    spoken,
    understood,
    world,
)
from culturekit.kg.countries import country as known_country
from culturekit.people.rated_sample import Answering
from culturekit.people.scheme import Scheme
from culturekit.people.stages import filled_in_stage
from culturekit.recipes.c3.pairs import RATING, means_of, write_means

TRUTH, COLLECTION, LICENCE = "truth", "collection", "CC0-1.0"
CRAFT = 0.75  # of every simulated picture and translation: nothing in how they are done differs
OVERDONE = 0.5  # the share of its cultural appropriateness that a picture full of stereotypes loses


@staged("collection-prompts", "collection-prompts", reads=lambda _: {"world": shipped(VOCABULARY)})
def collection_prompts_stage(work: Work, *, country: str) -> Outcome:
    """Write a prompt for each activity of the simulated world in a country: what pictures of it on the web are of."""
    where, about = (
        known_country(country).in_a_sentence,
        dict.fromkeys(("benchmark", "kind", "template_id"), COLLECTION),
    )
    rows = [
        {**about, "prompt_id": f"{COLLECTION}-{number:03}", "text": f"A photo of {activity} in {where}.",
         "language": "en", "concept": category, "country": country}
        for number, (activity, category) in enumerate(world().activities)
    ]  # fmt: skip
    return table_outcome(work, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))


@staged("simulated-alt-texts", "alt-texts", seeds={"texts": "seed"})
def alt_texts_stage(work: Work, images: Path, *, names: float, wrong: float, seed: int) -> Outcome:
    """Caption pictures as the web does, in the language of the simulated world, and say under which licence they are.

    A caption names so large a share of what its picture shows; how often it is `wrong` about it differs from picture to
    picture, up to twice that share.
    """
    rows = [
        (image, spoken(alt_text(scene, image, names=names, wrong=wrong, seed=seed)), COLLECTION, scene["country"],
         LANGUAGE, 0, None)
        for row, scene in _scenes_of([images]) for image in [row["image_id"]]
    ]  # fmt: skip
    write_table(work.out, CAPTIONS, pl.DataFrame(rows, schema=CAPTIONS.schema, orient="row"))
    rights = [(image, LICENCE, "the web of the simulated world", None) for image, *_ in rows]
    write_table(work.out, RIGHTS, pl.DataFrame(rights, schema=RIGHTS.schema, orient="row"))
    return Outcome({"captions": len(rows), "rights": len(rights)})


def alt_text(scene: Mapping[str, Any], image: str, *, names: float, wrong: float, seed: int) -> str:
    """Name some of what a picture shows, and some that it does not."""
    rng = person_draws(image, "alt text", seed=seed)
    elsewhere = _things_of_places()
    faulty = rng.uniform(0, min(1.0, 2 * wrong))
    tokens = []
    for token in sorted(_shown_in(scene)):
        drawn, slips, other = rng.random(3)
        if drawn < names:
            tokens.append(elsewhere[int(other * len(elsewhere))] if slips < faulty else token)
    return f"A photo of {', '.join(dict.fromkeys(tokens)) or 'something'}"


@cache
def _things_of_places() -> list[str]:
    """List what each country alone shows, in alphabetical order."""
    places, dimensions = world().countries.values(), named_in("")
    return sorted(token for land in places for token in all_named({d: land.of_dimension(d) for d in dimensions}))


def _scenes_of(images: Sequence[Path]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Give image_id, model and prompt_id of each picture that was made, with the scene that it truly shows."""
    columns = ("image_id", "model", "prompt_id", "truth_scene")
    for path in images:
        rows = scan_table(path, IMAGES).filter(status="ok").drop_nulls("truth_scene").select(columns).sort("image_id")
        for row in rows.collect().iter_rows(named=True):
            yield row, msgspec.json.decode(row["truth_scene"])


def _shown_in(scene: Mapping[str, Any]) -> frozenset[str]:
    """Give everything that a scene shows, stereotypes apart."""
    return frozenset(token for tokens in scene["shown"].values() for token in tokens)


def image_truth(prompt: str, scene: Mapping[str, Any]) -> dict[str, float]:
    """Give what a picture of a caption deserves in each criterion, from 0 to 1."""
    asked, shown = all_named(named_in(prompt)), _shown_in(scene)
    presence = len(asked & shown) / len(asked) if asked else 0.0
    overdone = min(1.0, sum(scene["stereotypes"].values()) / 2)
    return {
        "object_presence": presence,
        "object_localization": presence,
        "cultural_appropriateness": (1 - foreign_share(shown - asked, scene["country"])) * (1 - OVERDONE * overdone),
        "visual_aesthetics": CRAFT,
        "semantic_consistency": dice(asked, shown),
        "cohesion": CRAFT,
    }


def pair_truth(source: str, translation: str, scene: Mapping[str, Any]) -> dict[str, float]:
    """Give what a translated caption of a picture deserves in each criterion, from 0 to 1.

    `relevance` is the true alignment of the pair: how far what is said and what is shown are the same.
    """
    original, named = all_named(named_in(understood(source))), all_named(named_in(translation))
    shown = _shown_in(scene)
    return {
        "adequacy": dice(original, named),
        "fluency": CRAFT,
        "consistency": CRAFT,
        "relevance": dice(named, shown),
        "context": len(named & shown) / len(shown) if shown else 0.0,
        "cultural_appropriateness": 1 - foreign_share(named, scene["country"]),
    }


Truths: TypeAlias = Iterator[tuple[str, str, str | None, Mapping[str, float]]]
"""Model, item, prompt, and what the item deserves in each criterion."""


def image_truth_stage(images: Sequence[Path], prompts: Path) -> Stage:
    """Write down what pictures of captions truly deserve in each criterion, and as VQAScore should have it."""

    def truths() -> Truths:
        texts = dict(read_table(prompts, PROMPTS).select("prompt_id", "text").iter_rows())
        for row, scene in _scenes_of(images):
            yield row["model"], row["image_id"], row["prompt_id"], image_truth(texts[row["prompt_id"]], scene)

    inputs = {"prompts": prompts, **roles("images", list(images))}
    return _truth_stage("truth", inputs, truths, judged={"vqascore": "object_presence"})


def pair_truth_stage(images: Path, translations: Path) -> Stage:
    """Write down what translated captions truly deserve in each criterion."""

    def truths() -> Truths:
        texts = {row["id"]: row for row in read_table(translations, TRANSLATIONS).iter_rows(named=True)}
        for row, scene in _scenes_of([images]):
            if (image := row["image_id"]) in texts:
                yield TRUTH, image, None, pair_truth(texts[image]["source"], texts[image]["text"], scene)

    return _truth_stage("pair-truth", {"images": images, "translations": translations}, truths, judged={})


def _truth_stage(
    name: str, inputs: Mapping[str, Path], truths: Callable[[], Truths], *, judged: Mapping[str, str]
) -> Stage:
    """Write ratings that are deserved, on the scale from 1 to 5, and metrics as a judge without errors gives them."""

    def run(work: Work) -> Outcome:
        rows = [
            (model, metric, criterion, item, prompt, 1 + 4 * value if metric == RATING else value)
            for model, item, prompt, deserved in truths()
            for metric, criterion, value in [
                *((RATING, criterion, value) for criterion, value in deserved.items()),
                *((metric, criterion, deserved[criterion]) for metric, criterion in judged.items()),
            ]
        ]
        table = pl.DataFrame(rows, schema=["model", "metric", "criterion", "item", "prompt_id", "value"], orient="row")
        return write_means(work, means_of(table.with_columns(labels=pl.lit(TRUTH))))

    return Stage(name, "caption-truth", 1, run, dict(inputs), packages=("msgspec", "polars"))


def simulated_ratings_stage(project: Path, truth: Path, how: SimulatedPeople, *, seed: int) -> Stage:
    """Let simulated people, who know what each item deserves, rate all criteria of a form from 1 to 5."""

    def answering(scheme: Scheme) -> Answering:
        values = read_table(truth, VALUES).with_columns(criterion=pl.col("params").str.json_path_match("$.criterion"))
        deserved = {
            (row["item"], row["criterion"]): row["value"] for row in values.filter(metric=RATING).iter_rows(named=True)
        }
        criteria = [criterion.name for criterion in scheme.criteria]
        return partial(ratings_of, criteria=criteria, deserved=deserved, how=how, seed=seed)

    return filled_in_stage("simulated-ratings", project, {"truth": truth}, answering, how, seed=seed)


def ratings_of(
    person: str, row: Mapping[str, Any], *, criteria: Sequence[str], deserved: Mapping[tuple[str, str], float],
    how: SimulatedPeople, seed: int,
) -> Mapping[str, str]:  # fmt: skip
    """Rate one item as one person would: what lies between two steps of the scale is rated as either."""
    draws = person_draws(person, row["item_id"], "again" if row["kind"] != "item" else "first", seed=seed)
    if is_careless(person, how, seed=seed):
        return {criterion: str(draws.integers(1, 6)) for criterion in criteria}
    return {
        criterion: step(
            deserved.get((row["item_id"], criterion), 3.0) + draws.uniform(-0.5, 0.5) + draws.normal(0, how.scatter)
        )
        for criterion in criteria
    }
