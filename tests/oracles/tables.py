"""Tables behind scores of diversity, their images in batches, means with t intervals, and rows to compare."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from culturekit.core.roles import FLOORS, MATCHES
from culturekit.verify.chain import FinishedStage
from tests.oracles.vendi import LEVELS, Codes, coded


@dataclass(frozen=True, slots=True)
class Answer:
    """A value with its limits; NaN where they are not known."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RatedAnswer(Answer):
    """An answer by people, with its limits if it were known how these err."""

    sure: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean, its variance, and the degrees of freedom of that."""

    value: float
    variance: float
    freedom: float


def mean(numbers: Sequence[float]) -> Mean:
    """Average numbers; a single one says nothing of its variance."""
    count = len(numbers)
    average = math.fsum(numbers) / count
    if min(numbers) == max(numbers):
        average = numbers[0]
    if count == 1:
        return Mean(average, math.nan, 0.0)
    squares = math.fsum((number - average) ** 2 for number in numbers)
    return Mean(average, squares / (count - 1) / count, count - 1.0)


def together(means: Sequence[Mean]) -> Mean:
    """Average independent means alike: variance Σv/k², degrees of freedom (Σv)²/Σ(v²/f)."""
    value = mean([one.value for one in means]).value
    total = math.fsum(one.variance for one in means)
    if not total > 0:
        return Mean(value, total, math.nan)
    freedom = total**2 / math.fsum(one.variance**2 / one.freedom for one in means if one.variance > 0)
    return Mean(value, total / len(means) ** 2, freedom)


def of_these(prompts: Sequence[Sequence[float]]) -> Mean:
    """Average prompts held fixed: what scatters is the repeats of each."""
    return together([mean(repeats) for repeats in prompts])


def of_population(prompts: Sequence[Sequence[float]]) -> Mean:
    """Average prompts taken as a sample: what scatters is the prompts."""
    return mean([mean(repeats).value for repeats in prompts])


def t_quantile(freedom: float, confidence: float) -> float:
    """Give the point between whose negative and itself so much of Student's t lies."""
    return float(stats.t.ppf((1 + confidence) / 2, freedom))


def t_answer(about: Mean, confidence: float) -> Answer:
    """Put the t interval around a mean."""
    if math.isnan(about.variance):
        return Answer(about.value, math.nan, math.nan)
    if about.variance == 0:
        return Answer(about.value, about.value, about.value)
    margin = t_quantile(about.freedom, confidence) * math.sqrt(about.variance)
    return Answer(about.value, about.value - margin, about.value + margin)


TOLERANCE = 1e-8  # Relative, or absolute below 1: what is left after rounding and the t quantile worked out another way


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a table of scores; params are taken apart under `about`."""
    return [{**row, "about": json.loads(row["params"])} for row in pl.read_parquet(path).iter_rows(named=True)]


def close(stated: float | None, found: float | None, *, tolerance: float = TOLERANCE) -> bool:
    """Tell whether two numbers are the same but for rounding; null and NaN both mean that there is none."""
    one = math.nan if stated is None else stated
    other = math.nan if found is None else found
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or abs(one - other) <= tolerance * max(1.0, abs(other))


def assert_row(
    row: Mapping[str, Any], answer: Answer, n: int, said: Mapping[str, object], *, tolerance: float = TOLERANCE
) -> None:
    """Make sure that a row is what was worked out again; `said` are params that follow from the same tables."""
    pairs = {"value": answer.value, "ci_low": answer.low, "ci_high": answer.high}
    wrong: dict[str, object] = {
        name: (row[name], found) for name, found in pairs.items() if not close(row[name], found, tolerance=tolerance)
    }
    stated = {"n": row["n"], **{name: row["about"].get(name) for name in said}}
    wrong |= {name: (stated[name], found) for name, found in {"n": n, **said}.items() if not same(stated[name], found)}
    assert wrong == {}, f"not what the tables give: {wrong} of {row}"


def same(stated: object, found: object) -> bool:
    """Tell whether two params are equal, numbers but for rounding."""
    if isinstance(stated, float) and isinstance(found, float):
        return close(stated, found)
    return stated == found


@dataclass(frozen=True, slots=True)
class DiversityTables:
    """What a stage of diversity scores was made from.

    Attributes:
        mapped: one frame of nearest matches per table, labels found by a method.
        truth: the same, labels known.
        limits: the same, of floor and ceiling.
        quality: scorer -> image -> value.
        audits: what people said, or None.
        countries: of prompts that name one.
    """

    mapped: Sequence[pl.DataFrame]
    truth: Sequence[pl.DataFrame]
    limits: Sequence[pl.DataFrame]
    quality: Mapping[str, Mapping[str, float]]
    audits: pl.DataFrame | None
    countries: Mapping[str, str]


def diversity_tables(stage: FinishedStage) -> DiversityTables:
    """Read the inputs of a stage."""
    found = {role: path for role in sorted(stage.manifest.inputs) if (path := stage.places[role]) is not None}
    assert found.keys() == stage.manifest.inputs.keys()
    groups: dict[str, list[pl.DataFrame]] = {
        "mapped": [], "truth": [], "limits": [], "quality": [], "audit": [],
    }  # fmt: skip
    for role, path in found.items():
        if role.partition("-")[0] not in {"prompts", "images", "sample"}:
            groups[group_of(role)].append(pl.read_parquet(path))
    nearest = {
        name: [table.filter(pl.col("rank") == 1) for table in groups[name]] for name in ("mapped", "truth", "limits")
    }
    prompts = found.get("prompts")
    return DiversityTables(
        **nearest,
        quality=quality_of(groups["quality"]),
        audits=located(pl.concat(groups["audit"], how="diagonal"), nearest["mapped"]) if groups["audit"] else None,
        countries={} if prompts is None else countries_of(prompts),
    )


def located(audits: pl.DataFrame, mapped: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add country and continent where an answer leaves them out, and some image is mapped to what it names."""
    of_artifact, of_country = dict[str, str](), dict[str, str]()
    for table in mapped:
        for artifact, country, continent in (
            table.select("artifact_id", "country", "continent").sort(pl.all()).iter_rows()
        ):
            if artifact and country:
                of_artifact[artifact] = max(country, of_artifact.get(artifact, ""))
            if country and continent:
                of_country[country] = max(continent, of_country.get(country, ""))
    countries, continents = list[str | None](), list[str | None]()
    for artifact, country, continent in audits.select("artifact_id", "country", "continent").iter_rows():
        countries.append(country or of_artifact.get(artifact))
        continents.append(continent or of_country.get(countries[-1] or ""))
    found = {"country": countries, "continent": continents}
    return audits.with_columns(pl.Series(name, said, pl.String) for name, said in found.items())


