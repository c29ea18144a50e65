"""How good a cultural space is: a sample that people judge, blind to the judge, and the shares of verdicts that err."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import stdtrit

from culturekit.builders.filtering.candidate_review import reviewable, table_beside
from culturekit.builders.filtering.cspace_filter import country_rows
from culturekit.builders.space.checked import ALL, ARTIFACTS, check_lines
from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import Given, Seed, builds
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, manifest_of, roles, roles_among
from culturekit.core.package_data import shipped
from culturekit.core.schemas import REMOVED, SPACE_CELLS, SPACE_CHECK, SPACE_SAMPLE, VERDICTS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.kg.countries import country_files
from culturekit.metrics.corrected.audit_gates import LOWEST_AGREEMENT
from culturekit.metrics.corrected.judged_means import agreeing_pairs
from culturekit.metrics.statistics.chance_corrected import krippendorff_alpha
from culturekit.metrics.statistics.intervals import wilson
from culturekit.people.answers import served_answers
from culturekit.people.candidate_review import candidate_items, decisions_of_exports, review_scheme
from culturekit.people.export import ExportOptions, export_project
from culturekit.people.tasks import Quotas

ERRORS = {"keep": "wrong keeps", "remove": "wrong removes", "review": "undecided that belong"}
CELL = ["concept", "country"]
UNIT = ["concept", "qid", "country"]
VALUE = ("value", "ci_low", "ci_high")
PER_SHEET = 50
FORM = "people/cspace_check.yaml"  # that of a review without what the judge said, which would lead people


def chances(sizes: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Share out draws among cells by the root of their sizes, none with more than it has; give a unit's chance, (n,).

    So small cells are seen, and large ones well.
    """
    count = min(count, int(sizes.sum()))
    roots, full = np.sqrt(sizes), np.zeros(len(sizes), bool)
    while True:
        scale = (count - sizes[full].sum()) / max(roots[~full].sum(), 1e-12)
        more = ~full & (roots * scale >= sizes)
        if not more.any():
            return np.where(full, 1.0, roots * scale / np.maximum(sizes, 1))
        full |= more


def draw_sample(units: pl.DataFrame, counts: dict[str, int], *, rng: np.random.Generator) -> pl.DataFrame:
    """Draw so many units of each verdict, spread over concept, country, root and the judge's confidence.

    Within a concept and country all have the same chance, and are taken at even steps in the order of the rest.
    """
    found = []
    for verdict, count in counts.items():
        rows = units.filter(verdict=verdict).sort(UNIT)
        rows = rows.with_columns(lot=rng.permutation(rows.height)).sort(*CELL, "root", "confidence", "lot")
        sizes = rows.group_by(CELL, maintain_order=True).len()["len"].to_numpy().astype(np.int64)
        chance = np.repeat(chances(sizes, count), sizes)
        steps = np.floor(np.concatenate([[0.0], chance.cumsum()]) + rng.random())
        found.append(rows.with_columns(chance=pl.Series(chance, dtype=pl.Float64)).filter(np.diff(steps) > 0))
    return pl.concat(found).select(list(SPACE_SAMPLE.schema)).sort(SPACE_SAMPLE.key)


def _beside(given: Given) -> dict[str, Path | None]:
    """Find what was removed, and what the judge said, beside what was kept."""
    tables = {"removed": REMOVED, "verdicts": VERDICTS}
    return {role: given[role] or table_beside(given["kept"], table) for role, table in tables.items()}


