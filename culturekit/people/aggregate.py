"""Answers to tables: ratings and shares by model, concept and country, agreement, and metrics held against people."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import polars as pl
from markupsafe import Markup
from pydantic import Field

from culturekit.core.atomic import write_atomically
from culturekit.core.choices import CONFIDENCE, RESAMPLES
from culturekit.core.declared import Seed, Typed
from culturekit.core.digests import canonical_json, source_hash
from culturekit.core.errors import UsageError
from culturekit.core.schemas import (
    ANNOTATION_CHECKS,
    ANNOTATIONS,
    CHOICE_TABLE,
    QUARANTINE,
    RATERS,
    RATING_TABLE,
    SCORES,
    VALUES,
)
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import write_table
from culturekit.metrics.linguistic.human_tables import likert_table, relevance_rates
from culturekit.people.export import page_template, template_text
from culturekit.people.importing import known_flags
from culturekit.scores.agreement import AgreementOptions, score_agreement
from culturekit.scores.answers import COPIED, FLAGS, PoolsBy, copies_flagged, pool_of, raters_of, who_counted
from culturekit.scores.family import Confidence
from culturekit.scores.meta import MetaOptions, score_meta

# Mean ratings as a page to look at: models by concept down, countries across, low cells shaded.

ALL = "all concepts"


def rating_page(ratings: pl.DataFrame, choices: pl.DataFrame, *, scheme: str, notes: Sequence[str]) -> str:
    """Write the page; it runs nothing and loads nothing."""
    style = template_text("ratings.css")
    policy = f"default-src 'none'; style-src '{source_hash(style)}'; base-uri 'none'; form-action 'none'"
    page = page_template("ratings.html").render(
        scheme=scheme, grids=grids(ratings, choices), notes=notes, policy=policy, style=Markup(style)
    )
    return page + "\n"


def grids(ratings: pl.DataFrame, choices: pl.DataFrame) -> list[dict[str, Any]]:
    """Lay out every criterion; where each country has its own people, all countries share one table."""
    found = []
    for part in ratings.partition_by("scheme", "criterion", maintain_order=True):
        found += [grid(one, f"{part['criterion'][0]}{who}") for one, who in by_people(part)]
    for part in choices.partition_by("scheme", "criterion", "choice", maintain_order=True):
        name = f"{part['criterion'][0]}: share of {part['choice'][0]}"
        found += [grid(one, f"{name}{who}") for one, who in by_people(part)]
    return found


def by_people(part: pl.DataFrame) -> list[tuple[pl.DataFrame, str]]:
    """Part a table so that each of its cells is of one pool: people at home, and then each pool apart."""
    home = pl.col("country").eq_missing(pl.col("pool"))
    at_home, others = part.filter(home), part.filter(~home)
    pools = others.sort("pool").partition_by("pool", maintain_order=True)
    return [
        *([(at_home, ", by people of each country")] if at_home.height else []),
        *((one, f", by people of the pool {one['pool'][0]}") for one in pools),
    ]


def grid(part: pl.DataFrame, title: str) -> dict[str, Any]:
    """Lay out one table: its columns are countries, its rows a concept, a model and cells of means or of shares."""
    countries = sorted({text or "–" for text in part["country"]})
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in part.iter_rows(named=True):
        if "rate" in row:
            text, mark = f"{row['rate']:.0%}".replace("%", "\N{NO-BREAK SPACE}%"), ""
        else:
            spread = "" if row["sd"] is None else f" ± {row['sd']:.1f}"
            text, mark = f"{row['mean']:.1f}{spread}", str(row["mark"] or "").replace(" ", "-")
        detail = f"{row['items']} items, {row['answers']} answers"
        cells[row["concept"], row["model"], row["country"] or "–"] = {"text": text, "mark": mark, "detail": detail}
    heads = sorted(
        {(concept, model) for concept, model, _ in cells}, key=lambda head: (head[0] is None, head[0], head[1])
    )
    rows = [
        (concept or ALL, model, [cells.get((concept, model, country)) for country in countries])
        for concept, model in heads
    ]
    return {"title": title, "countries": countries, "rows": rows}


# What was set aside before answers are put together, counted: it thins out the tables.


SIMULATED_CAVEAT = "The ratings are by simulated people, who know what the simulated models drew."


@dataclass(frozen=True, slots=True)
class SetAside:
    """What is in no average; an annotation in quarantine for several reasons counts under the first."""

    quarantine: Mapping[str, int]
    notes: Mapping[str, object]
    raters: pl.DataFrame


def set_aside(
    quarantine: Sequence[pl.DataFrame], checks: Sequence[pl.DataFrame], answers: pl.DataFrame, keep: Sequence[str] = ()
) -> SetAside:
    """Count what importing set aside, and who answered; flags to `keep` do no harm."""
    reasons: Counter[str] = Counter()
    for table in quarantine:
        firsts = table.unique(["file", "task_number", "annotation_number"], keep="first", maintain_order=True)
        reasons.update(f"in quarantine: {reason}" for reason in firsts["reason"])
    raters = raters_of(
        answers, pl.concat([pl.DataFrame(schema=ANNOTATION_CHECKS.schema), *checks]),
        pl.concat([pl.DataFrame(schema=QUARANTINE.schema), *quarantine]), keep=keep,
    )  # fmt: skip
    asked = {f"{kind}s": counted(checks, kind) for kind in ("check", "repeat")} if quarantine or checks else {}
    notes: dict[str, object] = {**asked, **({"people": sentence} if (sentence := who_counted(raters)) else {})}
    if asked and answers.height and answers["annotator"].str.starts_with("simulated-").all():
        notes["caveat"] = SIMULATED_CAVEAT
    return SetAside(reasons, notes, raters)


def counted(checks: Sequence[pl.DataFrame], kind: str) -> dict[str, int]:
    """Count the tasks of a kind that were answered, and those whose answers did not hold."""
    rows = [row for table in checks for row in table.filter(kind=kind).iter_rows(named=True)]
    tasks = {(row["task"], row["annotator"]) for row in rows}
    failed = {(row["task"], row["annotator"]) for row in rows if row["held"] is False}
    return {"answered": len(tasks), "failed": len(failed)}


BELOW = (2, 3)  # a cell with a mean below one of these is marked with the first of them
CELL = ("concept", "country")


@dataclass(frozen=True, slots=True)
class AggregateOptions:
    """How answers are put together."""

    by: Annotated[
        PoolsBy, Field(description="What makes a pool of annotators; pools are never merged."), Typed("pools")
    ] = "region"
    keep: Annotated[
        tuple[str, ...],
        Field(description=f"Count answers flagged {', '.join(FLAGS[:-1])} or {FLAGS[-1]}; repeatable."),
        Typed(gather=known_flags),
    ] = ()
    confidence: Confidence = CONFIDENCE
    resamples: Annotated[int, Field(ge=99, description="Resamples of each bootstrap.")] = RESAMPLES
    seed: Seed = 0
    only: Annotated[
        tuple[str, ...],
        Field(description="A pool whose answers count; others are left out and counted. Repeatable."),
        Typed(gather=lambda names: tuple(sorted(set(names))), after="pools"),
    ] = ()


def aggregate_answers(
    work: Work, annotations: pl.DataFrame, items: pl.DataFrame, values: pl.DataFrame | None, options: AggregateOptions,
    aside: SetAside,
) -> Outcome:  # fmt: skip
    """Write the tables of what people said; `values` are metrics of the same items."""
    kept, drops = careful(annotations, options.keep)
    kept, elsewhere = of_pools(kept, options)
    if kept.is_empty():
        raise UsageError(
            "no answer is left", expected="answers without flags, or --keep", found=f"{annotations.height} answers"
        )
    answers, strange = named(kept.with_columns(annotator_region=pool_of(options.by)), items)
    if answers.is_empty():
        raise UsageError(
            "no answer is about a known item", expected=f"answers about items such as {items['item_id'].min()!r}",
            found=f"{strange:,} about others, such as {kept['item_id'].min()!r}", hint="Give the items of this form.",
        )  # fmt: skip
    common = asked_of_all(kept)
    ratings, choices = (make(answers.join(common, on=ASKED, how="semi")) for make in (rating_table, choice_table))
    few = kept.join(common, on=ASKED, how="anti").height
    whole = kept.join(common, on=ASKED, how="semi", maintain_order="left")
    how: dict[str, Any] = {name: getattr(options, name) for name in ("by", "confidence", "resamples", "seed")}
    agreement = score_agreement(whole, options=AgreementOptions(**how))
    correlated = None if values is None else score_meta(values, annotations=whole, options=MetaOptions(**how))
    drops |= {"of other pools": elsewhere, "answers about unknown items": strange, FEW: few}
    drops |= {**agreement.left_out, **aside.quarantine}
    drops = {reason: count for reason, count in sorted(drops.items()) if count}
    scores = agreement.scores if correlated is None else pl.concat([agreement.scores, correlated.scores])
    tables = [(RATING_TABLE, ratings), (CHOICE_TABLE, choices), (ANNOTATIONS, kept), (SCORES, scores),
              (VALUES, agreement.values), (RATERS, aside.raters)]  # fmt: skip
    for table, frame in tables:
        write_table(work.out, table, frame)
    schemes = ", ".join(sorted(annotations["scheme"].unique()))
    notes = [f"{reason}: {count:,}" for reason, count in drops.items()]
    write_atomically(work.out / "ratings.html", rating_page(ratings, choices, scheme=schemes, notes=notes).encode())
    return Outcome({table.name: frame.height for table, frame in tables}, drops, aside.notes)


ASKED = ("scheme", "criterion")
FEW = "ticks of what only some items list, which have no table"


def asked_of_all(answers: pl.DataFrame) -> pl.DataFrame:
    """Give the criteria that make a table: of lists to tick, which may differ by item, what most of its items list.

    Each phrase that one prompt lists would be a scale of its own, held against each metric: hundreds of thousands of
    rows of which none says anything.
    """
    asked = answers.with_columns(question=pl.col("criterion").str.split("/").list.first())
    items = asked.group_by("scheme", "question").agg(all=pl.col("item_id").n_unique())
    each = asked.group_by(*ASKED, "question").agg(pl.col("item_id").n_unique()).join(items, on=["scheme", "question"])
    return each.filter(2 * pl.col("item_id") > pl.col("all")).select(ASKED)


def of_pools(annotations: pl.DataFrame, options: AggregateOptions) -> tuple[pl.DataFrame, int]:
    """Leave out the answers of pools that do not count, and count them; a pool that nobody is in is a mistake."""
    if not options.only:
        return annotations, 0
    found = set(annotations.select(pool_of(options.by)).to_series())
    absent = sorted(set(options.only) - found)
    if absent:
        raise UsageError("nobody is in a pool", found=", ".join(absent), expected=", ".join(sorted(found)))
    kept = annotations.filter(pool_of(options.by).is_in(options.only))
    return kept, annotations.height - kept.height


def values_of_quality(quality: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Turn scores of single images into values, with the model and the place of each."""
    known: Mapping[str, Mapping[str, str | None]] = {row["item_id"]: row for row in items.iter_rows(named=True)}
    rows = [
        {
            **{name: known[image][name] for name in ("concept", "country", "group", "prompt_id")},
            "model": known[image]["model"] or "(no model)",
            "metric": "quality",
            "benchmark": "annotations",
            "params": canonical_json({"scorer": scorer}).decode(),
            "item": image,
            "value": value,
        }
        for image, scorer, value in quality.select("image_id", "scorer", "value").iter_rows()
        if image in known
    ]
    return pl.DataFrame(rows, schema=VALUES.schema).sort(VALUES.key)


