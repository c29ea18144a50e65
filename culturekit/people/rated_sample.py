"""Which images people rate in a run, and simulated people who fill in the project.

Of every model the first image of the same prompts is rated, spread over countries and concepts; the answers of
simulated people leave as any others do: in the format of an export.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import orjson
import polars as pl

from culturekit.builders.judging.simulated_people import (
    AskedFor,
    Shown,
    SimulatedPeople,
    answers_of,
    is_careless,
    person_draws,
)
from culturekit.core.errors import UsageError
from culturekit.core.schemas import AUDIT_SAMPLE
from culturekit.people.scheme import Scheme
from culturekit.people.tasks import subject_of

# What a person answers about a row of the key, by question; comments by their own names.
Answering: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, str | Sequence[str]]]
STRATUM = ("country", "concept")

SIMULATED = "simulated"  # how the name of every simulated annotator begins
SCHEME = "cube"


def rated_sample(
    images: pl.DataFrame, prompts: pl.DataFrame, *, count: int, rng: np.random.Generator, each: int = 1
) -> pl.DataFrame:
    """Draw prompts that name a country, as evenly as they allow, and take the first images of each model.

    `chance` is that of the prompt among those of its country and concept, or, where several images of a prompt are
    taken, that of an image.

    Raises:
        UsageError: no image was made for a prompt that names a country.
    """
    finished = images.filter(pl.col("status") == "ok").sort("model", "prompt_id", "repeat", "slot", "image_id")
    firsts = finished.group_by("model", "prompt_id", maintain_order=True).head(each)
    placed = prompts.filter(pl.col("country").is_not_null()).join(firsts.select("prompt_id").unique(), on="prompt_id")
    if placed.is_empty():
        raise UsageError(
            "nobody can say whether these images show their country", expected="images of prompts that name a country",
            found=f"{finished.height:,} images of prompts that name none",
        )  # fmt: skip
    drawn = spread(placed.select("prompt_id", *STRATUM), rng).head(count)
    chances = (
        placed.group_by(STRATUM).len().join(drawn.group_by(STRATUM).len(name="taken"), on=STRATUM, nulls_equal=True)
    )
    chosen = drawn.join(chances, on=STRATUM, nulls_equal=True)
    about = chosen.with_columns(
        chance=pl.col("taken") / pl.col("len"),
        stratum=pl.concat_str("country", pl.col("concept").fill_null("-"), separator=" "),
    ).drop("country")
    shown = firsts.select("image_id", "model", "prompt_id").join(about, on="prompt_id")
    if each > 1:
        share = pl.len().over("model", "prompt_id") / pl.col("all")
        sizes = finished.group_by("model", "prompt_id").agg(all=pl.len())
        shown = shown.join(sizes, on=["model", "prompt_id"]).with_columns(chance=pl.col("chance") * share)
    return shown.select(list(AUDIT_SAMPLE.schema)).sort(AUDIT_SAMPLE.key)


def spread(prompts: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Order prompts so that one of every country and concept comes before the second of any."""
    ordered = prompts.sort("prompt_id").with_columns(draw=rng.permutation(prompts.height))
    turns = ordered.with_columns(turn=pl.col("draw").rank("ordinal").over(STRATUM))
    return turns.sort("turn", "draw").drop("turn", "draw")


def simulated_export(
    tasks: Sequence[Mapping[str, Any]], key: pl.DataFrame, scheme: Scheme, answer: Answering, how: SimulatedPeople,
    *, seed: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Answer every slot of every task, checks and repeats too, as Label Studio exports it."""
    rows = {row["task"]: row for row in key.iter_rows(named=True)}
    exported = []
    for number, task in enumerate(sorted(tasks, key=lambda task: str(task["data"]["task"])), start=1):
        annotations = list(annotations_of(rows[task["data"]["task"]], scheme, answer, how, seed))
        exported.append({"id": number, "data": task["data"], "annotations": annotations})
    return exported


def rating_by_truth(
    scheme: Scheme, shown: Mapping[str, Shown], asked: Mapping[str, AskedFor], how: SimulatedPeople, *, seed: int
) -> Answering:
    """Answer the scheme `cube` by what each item truly shows and what each prompt asked for."""
    if scheme.name != SCHEME:
        raise UsageError("these simulated people fill in one scheme only", expected=SCHEME, found=scheme.name)

    def answer(person: str, row: Mapping[str, Any]) -> Mapping[str, str]:
        about = shown.get(row["item_id"], Shown(None, None, None))
        meant = asked.get(row["prompt_id"], AskedFor(None, row["country"], None))
        home, again = row["annotator_region"], row["kind"] != "item"
        return answers_of(person, home, row["item_id"], about, meant, how, seed=seed, again=again)

    return answer


def annotations_of(
    row: Mapping[str, Any], scheme: Scheme, answer: Answering, how: SimulatedPeople, seed: int
) -> Iterator[dict[str, Any]]:
    """Let every person of a task's slots answer it."""
    for slot in range(row["slots"]):
        person = f"{SIMULATED}-{row['part']}-{slot + 1}"
        careless = is_careless(person, how, seed=seed)
        answers = answer(person, row)
        if row["kind"] == "check" and not careless:
            answers = {name: str(value) for name, value in orjson.loads(row["expected"]).items()}
        seconds = person_draws(person, row["task"], "seconds", seed=seed).uniform(8, 40)
        result = [entry(name, value, scheme) for name, value in answers.items()]
        yield {"completed_by": person, "lead_time": round(seconds, 1), "was_cancelled": False, "result": result}


def entry(name: str, value: str | Sequence[str], scheme: Scheme) -> dict[str, Any]:
    """Write one answer: a choice, several, or a comment."""
    texts = {criterion.name for criterion in scheme.criteria if criterion.type == "text"}
    if name in texts | {criterion.comment_name for criterion in scheme.criteria}:
        return {"from_name": name, "to_name": subject_of(scheme), "type": "textarea", "value": {"text": [value]}}
    chosen = [value] if isinstance(value, str) else list(value)
    return {"from_name": name, "to_name": subject_of(scheme), "type": "choices", "value": {"choices": chosen}}
