"""The headline scores of a run, for a terminal."""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.core import roles
from culturekit.report.charts import ModelLine, in_order, model_lines, overall_of
from culturekit.report.provenance import missing_lines, withheld
from culturekit.report.run_folders import Figure, RunFolders, figure, listed, ordinal_span, span, text_of

# The answer on the first screen, in words, from the figures below it.
#
# People and known truths speak about models, the mapping speaks about itself: a model is named where truth or people
# say that it shows nothing, and where the mapping fails the encoder is named.


@dataclass(frozen=True, slots=True)
class Floor:
    """What pictures of nothing score: their diversity, and how near they are to what they are mapped to."""

    encoder: str
    diversity: Figure | None
    median: float
    highest: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer on the first screen.

    Attributes:
        named: models that show nothing.
        headline: the answer in a line; empty where there is none to give.
        sentences: what it rests on.
    """

    named: tuple[str, ...]
    headline: str
    sentences: tuple[str, ...]


def question_about(models: Sequence[ModelLine]) -> str:
    """Ask what the page answers: which model is lying, where all are simulated and the truth is known."""
    count = in_words(len(models))
    if models and all(line.truth is not None for line in models):
        return f"Which of these {count} models is lying?"
    return f"What do these {count} models show?" if len(models) > 1 else "What does this model show?"


def in_words(number: int) -> str:
    """Write a small number as a word."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number] if number < len(words) else str(number)


def verdict_on(
    models: Sequence[ModelLine],
    *,
    floor: Floor | None = None,
    apart: Collection[tuple[str, str]] = (),
    withheld: Sequence[str] = (),
) -> Verdict:
    """Say what is known of the models, and what of the mapping.

    Args:
        models: the headline of each.
        floor: what pictures of nothing score, where that was tried.
        apart: pairs of models of which the first is surely more diverse, corrected.
        withheld: why answers of people corrected some scores not.
    """
    if not models or any(math.isnan(line.mapped.value) for line in models):
        return Verdict((), "", (UNSCORED,))
    lying = all(line.truth is not None for line in models)
    empty = [line for line in models if line.shows_nothing and (not lying or overstated(line, models))]
    sentences = [sentence for line in empty for sentence in evidence(line, models)]
    sentences += [SCATTER] if empty else []
    failed = floor is not None and not empty and fails(models, floor)
    sentences += failings(models, floor) if floor is not None else ()
    turned = list(turned_round(models, apart))
    sentences += turned
    if apart and not turned:
        sentences.append("Corrected, no two models surely stand in another order than mapped.")
    if any(line.reality is None for line in models):
        sentences.append(UNKNOWN + (f"{UNHEARD}{'; '.join(withheld)}." if withheld else UNASKED))
    elif withheld and not any(line.corrected for line in models):
        sentences.append(f"No score is corrected by what people answered: {'; '.join(withheld)}.")
    if not sentences:
        sentences.append("No model surely shows less than its mapped diversity says.")
    headline = headline_of(empty, floor if failed else None, lying=lying)
    return Verdict(tuple(line.model for line in empty), headline, tuple(sentences))


SCATTER = "Nearest-artifact mapping always finds something nearest, and scatter looks like diversity."

UNSCORED = "The diversity of some model could not be scored: too few batches, none of its images makes a complete one."

UNKNOWN = (
    "What these images really show is not known here. The scores are mapped diversity: they err where the mapping "
    "errs, "
)
UNASKED = "and an audit of some images by people would say by how much."
UNHEARD = "and the answers that people gave do not say by how much: "


def headline_of(empty: Sequence[ModelLine], failed: Floor | None, *, lying: bool) -> str:
    """Say the answer in a line."""
    names = " and ".join(line.model for line in empty)
    one = len(empty) == 1
    if empty and lying:
        return f"{names} {'is' if one else 'are'} lying."
    if empty:
        whole = all(line.seen is not None and (line.seen.nothing.high or 0.0) >= 0.95 for line in empty)
        how = "" if whole else f" in most of {'its' if one else 'their'} images"
        return f"{names} {'shows' if one else 'show'} no artifact that people recognise{how}."
    return f"The encoder {failed.encoder} fails here, no model does." if failed else ""