@builds(
    "space-sample", "to-check", example="--kept kept/kept.parquet --out to-check", seeds={"sample": "seed"},
    packages=("numpy", "polars"),
    reads=lambda given: {**roles_among(_beside(given)), "scheme": shipped(FORM),
                         **country_files()},
)  # fmt: skip
def sample(
    work: Work,
    kept: Annotated[Path, Field(description="Table that `cspace filter`, `complete` or `review import` wrote.")],
    removed: Annotated[
        Path | None, Field(description="What the judge removed. [removed.parquet beside --kept, where it is there]")
    ] = None,
    verdicts: Annotated[
        Path | None, Field(description="How sure the judge was. [verdicts.parquet beside --kept, where it is there]")
    ] = None,
    *,
    keeps: Annotated[int, Field(ge=0, description="Kept artifacts to draw, each for one country.")] = 300,
    removes: Annotated[int, Field(ge=0, description="Removed ones to draw.")] = 200,
    undecided: Annotated[int, Field(ge=0, description="Ones that wait for a person to draw.")] = 100,
    people: Annotated[int, Field(ge=1, le=50, description="People who judge each.")] = 2,
    seed: Seed = 0,
) -> Outcome:
    """Draw artifacts for people to judge.

    They do not see what the judge said. The folder is a form: `annotate serve` it, or hand out what is in it.
    """
    found = _beside({"kept": kept, "removed": removed, "verdicts": verdicts})
    rows, verdict_table = reviewable(kept, found["removed"]), found["verdicts"]
    units = country_rows(rows.with_columns(root=pl.col("roots").list.first()), "root")
    sure = pl.DataFrame(schema=VERDICTS.schema) if verdict_table is None else read_table(verdict_table, VERDICTS)
    units = units.join(sure.select(*UNIT, "confidence"), on=UNIT, how="left", maintain_order="left")
    counts = {"keep": keeps, "remove": removes, "review": undecided}
    drawn = draw_sample(units, counts, rng=np.random.default_rng(seed))
    if drawn.is_empty():
        raise UsageError("there is nothing to draw", where=str(kept), expected="artifacts of known countries")
    write_table(work.out, SPACE_SAMPLE, drawn)
    cells = units.group_by(*CELL, "verdict").agg(units=pl.len().cast(pl.UInt32))
    write_table(work.out, SPACE_CELLS, cells.sort(SPACE_CELLS.key))
    shown = drawn.select(UNIT).join(rows, on=["concept", "qid"], maintain_order="left")
    scheme = review_scheme(FORM)
    items = candidate_items(list(shown.iter_rows(named=True)), scheme)
    form = ExportOptions(Quotas(people), per_sheet=PER_SHEET, checks=0, repeats=0, label_studio=False)
    done = export_project(work, items, {}, scheme, {}, form, Counter(), seed=seed)
    return Outcome({**done.counts, "space_sample": drawn.height, "units": units.height}, done.drops)


def check_rows(
    ratings: pl.DataFrame, cells: pl.DataFrame, *, confidence: float = CONFIDENCE
) -> Iterator[dict[str, Any]]:
    """Give the shares that err and the corrected counts: of all, by concept, by country and by both.

    Args:
        ratings: SPACE_SAMPLE with `people`, the share who say that it belongs, null where nobody could tell.
        cells: SPACE_CELLS: what was drawn from.
        confidence: how often limits are to hold the truth.
    """
    anywhere: dict[str, tuple[float, float, float]] = {}
    for by in ([], ["concept"], ["country"], CELL):
        for keys in cells.select(by).unique().sort(by).to_dicts() if by else [{}]:
            here, shares = ratings.filter(**keys), dict[str, tuple[float, float, float]]()
            sizes = dict(cells.filter(**keys).group_by("verdict").agg(pl.col("units").sum()).sort("verdict").rows())
            where = {**dict.fromkeys(CELL), **keys}
            for verdict, units in sizes.items():
                drawn = here.filter(verdict=verdict)
                answered = drawn.drop_nulls("people")
                if answered.height:
                    value, low, high = shares[verdict] = belonging(answered, units, confidence)
                    wrong = (1 - value, 1 - high, 1 - low) if verdict == "keep" else (value, low, high)
                    yield {**where, "measure": ERRORS[verdict], **dict(zip(VALUE, wrong, strict=True)),
                           "units": units, "drawn": drawn.height, "answered": answered.height}  # fmt: skip
            anywhere = anywhere or shares
            if not sizes.keys() <= anywhere.keys():
                continue  # nothing tells how many of these belong
            # Limits of the sum by those of its parts; of a part that nobody judged here, anything may be.
            parts = [(n, *shares.get(verdict, (anywhere[verdict][0], 0.0, 1.0))) for verdict, n in sizes.items()]
            value = sum(n * share for n, share, _, _ in parts)
            below, above = (sum((part[0] * (part[1] - part[side])) ** 2 for part in parts) ** 0.5 for side in (2, 3))
            found = dict(zip(VALUE, (value, value - below, value + above), strict=True))
            yield {**where, "measure": ARTIFACTS, **found, "units": sum(sizes.values()), "drawn": here.height,
                   "answered": here["people"].count(), "judged": sizes.get("keep", 0)}  # fmt: skip


