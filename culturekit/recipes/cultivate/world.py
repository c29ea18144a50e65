"""The simulated world of `cultivate`: pages about it, what its scenes show, and people who mark them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from html import escape
from pathlib import Path
from typing import Any

import msgspec
import orjson
import polars as pl
import yaml

from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws, step
from culturekit.core.atomic import write_atomically
from culturekit.core.declared import staged
from culturekit.core.errors import UsageError
from culturekit.core.inputs import roles
from culturekit.core.package_data import shipped
from culturekit.core.schemas import IMAGES, JUDGMENTS, SCENE_ITEMS, STEREOTYPES, VALUES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, read_together, write_table
from culturekit.generation.simulated.scenes.scenes_backend import DIMENSIONS, VOCABULARY, world
from culturekit.kg.countries import country
from culturekit.metrics.ahead.matching import normalise_phrase
from culturekit.people.rated_sample import Answering
from culturekit.people.stages import filled_in_stage
from culturekit.recipes.cultivate.marks import extracted_phrases
from culturekit.scores.inputs import asked

# Pages in the shapes of real sources, in sentences that can be quoted.

PAGES = "pages.yaml"
CAVEAT = "The pages are about a made-up world; nobody wrote them, and no culture is as they say."

_ATLAS, _LISTED = ("religious", "greetings", "celebrations"), ("dances", "games")  # on one page, on a list each
_SENTENCES = (
    "In {place} the {name} is known in every town.",
    "Visitors to {place} often meet the {name} on their first day.",
    "For many families the {name} belongs to the year.",
)
_AGAIN = "Older people still speak of the {name} with a smile."  # of every third activity, in another section


@staged("simulated-pages", "pages", reads=lambda _: {"world": shipped(VOCABULARY)})
def simulated_pages_stage(work: Work, *, countries: Sequence[str]) -> Outcome:
    """Write pages about the activities of countries of the simulated world, and the list `pages.yaml` of them."""
    return Outcome({"pages": write_pages(work.out, countries)}, notes={"caveat": CAVEAT})


def write_pages(folder: Path, countries: Sequence[str]) -> int:
    """Write the pages of countries and the list of them; return the number of pages."""
    unknown = sorted(set(countries) - set(world().countries))
    if unknown:
        raise UsageError(
            f"the simulated world has no {' or '.join(unknown)}", expected="some of " + ", ".join(world().countries)
        )
    pages = [page for iso in countries for page in _pages(iso)]
    for entry, content in pages:
        write_atomically(folder / str(entry["file"]), content.encode())
    listed = yaml.safe_dump({"pages": [entry for entry, _ in pages]}, sort_keys=False)
    write_atomically(folder / PAGES, listed.encode())
    return len(pages)


def _pages(iso: str) -> Iterator[tuple[dict[str, object], str]]:
    """Yield the entries of a country in the list of pages, each with its content."""
    land, title = country(iso).in_a_sentence, f"{country(iso).name} culture"
    about = {"source": "cultural-atlas", "country": iso, "file": f"{iso}-atlas.html", "title": title}
    yield {**about, "categories": [*_ATLAS]}, _atlas_page(title, land)
    for category in _LISTED:
        about = {"source": "wikipedia", "country": iso, "file": f"{iso}-{category}.wikitext",
                 "title": f"List of {category} of {land}", "revision": "1"}  # fmt: skip
        yield {**about, "categories": [category]}, _list_page(category, land)


def _atlas_page(title: str, land: str) -> str:
    """Write a page in the shape of the Cultural Atlas: a section per category, and one that returns to some."""
    sections = {
        category.capitalize(): [f"People in {land} may see this differently.", *_sentences(category, land)]
        for category in _ATLAS
    }
    sections["Etiquette"] = [_AGAIN.format(name=name) for category in _ATLAS for name in _activities(category)[::3]]
    body = "".join(
        f"<section><h2>{escape(heading)}</h2>{''.join(f'<p>{escape(text)}</p>' for text in texts)}</section>\n"
        for heading, texts in sections.items()
    )
    head = f"<!DOCTYPE html>\n<html><head><title>{escape(title)}</title></head>\n<body><h1>{escape(title)}</h1>\n"
    return f"{head}{body}</body></html>\n"


def _list_page(category: str, land: str) -> str:
    """Write a list in wikitext, which returns to some of its entries."""
    names = _activities(category)
    entries = "\n".join(
        "* " + sentence.replace(name, f"'''[[{name}]]'''")
        for name, sentence in zip(names, _sentences(category, land), strict=True)
    )
    again = "\n".join(_AGAIN.format(name=f"[[{name}]]") for name in names[::3])
    return f"This is a list of {category} of {land}.\n\n== Known everywhere ==\n{entries}\n\n== Memories ==\n{again}\n"


def _activities(category: str) -> list[str]:
    return list(world().categories[category].activities)


def _sentences(category: str, land: str) -> list[str]:
    """Write a sentence about each activity of a category."""
    return [
        _SENTENCES[number % len(_SENTENCES)].format(place=land, name=name)
        for number, name in enumerate(_activities(category))
    ]


# What scenes show.


@staged("scene-truth", "truth", packages=("msgspec", "polars"))
def scene_truth_stage(work: Work, images: Path, prompts: Path, stereotypes: Path | None = None) -> Outcome:
    """Write what simulated scenes show, as a judge without errors would say it.

    With a table of stereotypes, each of those of the prompt's country has a row; else those that the world knows.
    """
    drawn = read_table(images, IMAGES).filter(status="ok")
    if "truth_scene" not in drawn.columns:
        raise UsageError(
            "these images do not come with the truth", where=str(images), expected="images of simulated-scenes"
        )
    countries = dict(asked(prompts, work.scratch).select("prompt_id", "country").iter_rows())
    tokens = stereotypes_by_country(None if stereotypes is None else read_table(stereotypes, STEREOTYPES))
    work.progress.begin(drawn.height, "images")
    rows = [
        row
        for image in drawn.drop_nulls("truth_scene").sort("image_id").iter_rows(named=True)
        for row in truth_rows(image, tokens.get(countries.get(image["prompt_id"], ""), ()))
    ]
    write_table(work.out, JUDGMENTS, pl.DataFrame(rows, schema=JUDGMENTS.schema, orient="row"))
    work.progress.advance(drawn.height)
    return Outcome({"judgments": len(rows), "images": drawn.height})


def stereotypes_by_country(table: pl.DataFrame | None) -> Mapping[str, tuple[str, ...]]:
    """Give the stereotypes of each country in a table, or of each that the world knows."""
    if table is None:
        return {country: world().stereotypes(country) for country in world().countries}
    listed = table.sort(STEREOTYPES.key).group_by("country", maintain_order=True).agg("token")
    return {country: tuple(tokens) for country, tokens in listed.iter_rows()}


def truth_rows(image: Mapping[str, Any], stereotypes: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    """Yield the judgments of an image: what it shows in each dimension, and how strongly each stereotype."""
    scene = msgspec.json.decode(image["truth_scene"])
    ids = (image["image_id"], image["prompt_id"], "truth")
    for dimension in DIMENSIONS:
        for token in scene["shown"][dimension] or [""]:
            yield *ids, "extract", token, dimension, None, None, "", "ok"
    for token in stereotypes:
        strength = scene["stereotypes"].get(token.casefold(), 0.0)
        yield *ids, "stereotype", token, None, strength, None, "", "ok"


# People who know what scenes show.


def simulated_marks_stage(
    project: Path, items: Path, truth: Sequence[Path], values: Path, how: SimulatedPeople, *, seed: int
) -> Stage:
    """Let simulated people fill in the form `cultivate`, who know what simulated scenes show."""

    def answering(_: object) -> Answering:
        phrases = extracted_phrases(read_together(truth, JUDGMENTS))
        shown: dict[str, list[tuple[str, str]]] = {}
        for image, dimension, token in phrases.select("image_id", "dimension", "item").iter_rows():
            shown.setdefault(image, []).append((dimension, token))
        rated = read_table(values, VALUES).filter(pl.col("metric").is_in(["faith", "hal", "exag"]))
        scores = {(metric, item): value for metric, item, value in rated.select("metric", "item", "value").iter_rows()}
        about = {row["item_id"]: row for row in read_table(items, SCENE_ITEMS).iter_rows(named=True)}
        return partial(marks_by_person, shown=shown, scores=scores, about=about, how=how, seed=seed)

    inputs = {"items": items, "values": values, **roles("truth", truth)}
    return filled_in_stage("simulated-marks", project, inputs, answering, how, seed=seed)


def marks_by_person(
    person: str, row: Mapping[str, Any], *, shown: Mapping[str, Sequence[tuple[str, str]]],
    scores: Mapping[tuple[str, str], float], about: Mapping[str, Mapping[str, Any]], how: SimulatedPeople, seed: int,
) -> Mapping[str, str | Sequence[str]]:  # fmt: skip
    """Fill in the form as one person: ratings scatter around the truth, and few marks are wrong."""
    item = row["item_id"]
    draws = person_draws(person, item, "again" if row["kind"] != "item" else "first", seed=seed)
    careless = is_careless(person, how, seed=seed)
    offered = orjson.loads(row["options"])["descriptors"]
    answers: dict[str, str | Sequence[str]] = {}
    for name in ("faith", "hal", "exag"):
        deserved = 1 + 4 * scores.get((name, item), 0.5)
        scatter = 0.0 if name == "exag" else draws.normal(0, how.scatter)
        between = draws.uniform(-0.5, 0.5)  # what lies between two steps is rated as either, so that means are right
        answers[name] = step(float(draws.integers(1, 6)) if careless else deserved + between + scatter)
    if answers["hal"] != "1":
        answers["hal_comment"] = "This does not belong here."
    answers["realism"] = step(3.5 + draws.normal(0, how.scatter))
    seen = shown.get(item, ())
    unlisted = [
        f"{dimension}: {token}"
        for dimension, token in sorted(seen)
        if not any(_names_any({token}, offer["choice"]) for offer in offered.values()) and draws.random() < how.accuracy
    ]
    if unlisted and not careless:
        answers["other"] = "; ".join(unlisted)
    for name, right in (("shown", {token for _, token in seen}), ("relevant", _expected(about.get(item, {})))):
        chances = dict(zip(sorted(offered), draws.random(len(offered)), strict=True))
        marks = [
            code
            for code, chance in chances.items()
            if (chance < 0.5 if careless else _names_any(right, offered[code]["choice"]) == (chance < how.accuracy))
        ]
        if marks:
            answers[name] = marks
    return answers


def _names_any(tokens: set[str], phrase: str) -> bool:
    """Return whether a phrase names one of some things, perhaps in a few more words."""
    words = _spaced(phrase)
    return any(_spaced(token) in words for token in tokens)


@lru_cache(maxsize=65_536)
def _spaced(phrase: str) -> str:
    """Surround a phrase with spaces, so that it is found in another as whole words."""
    return f" {normalise_phrase(phrase)} "


def _expected(item: Mapping[str, Any]) -> set[str]:
    """Give what belongs to the activity of an item in its country, as far as the simulated world knows."""
    if not item or item["country"] not in world().countries:
        return set()
    kind, activity = item["concept"], world().activity_named(item["activity"], item["concept"])
    return {token.text for tokens in world().expected(kind, activity, item["country"]).values() for token in tokens}