def overstated(line: ModelLine, models: Sequence[ModelLine]) -> bool:
    """Tell whether a model that shows nothing is ranked above one that shows no less; last both ways is no lie."""
    real = line.reality
    if real is None or line.mapped.value <= real.value:
        return False
    others = [other for other in models if other is not line and other.reality is not None]
    passed = [other for other in others if other.reality and other.mapped.value < line.mapped.value]
    return not others or any(other.reality and other.reality.value >= real.value for other in passed)


def evidence(line: ModelLine, models: Sequence[ModelLine]) -> Iterator[str]:
    """Say what a model is named for."""
    rank = sorted(models, key=lambda other: -other.mapped.value).index(line) + 1
    of = f"The mapped diversity of {line.model} is {line.mapped.value:.2f}, rank {rank} of {len(models)}."
    if line.culture_free is not None:
        none = line.culture_free == line.images
        share = "None" if none else f"Only {line.images - line.culture_free:,}"
        yield f"{of} {share} of its {line.images:,} images show{'s' if none else ''} any artifact at all."
    elif line.seen is not None:
        yield (
            f"{of} Of {line.seen.images:,} of its images that people looked at, {line.seen.nothing.value:.0%} "
            f"({span(line.seen.nothing, percent=True)} of all) show no artifact of any culture."
        )
    lowest = min((other.similarity["median"] for other in models if other is not line), default=0.0)
    if line.similarity["median"] < lowest - 0.05:
        yield (
            f"Its images are far from everything they are mapped to: median similarity "
            f"{line.similarity['median']:.2f}, where the other models have at least {lowest:.2f}."
        )


def fails(models: Sequence[ModelLine], floor: Floor) -> bool:
    """Tell whether the mapping sees no more in most models than in pictures of nothing, though they may show much."""
    return len({line.model for line in (*under(models, floor), *alike(models, floor))}) > len(models) / 2


def under(models: Sequence[ModelLine], floor: Floor) -> list[ModelLine]:
    """List models that surely show culture and surely score less than pictures of nothing."""
    if floor.diversity is None:
        return []
    lowest = least(floor.diversity)
    return [line for line in models if line.shows_nothing is False and most(line.mapped) < lowest]


def alike(models: Sequence[ModelLine], floor: Floor) -> list[ModelLine]:
    """List models that may show culture and whose images are no nearer to any artifact than pictures of nothing."""
    return [line for line in models if not line.shows_nothing and line.similarity["median"] <= floor.highest]


def failings(models: Sequence[ModelLine], floor: Floor) -> Iterator[str]:
    """Say where the mapping sees no more than in pictures of nothing."""
    below, near = under(models, floor), alike(models, floor)
    if below:
        yield (
            f"By the encoder {floor.encoder}, pictures of nothing score {text_of(floor.diversity)}, more than "
            f"{listed([line.model for line in below])}, whose images do show culture: that is the encoder's error."
        )
    if near:
        medians = ", ".join(f"{line.similarity['median']:.2f}" for line in near)
        names = listed([line.model for line in near])
        yield (
            f"The images of {names} are no nearer to any artifact than pictures of nothing (median similarity "
            f"{medians}; theirs is {floor.median:.2f}): {why_alike(near, floor)}"
        )


def why_alike(near: Sequence[ModelLine], floor: Floor) -> str:
    """Say what may be behind images that are as far from all artifacts as pictures of nothing."""
    if all(line.shows_nothing is False for line in near):
        return f"the encoder {floor.encoder} does not recognise what they show."
    return (
        f"they show none, or the encoder {floor.encoder} does not recognise what they show. Only people can tell: "
        "audit them."
    )