def belonging(answered: pl.DataFrame, units: int, confidence: float) -> tuple[float, float, float]:
    """Give the share that belongs, with Wilson's limits for as many answers as the weights leave; of all no doubt."""
    people, chance = answered["people"].to_numpy(), answered["chance"].to_numpy()
    weights = 1 / chance
    value = float(np.average(people, weights=weights))
    if answered.height == units:
        return value, value, value
    unseen = weights * weights * (1 - chance)
    worth = weights.sum() ** 2 / unseen.sum() if unseen.sum() > 0 else float(answered.height)
    spread = float((unseen * (people - value) ** 2).sum()) * answered.height / max(answered.height - 1, 1)
    if spread > 0:  # cells of large weight may err more, or less, than all together
        worth = min(worth, value * (1 - value) * weights.sum() ** 2 / spread)
    quantile = float(stdtrit(max(min(worth, answered.height) - 1, 1), (1 + confidence) / 2))
    return value, *wilson(value, float(worth), quantile)


def _answers_to(given: Given) -> list[Path]:
    exports: list[Path] = given["answers"].places or served_answers(given["project"])
    if not exports:
        raise UsageError(
            "nobody has judged the sample yet", where=str(given["project"]), expected="--answers, or `annotate serve`"
        )
    return exports


@builds(
    "space-check", "checked", example="--project to-check --out checked", packages=("numpy", "polars", "scipy"),
    reads=lambda given: roles("answers", _answers_to(given)),
)  # fmt: skip
def score(
    work: Work,
    project: Annotated[Path, Field(description="Folder that `cspace check sample` wrote.")],
    answers: Annotated[
        Files, Field(description="JSON that the form saved, or of Label Studio; repeatable. [what was served]")
    ] = Files(),
    *,
    confidence: Annotated[
        float, Field(gt=0, lt=1, description="How often intervals are to hold the truth.")
    ] = CONFIDENCE,
) -> Outcome:
    """Say how often keeps and removes are wrong.

    And how many artifacts there are, with intervals: of all, by concept, country and both; and how far people agree.
    """
    sample = read_table(project / f"{SPACE_SAMPLE.name}.parquet", SPACE_SAMPLE)
    known = dict.fromkeys(((concept, qid) for concept, qid in sample.select("concept", "qid").iter_rows()), ())
    exports = _answers_to({"project": project, "answers": answers})
    decided = {(one.concept, one.qid, one.country, one.reviewer): float(one.decision == "accept")
               for one in decisions_of_exports(exports, project, known, on=None)}  # fmt: skip
    if not decided:
        raise UsageError("nobody could tell of anything that was drawn", where=str(project))
    rows = [(*key, value) for key, value in sorted(decided.items())]
    ratings = pl.DataFrame(rows, schema=[*UNIT, "annotator", "value"], orient="row")
    cells = read_table(project / f"{SPACE_CELLS.name}.parquet", SPACE_CELLS)
    means = ratings.group_by(UNIT).agg(people=pl.col("value").mean())
    answered = sample.join(means, on=UNIT, how="left", maintain_order="left")
    drawn_from = pl.lit(manifest_of(project).inputs["kept"].sha256)
    table = pl.DataFrame(list(check_rows(answered, cells, confidence=confidence)), schema=SPACE_CHECK.schema)
    table = table.with_columns(kept=drawn_from).sort(SPACE_CHECK.key)
    write_table(work.out, SPACE_CHECK, table)
    seen = set(answered.drop_nulls("people")["verdict"])
    findings = [f"nobody judged a {verdict}: how often it is wrong is not known"
                for verdict in ERRORS if verdict in cells["verdict"] and verdict not in seen]  # fmt: skip
    same, pairs = agreeing_pairs(ratings.select("annotator", "value", image_id=pl.concat_str(UNIT, separator=" ")))
    agreement: dict[str, object] = {"people": ratings["annotator"].n_unique(), "pairs of answers": pairs}
    if pairs:
        alpha = krippendorff_alpha(ratings.pivot("annotator", index=UNIT, values="value").drop(UNIT).to_numpy().T)
        agreement["pairs that agree"] = round(same / pairs, 4)
        if not np.isnan(alpha):
            agreement["Krippendorff's alpha"] = round(alpha, 4)
        if same < LOWEST_AGREEMENT * pairs:
            findings.append(f"people agree on {same / pairs:.0%} of pairs of answers alone: brief them and ask again")
    whole = [f"{name}: {found}; {of} judged" for name, where, found, of in check_lines(table) if where == ALL]
    notes = {"summary": whole, "agreement of people": agreement}
    counts = {SPACE_CHECK.name: table.height, "drawn": sample.height, "answered": means.height}
    return Outcome(counts, notes={**notes, **({"findings": findings} if findings else {})})
