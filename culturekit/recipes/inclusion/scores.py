"""Scores of what people of three regions see in triplets (Task 1) and in images (Task 2), and of what they write."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import Typed
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.schemas import SURVEY_CODES, TASK1, TASK2
from culturekit.core.stage import Work
from culturekit.core.tables import checked, read_table, write_drops
from culturekit.metrics.inclusion.region_rates import (
    CODERS,
    LEAST_KAPPA,
    item_agreement,
    kappa_of,
    representation_answers,
    survey_themes,
    task1_answers,
    task2_answers,
)
from culturekit.metrics.inclusion.task2_files import LEAST_ACCURACY, Reliable, drop_unreliable, read_task2_file
from culturekit.metrics.inclusion.triplet_distances import Features, appealing_inside, binned_choices, both_criteria
from culturekit.metrics.statistics.intervals import Interval, clustered_share, proportion_interval
from culturekit.recipes.inclusion.prompts import BENCHMARK
from culturekit.scores.answers import without_copies
from culturekit.scores.catalog import describe
from culturekit.scores.diversity import Distinct
from culturekit.scores.family import (
    Confidence,
    Row,
    Scope,
    Scored,
    scored,
    scores,
    statistic_row,
    value_rows,
    with_reason,
)
from culturekit.scores.inputs import NamedVectors, one_identity_of_all

UNRELIABLE = "annotations of unreliable annotators"
UNCHECKED = "kept unchecked, for want of photographs"
NEIGHBOURS, BINS = 5, 10
ANSWER_COLUMNS = (
    "similar_id",
    "appealing_id",
    "confidence",
    "shown",
    "object_regions",
    "background_regions",
)  # answers of both
RESPONDENTS = "people"  # what stands in the column model of a survey: no model's pictures are scored there

_PAPER = "Towards Geographic Inclusion in the Evaluation of Text-to-Image Models (Hall et al. 2024)"
_TASK1 = "task1: one row per annotation of a triplet"
_TASK2 = "task2: img_path, object, region, annotator_id, annotator_loc, annotation_result"
_INTERVAL = (
    "The interval is Wilson's for as many independent answers as these are worth: answers about one image, and those "
    "of one annotator, go together (two-way clustered variance). With few annotators it is too narrow all the same."
)
_BETWEEN_POOLS = (
    "With one annotator per location, pairs `all` compare locations with each other: this is divergence between "
    "pools, not how reliable any of them is."
)
_BY_CHANCE = "Two answers agree half the time by chance."

LOCATION_AGREEMENT = describe(
    "location_agreement", "Pairs of annotators that agree",
    "mean over items of the share of pairs of annotators who give the same answer (params.criterion); params.pairs: "
    "all, within a location or across its border",
    paper=f"{_PAPER}, figures 5c and 7a", inputs=(_TASK1, _TASK2), pitfalls=(_BETWEEN_POOLS, _BY_CHANCE, _INTERVAL),
)  # fmt: skip
LOCATION_UNANIMITY = describe(
    "location_unanimity", "Items on which all annotators agree",
    "share of items on which every pair of annotators gives the same answer", paper=f"{_PAPER}, figures 5c and 7a",
    inputs=(_TASK1, _TASK2),
    pitfalls=(
        _BETWEEN_POOLS, _BY_CHANCE, "It falls with every further annotator. The interval is Wilson's over items.",
    ),
)  # fmt: skip
CLOSER_CHOICE_RATE = describe(
    "closer_choice_rate", "Annotations that choose the closer image",
    "share of annotations whose more similar image is the closer one to the reference in the space of "
    "params.extractor, for triplets whose distance |f(ref) - f(far)|² - |f(ref) - f(close)|², over the extractor's "
    "maximum, lies in params.bin",
    paper=f"{_PAPER}, section 3.1.4 and figure 6",
    inputs=(_TASK1, "folders of vectors, one per extractor, ids the images of the triplets"),
    pitfalls=(
        "Chance is one half, and triplets at distance 0 have no closer image: they are left out.",
        "Distances of two extractors are comparable only relative to their maxima; bins that one of them does not "
        "reach are left out for all.",
        _INTERVAL,
    ),
    direction="higher",
)  # fmt: skip
APPEAL_WITH_SIMILARITY = describe(
    "appeal_with_similarity", "Annotations whose similar image is also the appealing one",
    "share of annotations that choose the same image as more similar and as more appealing",
    paper=f"{_PAPER}, figure 7b", inputs=(_TASK1,), pitfalls=("Chance is one half.", _INTERVAL),
)  # fmt: skip
APPEAL_BY_DISTANCE = describe(
    "appeal_by_distance", "Annotations whose similar image is also the appealing one, by distance",
    "share of annotations that choose the same image as more similar and as more appealing, of those whose more "
    "similar image is the closer or the further one (params.chosen) by params.extractor, in the bins of "
    "closer_choice_rate",
    paper=f"{_PAPER}, figure 12",
    inputs=(_TASK1, "folders of vectors, one per extractor, ids the images of the triplets"),
    pitfalls=("Chance is one half.", _INTERVAL),
)  # fmt: skip
APPEAL_IN_MANIFOLD = describe(
    "appeal_in_manifold", "Appealing generated images that lie among real ones",
    "of annotations of combo A triplets with exactly one image inside the manifold of real images, the share whose "
    "more appealing image is the one inside; inside: strictly closer to a real image than its k-th real neighbour",
    paper=f"{_PAPER}, section 3.2.2 and figure 7c",
    inputs=(_TASK1, "folders of vectors of real and of generated images"),
    pitfalls=(
        "Chance is one half. The real images define what is looked for: here appeal means resemblance to them.",
        "It belongs to params.k, the extractor and the real images; a larger k makes everything lie inside.",
        _INTERVAL,
    ),
)  # fmt: skip
IN_REGION_RATE = describe(
    "in_region_rate", "Annotations that see an image's own region",
    "share of all annotations of a side (params.side: annotators in the image's region, or out of it) that name the "
    "image's own region for its object or background (params.target)",
    paper=f"{_PAPER}, section 3.1.1 and figure 3a", inputs=(_TASK2,),
    pitfalls=(
        "A high rate is no praise: out-of-region annotators recognise stereotypes more readily than everyday images.",
        "Annotations that see no object at all stay in the denominator.",
        "Annotators who see the object in fewer than params.least of the photographs of an object and region are left "
        "out of that cell; those without photographs there cannot be checked and stay.",
        _INTERVAL,
    ),
)  # fmt: skip
OBJECT_SEEN = describe(
    "object_seen", "Annotations that see the object of the prompt",
    "share of annotations by people of one location (params.pool) that see the object",
    paper=f"{_PAPER}, section 3.3.1 and figure 8a", inputs=(_TASK2,),
    pitfalls=(
        "What counts as a storefront or a cooking pot differs between places; read the pools beside each other.",
        "Photographs are what annotators are filtered by, so their own rate lies above params.least by construction.",
        _INTERVAL,
    ),
    direction="higher",
)  # fmt: skip
LOCATION_KAPPA = describe(
    "location_kappa", "Fleiss' kappa of annotators",
    "(observed - expected pairwise agreement) / (1 - expected), over items with two answers or more",
    paper=f"{_PAPER}, the design of Task 2; Fleiss 1971", inputs=(_TASK2,),
    pitfalls=(
        _BETWEEN_POOLS,
        "Where nearly all answers are yes, kappa is low however well people agree: read it beside location_agreement.",
    ),
    low=-1.0, unit="coefficient",
)  # fmt: skip
THEME_KAPPA = describe(
    "theme_kappa", "Agreement of coders on a theme", "Fleiss' kappa of the coders over all responses",
    paper=f"{_PAPER}, section 2.3 and table 3",
    inputs=("survey_codes: response_id, location, topic, coder, code, present",),
    pitfalls=("A theme that no response has, or all have, has no kappa.",), low=-1.0, direction="higher",
    unit="coefficient",
)  # fmt: skip
THEME_SHARE = describe(
    "theme_share", "Responses that mention a theme",
    "share of responses to a survey, by location of the respondent, in which most coders see params.code",
    paper=f"{_PAPER}, section 2.3 and figure 9", inputs=THEME_KAPPA.inputs,
    pitfalls=(
        "Codes on which coders agree with a Fleiss' kappa below params.least are left out and counted.",
        "Surveys have few respondents; the interval is Wilson's over responses, and it is wide.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """Whose answers count, and what scores of either task say of themselves."""

    least: Annotated[
        float,
        Field(ge=0, le=1, description="Share of photographs in which an annotator must see the object; 0 keeps all."),
    ] = LEAST_ACCURACY
    confidence: Confidence = CONFIDENCE
    benchmark: str = BENCHMARK
    distinct: Distinct = False


DEFAULTS = TaskOptions()


@dataclass(frozen=True, slots=True)
class RealFeatures:
    """The manifold that appeal is held against: features (n_real, dim) by an extractor, and how many neighbours."""

    extractor: str
    real: NDArray[np.floating]
    k: int = NEIGHBOURS


@dataclass(frozen=True, slots=True)
class ExtractorVectors:
    """A folder of vectors by one extractor; a role names it where there may be several, also several of its folders."""

    name: str
    vectors: NamedVectors
    alone: bool = False
    part: str = ""

    def files(self, role: str) -> dict[str, Path]:
        """Name vectors and ids."""
        named = f"{role}-{self.name}" + (f"-{self.part}" if self.part else "")
        return self.vectors.files(role if self.alone else named)


def _name_and_value(text: str, option: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not (name and mark and value):
        raise UsageError(f"{option} is a name, an equals sign and a value", expected="NAME=VALUE", found=repr(text))
    return name, value


def _typed_vectors(text: str, option: str) -> ExtractorVectors:
    name, folder = _name_and_value(text, option)
    return ExtractorVectors(name, NamedVectors(Path(folder)), alone=option == "--real")


def _numbered(features: Sequence[ExtractorVectors], **_: object) -> dict[str, tuple[ExtractorVectors, ...]]:
    """Number further folders of an extractor, whose files are inputs, too."""
    seen: Counter[str] = Counter()
    found = []
    for one in features:
        found.append(replace(one, part=str(seen[one.name])) if seen[one.name] and not one.part else one)
        seen[one.name] += 1
    return {"features": tuple(found)}


@scores(
    "task1", APPEAL_BY_DISTANCE, APPEAL_IN_MANIFOLD, APPEAL_WITH_SIMILARITY, CLOSER_CHOICE_RATE, LOCATION_AGREEMENT,
    LOCATION_UNANIMITY, version=4,
    example="--task1 annotations/task1.parquet --out scores",
    settle=_numbered,
    amend=lambda stage, given: replace(
        stage, options={**stage.options, "real": None if given["real"] is None else given["real"].name}
    ),
)  # fmt: skip
def task1(
    task1: Annotated[Path, Field(description="Table of what people said of triplets.")],
    features: Annotated[
        tuple[ExtractorVectors, ...],
        Field(description="EXTRACTOR=FOLDER: vectors of the images in the triplets; repeat it to compare extractors."),
        Typed(read=partial(_typed_vectors, option="--features")),
    ] = (),
    real: Annotated[
        ExtractorVectors | None,
        Field(description="EXTRACTOR=FOLDER: vectors of all real images, the manifold of appeal."),
        Typed(read=partial(_typed_vectors, option="--real")),
    ] = None,
    *,
    k: Annotated[
        int, Field(ge=1, description="Neighbours that the manifold's balls reach to."), Typed(needs="real")
    ] = NEIGHBOURS,
    bins: Annotated[int, Field(ge=1, description="Bins of triplet distances."), Typed(needs="features")] = BINS,
    options: TaskOptions = DEFAULTS,
) -> Scored:
    """Score agreement on similarity and appeal.

    And how they follow distances and the manifold of real images.
    """
    folders: dict[str, list[Path]] = {}
    extractors: dict[str, dict[str, ArrayLike]] = {}
    for each in (*features, *([] if real is None else [real])):
        folders.setdefault(each.name, []).append(each.vectors.folder)
    for of_one in folders.values():
        one_identity_of_all(of_one)
    for each in features:
        vectors, ids = each.vectors.vectors()
        extractors.setdefault(each.name, {}).update(zip(ids, vectors, strict=True))
    manifold = None if real is None else RealFeatures(real.name, real.vectors.vectors()[0], k)
    return score_task1(read_table(task1, TASK1), extractors, manifold, bins=bins, options=options)


def score_task1(
    annotations: pl.DataFrame, extractors: Mapping[str, Features] | None = None, real: RealFeatures | None = None,
    *, bins: int = BINS, options: TaskOptions = DEFAULTS,
) -> Scored:  # fmt: skip
    """Score agreement, co-occurrence, and, with features, closer choices and appeal within the manifold.

    All stand by the source of the images compared (column model), region (column group) and location of the annotators
    (params.pool); the extractor of the real images is among the extractors, which give image id -> vector.
    """
    checked(annotations, TASK1)
    reliable, left_out = _reliable_answers(annotations, options)
    table = reliable.annotations
    pooled, shares_of = table.with_columns(pool="annotator_loc"), partial(_share_rows, options=options)
    extractors, appeal = extractors or {}, both_criteria(pooled).with_columns(yes="same")
    shares = [*shares_of("appeal_with_similarity", appeal, ("region",), ("pool",))]
    if extractors:
        choices = binned_choices(pooled, extractors, bins=bins).with_columns(yes="closer", source=pl.lit("all"))
        keys = ("extractor", "pool", "bin", "low", "high")
        for cell in ((), ("region",)):
            shares += shares_of("closer_choice_rate", choices, cell, keys)
        side = pl.when("closer").then(pl.lit("closer")).otherwise(pl.lit("further"))
        appealing = both_criteria(choices).with_columns(yes="same", chosen=side)
        shares += shares_of("appeal_by_distance", appealing, (), (*keys, "chosen"))
    if real is not None:
        if real.extractor not in extractors:
            raise UsageError(
                "the manifold needs the features of generated images, too",
                expected=f"an extractor {real.extractor!r}", found=", ".join(extractors) or "none",
            )  # fmt: skip
        chosen = appealing_inside(pooled, real.real, extractors[real.extractor], k=real.k)
        inside = chosen.with_columns(yes="inside", extractor=pl.lit(real.extractor), k=pl.lit(real.k))
        left_out["appeal outside combo A, or with not exactly one image inside"] += pooled.height - inside.height
        for cell in (("region",), ("object",)):
            shares += shares_of("appeal_in_manifold", inside, cell, ("pool", "extractor", "k"))
    rows = [row for row, _ in shares]
    # Figure 5c: of each kind of reference by itself; references of a generator are never pooled with another's.
    for by in (("source", "region"), ("source", "region", "annotator_loc"), ("source", "region", "reference_source")):
        items = item_agreement(task1_answers(table, by=by), by=by, item="triplet_id", question="criterion")
        rows += _agreement_rows(items, by, options)
    return scored(rows, [below for _, below in shares], left_out=left_out)


def _reliable_answers(annotations: pl.DataFrame, options: TaskOptions) -> tuple[Reliable, Counter[str]]:
    """Leave out annotations of copies and of unreliable annotators, and count them; who cannot be checked stays."""
    left_out: Counter[str] = Counter()
    if not options.distinct:
        item = [name for name in ("triplet_id", "source", "img_path") if name in annotations.columns]
        columns = [name for name in ANSWER_COLUMNS if name in annotations.columns]
        annotations = without_copies(annotations, "annotator_id", item, columns, left_out)
    reliable = drop_unreliable(annotations, least=options.least)
    if not reliable.annotations.height:
        raise NothingScored(
            "no annotation is left to score", found=f"{annotations.height} before unreliable ones were left out"
        ).counting({UNRELIABLE: annotations.height})
    left_out[UNRELIABLE] = annotations.height - reliable.annotations.height
    if options.least > 0:
        left_out[UNCHECKED] = reliable.unchecked
    return reliable, left_out


def _share_rows(
    metric: str, answers: pl.DataFrame, cell: Sequence[str], named: Sequence[str], *, options: TaskOptions
) -> Iterator[tuple[Row, pl.DataFrame]]:
    """Compute the share of answers that are `yes` in each cell, with its values.

    A cell is of `region`, `object`, both or none, and images without a region are in no cell of regions; what is
    `named` parts answers further and stands in params.
    """
    keys, image = ["source", *cell, *named], _item_of(answers)
    known = answers.filter(pl.col("region").is_not_null()) if "region" in cell else answers
    for part in known.sort(*keys, image, "annotator_id").partition_by(keys, maintain_order=True):
        head = part.row(0, named=True)
        values = part["yes"].cast(pl.Float64).to_numpy()
        clusters = {"image": part[image].to_list(), "annotator": part["annotator_id"].to_list()}
        answer = clustered_share(values, clusters, confidence=options.confidence)
        params = {**{name: head[name] for name in named}, "by": list(cell), "least": options.least}
        params = with_reason(params, answer, "one image and one annotator")
        scope = {
            "metric": metric, "model": head["source"], "benchmark": options.benchmark,
            "concept": head["object"] if "object" in cell else None,
            "group": head["region"] if "region" in cell else None,
        }  # fmt: skip
        items = [f"{one} by {who}" for one, who in zip(clusters["image"], clusters["annotator"], strict=True)]
        below = value_rows(scope, params, pl.DataFrame({"item": items, "value": values}))
        yield statistic_row(**scope, answer=answer, params=params), below


def _item_of(table: pl.DataFrame) -> str:
    return next(name for name in ("triplet_id", "img_path") if name in table.columns)


def _agreement_rows(items: pl.DataFrame, by: Sequence[str], options: TaskOptions) -> Iterator[Row]:
    """Compute pairwise and unanimous agreement of each cell from the shares of its items."""
    keys, item = [*by, "criterion", "pairs"], _item_of(items)
    for part in items.sort(*keys, item, nulls_last=True).partition_by(keys, maintain_order=True):
        head = part.row(0, named=True)
        params = {"criterion": head["criterion"], "pairs": head["pairs"], "least": options.least}
        if "annotator_loc" in by:
            params["pool"] = head["annotator_loc"]
        if "reference_source" in by:
            params["reference_source"] = head["reference_source"]
        shares = part["share"].to_numpy()
        pairwise = clustered_share(shares, {"item": part[item].to_list()}, confidence=options.confidence)
        unanimous = proportion_interval(int((shares == 1).sum()), len(shares), confidence=options.confidence)
        for metric, answer in (("location_agreement", pairwise), ("location_unanimity", unanimous)):
            yield statistic_row(
                metric, model=head["source"], benchmark=options.benchmark, answer=answer,
                params=with_reason(params, answer, "one item"), group=head["region"],
            )  # fmt: skip


@scores(
    "task2", IN_REGION_RATE, LOCATION_AGREEMENT, LOCATION_KAPPA, LOCATION_UNANIMITY, OBJECT_SEEN, version=3,
    example="--task2 task2_geode.csv --out scores",
    amend=lambda stage, given: replace(stage, options={**stage.options, "sources": dict(given["sources"])}),
)  # fmt: skip
def task2(
    work: Work,
    task2: Annotated[
        Path, Field(description="What people saw in single images: CSV in the public layout, or our table.")
    ],
    *,
    sources: Annotated[
        tuple[tuple[str, str], ...],
        Field(description="MODEL=PATTERN of img_path, such as ldm=ldm21/*; what fits none is real. Repeatable."),
        Typed("source", partial(_name_and_value, option="--source")),
    ] = (),
    options: TaskOptions = DEFAULTS,
) -> Scored:
    """Score how often people see a region in its images.

    People in and out of it; consistency, and agreement.
    """
    if task2.suffix == ".parquet":
        if sources:
            raise UsageError("a table of Task 2 says itself who made an image", where=str(task2))
        return score_task2(read_table(task2, TASK2), options=options)
    file = read_task2_file(task2, sources=dict(sources))
    reasons = write_drops(work.out, file.drops) if file.drops.height else {}
    if file.drops.height and file.annotations.is_empty():
        first = file.drops.row(0, named=True)
        raise UsageError(
            "no row can be read", where=f"{task2}, {first['key']}", expected="annotations in the public layout",
            found=f"{first['reason']}: {first['detail']}",
        )  # fmt: skip
    answer = score_task2(file.annotations, options=options)
    return replace(answer, left_out={**reasons, **answer.left_out})


def score_task2(annotations: pl.DataFrame, *, options: TaskOptions = DEFAULTS) -> Scored:
    """Score in-region rates, object consistency and agreement, by who made the images, region and object.

    Regions stand in the column group, objects in the column concept, and who made the images (`real` for photographs)
    in the column model.
    """
    reliable, left_out = _reliable_answers(checked(annotations, TASK2), options)
    table = reliable.annotations
    left_out["annotators left out of an object and region"] = reliable.cells.filter(~pl.col("kept")).height
    left_out["annotations for rates without a region of their own"] = table["region"].null_count()
    shares: list[tuple[Row, pl.DataFrame]] = []
    for cell in ((), ("region",), ("object",), ("region", "object")):
        named = representation_answers(table, by=("source", *cell)).with_columns(yes="names")
        shares += _share_rows("in_region_rate", named, cell, ("side", "target"), options=options)
        seen = table.with_columns(yes="shown", pool="annotator_loc")
        shares += _share_rows("object_seen", seen, cell, ("pool",), options=options)
    rows = [row for row, _ in shares]
    for by in (("source", "region"), ("source", "region", "annotator_loc")):
        answers = task2_answers(table, by=by)
        items = item_agreement(answers, by=by, item="img_path", question="question").rename({"question": "criterion"})
        rows += [*_agreement_rows(items, by, options), *_kappa_rows(answers, items, by, options)]
    return scored(rows, [below for _, below in shares], left_out=left_out)


def _kappa_rows(answers: pl.DataFrame, items: pl.DataFrame, by: tuple[str, ...], options: TaskOptions) -> Iterator[Row]:
    """Compute Fleiss' kappa where everybody, or one pool, is compared within itself."""
    keys = [*by, "criterion", "pairs"]
    inside = items.filter(pl.col("pairs") != "across")
    for cell in inside.group_by(keys).agg(n=pl.len()).sort(keys, nulls_last=True).iter_rows(named=True):
        kappa = kappa_of(answers, {**cell, "question": cell["criterion"]}, by)
        if kappa is None:
            continue
        params: dict[str, Any] = {"criterion": cell["criterion"], "pairs": cell["pairs"], "least": options.least,
                                  "no_interval": "kappa of a cell is given as it is"}  # fmt: skip
        if "annotator_loc" in by:
            params["pool"] = cell["annotator_loc"]
        answer = Interval(kappa, math.nan, math.nan, cell["n"], "these")
        yield statistic_row("location_kappa", model=cell["source"], benchmark=options.benchmark, answer=answer,
                            params=params, group=cell["region"])  # fmt: skip