def group_of(role: str) -> str:
    """Say what the input of a role is."""
    if role in {"ceiling", *map(MATCHES.folder, FLOORS)}:
        return "limits"
    kind = role.partition("-")[0]
    names = {"matches": "mapped", "truth": "truth", "quality": "quality"}
    return "audit" if kind in {"audit", "audits"} else names[kind]


def quality_of(tables: Sequence[pl.DataFrame]) -> dict[str, dict[str, float]]:
    """Gather the quality of images by scorer."""
    found: dict[str, dict[str, float]] = {}
    for table in tables:
        for scorer, image, value in table.select("scorer", "image_id", "value").iter_rows():
            found.setdefault(scorer, {})[image] = value
    return found


def countries_of(path: Path) -> dict[str, str]:
    """Read which country each prompt names, from a table of ours or a public file."""
    if path.suffix == ".parquet":
        table = pl.read_parquet(path).select("prompt_id", "country").drop_nulls()
        return dict(table.iter_rows())
    rows: Any = json.loads(path.read_bytes())
    return {str(row["prompt_id"]): row["country"] for row in rows if isinstance(row, dict) and row.get("country")}


Repeat: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Batch:
    """The repeat that a batch belongs to, and the numbers of its images."""

    repeat: Repeat
    images: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """Images of one model, and of one concept or country or all.

    Attributes:
        images: their ids, by prompt, repeat and slot.
        codes: their labels.
        repeats: prompt and repeat of each; empty where they have none, and are one whole.
        batches: what is scored together.
        size: places in a full batch.
    """

    images: tuple[str, ...]
    codes: Codes
    repeats: tuple[Repeat, ...]
    batches: tuple[Batch, ...]
    size: int

    def quality(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Look up the quality of each image; NaN where there is none."""
        return np.array([values.get(image, np.nan) for image in self.images])


def collection_of(rows: pl.DataFrame, *, size: int, missing: str, partial: str) -> Collection:
    """Put nearest matches in order and cut them into batches: the first `size` of a repeat, the next, and so on.

    An incomplete batch is left out, or kept with `partial="paper"`.
    """
    ordered = rows.sort("prompt_id", "repeat", "slot", "image_id", nulls_last=False)
    images: Sequence[str] = ordered["image_id"].to_list()
    codes = coded(ordered.select(LEVELS).iter_rows(), missing=missing)
    if ordered["prompt_id"].null_count() or ordered["repeat"].null_count():
        everything = Batch(("", 0), tuple(range(len(images))))
        return Collection(tuple(images), codes, (), (everything,), len(images))
    repeats = tuple(ordered.select("prompt_id", "repeat").iter_rows())
    members: dict[Any, list[int]] = {}
    for number, repeat in enumerate(repeats):
        members.setdefault(repeat, []).append(number)
    batches = tuple(cut(members.items(), size=size, partial=partial))
    return Collection(tuple(images), codes, repeats, batches, size)


def cut(members: Iterable[tuple[Repeat, list[int]]], *, size: int, partial: str) -> Iterable[Batch]:
    """Cut the images of each repeat into batches."""
    for repeat, numbers in members:
        for start in range(0, len(numbers), size):
            some = tuple(numbers[start : start + size])
            if len(some) == size or partial == "paper":
                yield Batch(repeat, some)