def turned_round(models: Sequence[ModelLine], apart: Collection[tuple[str, str]]) -> Iterator[str]:
    """Say which two models mapping puts in the wrong order, of those that show something."""
    shown = [line for line in models if not line.shows_nothing]
    for more, less in itertools.permutations(shown, 2):
        if (more.model, less.model) not in apart or more.mapped.value >= less.mapped.value:
            continue
        truth = ""
        if more.truth is not None and less.truth is not None and more.truth.value > less.truth.value:
            truth = f", as in truth ({more.truth.value:.2f} and {less.truth.value:.2f})"
        yield (
            f"Mapping puts {less.model} ({less.mapped.value:.2f}) before {more.model} ({more.mapped.value:.2f}). "
            f"Corrected, {more.model} ({text_of(more.corrected)}) surely shows more than {less.model} "
            f"({text_of(less.corrected)}){truth}."
        )


def least(figure: Figure) -> float:
    """Give the lower limit, or the value where there is none."""
    return figure.value if figure.low is None else figure.low


def most(figure: Figure) -> float:
    """Give the upper limit, or the value where there is none."""
    return figure.value if figure.high is None else figure.high


def floor_in(run: RunFolders, scores: pl.DataFrame) -> Floor | None:
    """Read what pictures of nothing score, where that was tried."""
    similarity = run.floor()
    if similarity is None:
        return None
    own = overall_of(scores.filter(pl.col("model") == roles.CULTURE_FREE))
    diversity = figure(own.filter(pl.col("metric") == "vs"), kernel=run.kernel)
    encoder = str(run.manifest(roles.INDEX).notes.get("encoder", "of this run"))
    return Floor(encoder, diversity, similarity["median"], similarity["highest 5 %"])


def apart_in(run: RunFolders) -> frozenset[tuple[str, str]]:
    """List pairs of models of which the first is surely more diverse, corrected."""
    table = run.ranks("model_difference")
    if table is None:
        return frozenset()
    about = overall_of(table.filter(of_metric="vs", of_kernel=run.kernel))
    sure = about.filter(pl.col("p_corrected") < 1 - pl.col("params").str.json_path_match("$.of.confidence").cast(float))
    return frozenset((row["a"], row["b"]) if row["value"] > 0 else (row["b"], row["a"]) for row in sure.to_dicts())


def headline_lines(run: RunFolders) -> Iterator[str]:
    """Tell the headline scores of a run, the most diverse first, and the answer last."""
    scores = run.scores()
    models = in_order(model_lines(run, scores))
    yield f"diversity VS/{run.size}, {run.kernel} kernel, over all prompts, with {run.confidence()} intervals"
    columns = columns_of(models)
    yield "".join(f"{title:<{width}} " for title, width, _ in columns).rstrip()
    for line in models:
        yield "".join(f"{tell(line):<{width}} " for _, width, tell in columns).rstrip()
    for lacking in missing_lines(run, scores):
        if lacking.prompts < lacking.prompts_asked:
            yield f"{lacking.model} rests on {lacking.prompts} of {lacking.prompts_asked} prompts: no fair match."
    verdict = verdict_on(models, floor=floor_in(run, scores), apart=apart_in(run), withheld=[*withheld(run)])
    if verdict.headline:
        yield verdict.headline
    yield from verdict.sentences


Column = tuple[str, int, Callable[[ModelLine], str]]


def columns_of(models: Sequence[ModelLine]) -> list[Column]:
    """Say what stands of each model: title, width, and how to tell it; of what nobody knows there is no column."""

    def limits(title: str, of: Callable[[ModelLine], Figure | None]) -> Column:
        return title, 24, lambda line: text_of(of(line))

    columns: list[Column] = [("model", 14, lambda line: line.model)]
    if any(line.corrected for line in models):
        columns.append(limits("corrected diversity", lambda line: line.corrected))
    if any(line.rank for line in models):
        columns.append(("rank", 11, lambda line: "" if line.rank is None else ordinal_span(line.rank.place)))
    columns.append(limits("mapped diversity", lambda line: line.mapped))
    if any(line.truth for line in models):
        columns.append(limits("true diversity", lambda line: line.truth))
    if any(line.seen for line in models):
        columns.append(
            ("no culture seen", 15, lambda line: "" if line.seen is None else span(line.seen.nothing, percent=True))
        )
    columns.append(("quality", 8, lambda line: f"{line.quality.value:.3f}" if line.quality else ""))
    columns.append(("images", 6, lambda line: f"{line.images:,}"))
    return columns