def careful(annotations: pl.DataFrame, keep: Sequence[str]) -> tuple[pl.DataFrame, dict[str, int]]:
    """Leave out flagged answers; count those that have each flag, those with several under the first.

    A flag to `keep` does no harm and is taken away: the answer counts from here on.
    """
    rest, counts = annotations, {}
    for flag in (flag for flag in FLAGS if flag not in keep):
        flagged = pl.col("flags").list.contains(flag)
        counts[f"flagged {flag}"] = rest.filter(flagged).height
        rest = rest.filter(~flagged)
    harmless = pl.col("flags").list.set_difference(pl.lit(list(FLAGS), pl.List(pl.String)))
    if COPIED in keep:
        rest = copies_flagged(rest, distinct=True)
    return (rest.with_columns(flags=harmless) if keep else rest), counts


def named(annotations: pl.DataFrame, items: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Say of each answer which model, concept and country it is about; count those of unknown items."""
    known = annotations.join(items, on="item_id", how="inner")
    return known.with_columns(pl.col("model").fill_null("(no model)")), annotations.height - known.height


def rating_table(answers: pl.DataFrame) -> pl.DataFrame:
    """Average ratings of each cell, and of each model and country over all concepts.

    An item's score is the mean of its annotators in a pool; mean and deviation are over the items of the cell.
    """
    numbers = answers.filter(pl.col("value").is_not_null())
    table = by_cell(numbers, likert_table)
    if table.is_empty():
        return pl.DataFrame(schema=RATING_TABLE.schema)
    mark = pl.coalesce(*(pl.when(pl.col("mean") < level).then(pl.lit(f"below {level}")) for level in BELOW))
    scales = ~pl.col("criterion").str.contains("/", literal=True)
    marked = table.with_columns(mark=pl.when(scales).then(mark).cast(pl.String))
    return marked.select(list(RATING_TABLE.schema)).sort(RATING_TABLE.key)


def choice_table(answers: pl.DataFrame) -> pl.DataFrame:
    """Give the share of each choice in each cell: of an item's annotators first, then over items."""
    words_only = pl.col("value").is_null().all().over("scheme", "criterion")
    table = by_cell(answers.filter(words_only, pl.col("choice").is_not_null()), relevance_rates)
    if table.is_empty():
        return pl.DataFrame(schema=CHOICE_TABLE.schema)
    return table.select(list(CHOICE_TABLE.schema)).sort(CHOICE_TABLE.key)


def by_cell(answers: pl.DataFrame, table: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Make the table of every concept and country, and of every country with all its concepts together."""
    if answers.is_empty():
        return pl.DataFrame()
    ungrouped = answers.drop("group")
    return pl.concat(
        [
            table(cell.drop(*CELL)).with_columns(
                pl.lit(concept, pl.String).alias("concept"), pl.lit(country, pl.String).alias("country")
            )
            for part, over_all in ((ungrouped, False), (ungrouped.with_columns(concept=pl.lit(None, pl.String)), True))
            for cell in part.partition_by(CELL, maintain_order=True)
            for concept, country in [cell.select(CELL).row(0)]
            if over_all or concept is not None
        ]
    )
