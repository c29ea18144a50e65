"""Where images belong: model, prompt, object, country, region; and the levels at which they are scored."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Self, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import Typed
from culturekit.core.errors import ConfigError, Problem, UsageError, argument_error
from culturekit.core.schemas import IMAGES
from culturekit.core.spreadsheet_cells import read_sheet
from culturekit.core.yaml_source import read_yaml
from culturekit.kg.countries import UN_REGIONS, countries
from culturekit.metrics.realism.manifolds import mean_interval, share_interval
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Target
from culturekit.scores.family import Row, statistic_row, value_rows

# Schemes that put countries into groups: shipped ones, and a user's own from YAML or CSV.

Groups = Mapping[str, str]  # Country, as ISO 3166-1 alpha-2, -> group

GroupsGiven: TypeAlias = Annotated[
    Path | Groups | None, Field(description="YAML (scheme: group: [countries]) or CSV (scheme,group,country).")
]


def shipped_schemes() -> dict[str, Groups]:
    """Give the schemes that come with culturekit, for the countries it knows."""
    every = countries().values()
    named = sorted({scheme for country in every for scheme in country.groups})
    return {
        **{scheme: {each.iso: each.groups[scheme] for each in every if scheme in each.groups} for scheme in named},
        "un-m49-region": {each.iso: UN_REGIONS[each.un_region] for each in every},
        "un-m49-subregion": {each.iso: each.un_region for each in every},
    }


# CULTIVate's Global North and South (16 countries), and the UN's regions and sub-regions
SHIPPED = ("cultivate", "un-m49-region", "un-m49-subregion")


OF_PROMPTS = "of-prompts"  # The scheme by which an image is of the region that its prompt names, whatever its country


def country_groups(scheme: str, given: Path | Groups | None = None) -> Groups:
    """Find a scheme among a user's own, where a file is given, or among the shipped ones; groups stay what they are."""
    if isinstance(given, Mapping):
        return given
    if scheme == OF_PROMPTS and given is None:
        return {}
    schemes = shipped_schemes() if given is None else read_groups(given)
    if scheme not in schemes:
        raise UsageError(
            f"there is no scheme {scheme!r} of country groups",
            where="" if given is None else str(given),
            expected=" or ".join(sorted(schemes)),
            hint="A scheme of your own comes from a file: --groups of `culturekit score`." if given is None else "",
        )
    return schemes[scheme]


def read_groups(path: Path) -> dict[str, Groups]:
    """Read schemes from YAML (scheme, group, list of countries) or CSV (columns scheme, group, country)."""
    if path.suffix.lower() in {".yaml", ".yml"}:
        rows = yaml_rows(path)
    elif path.suffix.lower() == ".csv":
        columns = ("scheme", "group", "country")
        rows = [(row.line, *(row.cells[name] for name in columns)) for row in read_sheet(path, columns)]  # type: ignore[misc]
    else:
        raise UsageError("groups are read from YAML or CSV", where=str(path), expected="a .yaml, .yml or .csv file")
    schemes: dict[str, dict[str, str]] = {}
    problems = []
    for line, scheme, group, country in rows:
        known = schemes.setdefault(scheme, {})
        if len(country) != 2 or not country.isalpha() or not country.isupper():
            message = f"a country is an ISO 3166-1 alpha-2 code such as NO, found {country!r}"
            problems.append(Problem(message, str(path), line))
        elif not (scheme or "").strip() or not (group or "").strip():
            problems.append(Problem(f"the scheme or the group of {country} has no name", str(path), line))
        elif known.setdefault(country, group) != group:
            message = f"{country} is in two groups of {scheme}: {known[country]} and {group}"
            problems.append(Problem(message, str(path), line))
    if problems:
        raise ConfigError(problems)
    return dict(schemes)


def yaml_rows(path: Path) -> list[tuple[int, str, str, str]]:
    """Read line, scheme, group and country of each entry of a YAML file."""
    source = read_yaml(path)
    problems = list(source.problems)
    rows: list[tuple[int, str, str, str]] = []
    shape = "write scheme, then group, then a list of countries"
    if not isinstance(source.value, dict):
        raise ConfigError([*problems, Problem(shape, str(path), 1)])
    for scheme, groups in source.value.items():
        for group, members in (groups if isinstance(groups, dict) else {"": None}).items():
            if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
                line = source.position((scheme, group) if group else (scheme,)).line
                problems.append(Problem(shape, str(path), line, f"{scheme}.{group}".rstrip(".")))
                continue
            rows += [
                (source.position((scheme, group, index)).line, scheme, group, str(country))
                for index, country in enumerate(members)
            ]
    if problems:
        raise ConfigError(problems)
    return rows


# What images can be parted by -> the column of scores that holds it
LEVELS: Mapping[str, str] = {"region": "group", "country": "country", "concept": "concept"}

Rows: TypeAlias = tuple[list[Row], list[pl.DataFrame]]  # Scores, and the tables of the values behind them

Level = tuple[str, ...]  # What images are parted by at a level; nothing for all together


def level_of(text: str) -> Level:
    """Read a level as it is typed: `region`, or `region,concept`."""
    return tuple(part.strip() for part in text.split(","))


BY_REGION = "by=region of=region"  # What is scored by the regions that a scheme divides countries into