@scores("survey", THEME_KAPPA, THEME_SHARE, version=2, example="--codes survey_codes.parquet --out scores")
def survey(
    codes: Annotated[Path, Field(description="Table of how coders read the responses.")], *,
    least: Annotated[float, Field(ge=-1, le=1, description="Fleiss' kappa that a code must reach.")] = LEAST_KAPPA,
    coders: Annotated[int, Field(ge=3, description="How many coders read each response; an odd number.")] = CODERS,
    confidence: Confidence = CONFIDENCE, benchmark: str = BENCHMARK,
) -> Scored:  # fmt: skip
    """Score the themes of a survey.

    Coders' agreement, and who mentions what.
    """
    table = read_table(codes, SURVEY_CODES)
    return score_survey(table, least=least, coders=coders, confidence=confidence, benchmark=benchmark)


def score_survey(
    codes: pl.DataFrame, *, least: float = LEAST_KAPPA, coders: int = CODERS, confidence: float = CONFIDENCE,
    benchmark: str = BENCHMARK,
) -> Scored:  # fmt: skip
    """Score the kappa of every code, and for those kept the share of responses by topic and location."""
    themes = survey_themes(checked(codes, SURVEY_CODES), least=least, coders=coders)
    responses = codes["response_id"].n_unique()
    rows, values = [], []
    for code in themes.kappas.drop_nulls("kappa").iter_rows(named=True):
        params = {
            "code": code["code"], "kept": code["kept"], "coders": coders,
            "no_interval": "kappa decides which codes are kept, and is given as it is",
        }  # fmt: skip
        answer = Interval(code["kappa"], math.nan, math.nan, responses, "these")
        rows.append(statistic_row("theme_kappa", model=RESPONDENTS, benchmark=benchmark, answer=answer, params=params))
    votes = themes.votes.sort("topic", "location", "code", "response_id")
    for cell in votes.partition_by("topic", "location", "code", maintain_order=True):
        head = cell.row(0, named=True)
        about = {"topic": head["topic"], "code": head["code"], "least": least}
        answer = proportion_interval(int(cell["present"].sum()), cell.height, confidence=confidence)
        scope = asdict(Scope("theme_share", RESPONDENTS, benchmark, head["location"]))
        rows.append(statistic_row(**scope, answer=answer, params=about))
        values.append(value_rows(scope, about, cell.select(item="response_id", value="present")))
    unknown = themes.kappas["kappa"].null_count()
    left_out = {
        "codes that coders do not agree on": themes.kappas.filter(~pl.col("kept")).height - unknown,
        "codes of which coders say the same of every response, so that kappa is not known": unknown,
    }
    return scored(rows, values, left_out=left_out)