@dataclass(frozen=True, slots=True)
class MeanOptions:
    """How means over images are made: at which levels besides all together, and what their intervals speak about.

    Without a `target` it is `population` where every model has 20 prompts, else `these`. `model` is that of images of
    which no table says it.
    """

    by: Annotated[
        tuple[Level, ...],
        Field(
            description="Score at this level too: region, country, concept (the object), or several as region,concept; "
            "repeat it for more levels."
        ),
        Typed(read=level_of),
    ] = ()
    scheme: Annotated[
        str,
        Field(
            description="Scheme that groups countries into regions, shipped or of --groups; of-prompts: the regions "
            "that prompts name."
        ),
        Typed(needs=BY_REGION),
    ] = "un-m49-subregion"
    groups: Annotated[GroupsGiven, Typed(needs=BY_REGION)] = None
    target: Annotated[
        Target | None,
        Field(
            description="What intervals speak about: images of these prompts, or other prompts. [others, if 20 or more]"
        ),
    ] = None
    confidence: float = CONFIDENCE
    model: str = "images"
    benchmark: str = "realism"

    def __post_init__(self) -> None:
        """Refuse levels that are not known, or given twice."""
        check_levels(self.by)

    @property
    def regions(self) -> Mapping[str, str]:
        """The region of each country."""
        return country_groups(self.scheme, self.groups)

    def known(self) -> Self:
        """Give them as a manifest keeps them: the regions, not the name of their file."""
        return replace(self, groups=self.regions)


def check_levels(by: Sequence[Level]) -> None:
    """Refuse levels that are not known, or given twice."""
    for level in by:
        if not level or set(level) - set(LEVELS) or len(set(level)) < len(level):
            raise argument_error("by", f"levels of {', '.join(LEVELS)}, each once", ",".join(level))
    if len({frozenset(level) for level in by}) < len(by):
        raise argument_error("by", "levels, each given once", " ".join(",".join(level) for level in by))


def placed(
    ids: Sequence[str], images: pl.DataFrame | None, options: MeanOptions, *, what: str, left_out: Counter[str]
) -> pl.DataFrame:
    """Say where each image belongs: row, image_id, model, prompt_id, repeat, concept, country, group; sorted by id.

    Without a table every image is of one model. With one, images that are not in it are left out and counted.
    """
    schema = {"row": pl.Int64, "image_id": pl.String}
    rows = pl.DataFrame({"row": range(len(ids)), "image_id": list(ids)}, schema=schema)
    if rows["image_id"].is_duplicated().any():
        twice = rows.filter(pl.col("image_id").is_duplicated())["image_id"].sort()[0]
        raise UsageError(f"an id stands twice among the {what}", found=repr(twice))
    if images is None:
        columns = {name: pl.lit(None, IMAGES.columns[name].dtype) for name in ("prompt_id", "repeat")}
        extra = {name: pl.lit(None, pl.String) for name in OF_PROMPT}
        table = rows.with_columns(model=pl.lit(options.model), **columns, **extra)
    else:
        table = rows.join(known_columns(images), on="image_id", how="inner")
        left_out[f"{what} of no known image"] += rows.height - table.height
    if options.scheme == OF_PROMPTS:
        return table.sort("image_id")
    regions = options.regions
    region = pl.col("country").cast(pl.String).replace_strict(dict(regions), default=None, return_dtype=pl.String)
    return table.with_columns(group=region if regions else pl.lit(None, pl.String)).sort("image_id")


OF_PROMPT = ("concept", "country", "group")


def known_columns(images: pl.DataFrame) -> pl.DataFrame:
    """Keep what places an image; what its prompt says is empty where the table lacks it."""
    problems = IMAGES.problems(images.select(name for name in images.columns if name in IMAGES.columns))
    if problems:
        raise UsageError(f"not a {IMAGES.name} table: {'; '.join(problems)}")
    missing = [pl.lit(None, pl.String).alias(name) for name in OF_PROMPT if name not in images.columns]
    return images.with_columns(missing).select("image_id", "model", "prompt_id", "repeat", *OF_PROMPT)


def target_of(images: pl.DataFrame, options: MeanOptions) -> Target:
    """Choose one target for all scores of a run, so that they can be compared."""
    if options.target is not None:
        return options.target
    known, none = pl.col("prompt_id").n_unique().alias("known"), pl.col("prompt_id").null_count().alias("none")
    few = images.group_by("model").agg(known, none).filter(none=0).filter(pl.col("known") < FEWEST_PROMPTS)
    return "these" if few.height else "population"


def prompts_of(images: pl.DataFrame) -> list[str] | None:
    """Give the prompt of each image; None where some have none, and each stands for itself."""
    return None if images["prompt_id"].null_count() else images["prompt_id"].to_list()


def cells_of(images: pl.DataFrame, by: Sequence[Level]) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Give the images of each model, all together and at each level, with their place; what has no place is in none."""
    for level in ((), *by):
        columns = ["model", *(LEVELS[name] for name in level)]
        known = images.filter(pl.all_horizontal(pl.col(columns).is_not_null()))
        for cell in known.sort(*columns, "image_id").partition_by(columns, maintain_order=True):
            yield {name: cell[name][0] for name in columns}, cell


def mean_rows(
    images: pl.DataFrame,
    metric: str,
    options: MeanOptions,
    params: Mapping[str, object],
    *,
    target: Target,
    share: bool = False,
) -> Rows:
    """Average the column `value` of each model at each level, with the values; null values enter no mean."""
    scores: list[Row] = []
    values: list[pl.DataFrame] = []
    for scope, cell in cells_of(images, options.by):
        known = cell.filter(pl.col("value").is_not_null())
        scope = {**scope, "benchmark": options.benchmark, "metric": metric}
        settings = {**params, "target": target} | ({"scheme": options.scheme} if scope.get("group") else {})
        if known.height:
            average = share_interval if share else mean_interval
            answer: Interval = average(
                known["value"].to_numpy(), clusters=prompts_of(known), target=target, confidence=options.confidence
            )
            scores.append(statistic_row(**scope, answer=answer, params=settings))
            values.append(value_rows(scope, settings, cell.rename({"image_id": "item"})))
    return scores, values
