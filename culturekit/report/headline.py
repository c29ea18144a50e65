"""The headline scores of a run, for a terminal."""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core import roles
from culturekit.report.charts import ModelLine, Rank, in_order, model_lines, overall_of
from culturekit.report.provenance import missing_lines, withheld
from culturekit.report.run_folders import Figure, RunFolders, listed, ordinal, ordinal_span, span, text_of

# The answer on the first screen, in words, from the figures below it.
#
# People and known truths speak about models, the mapping speaks about itself: a model is named where truth or people
# say that it shows nothing, and where the mapping fails the encoder is named.


@dataclass(frozen=True, slots=True)
class Floor:
    """How far an encoder tells images of models from pictures of nothing.

    Attributes:
        encoder: as a SPEC.
        nearer: for each model, of pairs of one of its images and one picture of nothing, the share in which the image
            is nearer to what it is mapped to; one half is chance.
    """

    encoder: str
    nearer: Mapping[str, float]


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
        floor: how far the encoder tells their images from pictures of nothing, where that was tried.
        apart: pairs of models of which the first is surely more diverse, corrected.
        withheld: why answers of people corrected some scores not.
    """
    if not models or any(math.isnan(line.mapped.value) for line in models):
        return Verdict((), "", (UNSCORED,))
    lying = all(line.truth is not None for line in models)
    empty = [line for line in models if line.shows_nothing and (not lying or overstated(line, models))]
    blurred = [] if floor is None else indistinct(models, floor)
    sentences = [sentence for line in empty for sentence in evidence(line, models)]
    sentences += [SCATTER] if empty else []
    sentences += [about_accuracy(models)] if any(line.recognised for line in models) else []
    sentences += [about_indistinct(blurred, floor)] if blurred and floor is not None else []
    sentences += about_order(models, apart)
    if any(line.reality is None for line in models):
        sentences.append(UNKNOWN + (f"{UNHEARD}{'; '.join(withheld)}." if withheld else UNASKED))
    elif withheld and not any(line.corrected for line in models):
        sentences.append(f"No score is corrected by what people answered: {'; '.join(withheld)}.")
    headline = headline_of(empty, lying=lying) or doubt_of(models, blurred, floor) or answer_of(models, apart)
    return Verdict(tuple(line.model for line in empty), headline, tuple(sentences))


SCATTER = "Nearest-artifact mapping always finds something nearest, and scatter looks like diversity."

UNSCORED = "The diversity of some model could not be scored: too few batches, none of its images makes a complete one."

UNKNOWN = (
    "What these images really show is not known here. The scores are mapped diversity: they err where the mapping "
    "errs, "
)
UNASKED = "and an audit of some images by people would say by how much."
UNHEARD = "and the answers that people gave do not say by how much: "


def headline_of(empty: Sequence[ModelLine], *, lying: bool) -> str:
    """Name the models that show nothing, in a line; empty where there are none."""
    names = listed([line.model for line in empty]) if empty else ""
    one = len(empty) == 1
    if empty and lying:
        return f"{names} {'is' if one else 'are'} lying."
    if empty:
        whole = all(line.seen is not None and (line.seen.nothing.high or 0.0) >= 0.95 for line in empty)
        how = "" if whole else f" in most of {'its' if one else 'their'} images"
        return f"{names} {'shows' if one else 'show'} no artifact that people recognise{how}."
    return ""


def doubt_of(models: Sequence[ModelLine], blurred: Sequence[ModelLine], floor: Floor | None) -> str:
    """Say in a line that the mapping is not to be trusted, where most models' images are mapped wrongly, or blindly."""
    wrong = [line for line in models if line.recognised and most(line.recognised) < 0.5]
    if len(wrong) > len(models) / 2:
        return f"Most images of {listed([line.model for line in wrong])} are mapped to something they do not show."
    if floor is not None and len(blurred) > len(models) / 2:
        return f"The encoder {floor.encoder} hardly tells these images from pictures of nothing."
    return ""


def answer_of(models: Sequence[ModelLine], apart: Collection[tuple[str, str]]) -> str:
    """Say in a line which model shows most, and of which others that is sure."""
    if len(models) == 1:
        (line,) = models
        if line.reality is not None and most(line.reality) < line.mapped.value:
            return f"{line.model} surely shows less than its mapped diversity says: {text_of(line.reality)}."
        return "No model surely shows less than its mapped diversity says." if line.reality else ""
    corrected = [line for line in models if line.corrected and not math.isnan(line.corrected.value)]
    if len(corrected) < len(models) and all(line.truth for line in models):
        return f"In truth {max(models, key=lambda line: line.truth.value if line.truth else 0.0).model} shows most."
    if len(corrected) < len(models):
        best = max(models, key=lambda line: line.mapped.value).model
        return f"As mapped, {best} shows most; nobody knows yet how often the mapping is right."
    best = max(corrected, key=lambda line: line.corrected.value if line.corrected else 0.0).model
    others = [line.model for line in corrected if line.model != best]
    behind = [name for name in others if (best, name) in apart]
    if len(behind) == len(others):
        return f"{best} shows most, surely more than {'the other' if len(others) == 1 else 'every other model'}."
    if not behind:
        return f"{best} shows most, but not surely more than any other model."
    near = [name for name in others if name not in behind]
    return f"{best} shows most, surely more than {listed(behind)}; whether more than {listed(near)} is open."


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


INDISTINCT = 0.6
"""Up to this share of pairs, images of a model are hardly nearer to artifacts than pictures of nothing are."""


def indistinct(models: Sequence[ModelLine], floor: Floor) -> list[ModelLine]:
    """List models whose images the encoder hardly tells from pictures of nothing, where no audit knows how it maps."""
    return [
        line
        for line in models
        if line.recognised is None and not line.shows_nothing and floor.nearer.get(line.model, 1.0) <= INDISTINCT
    ]


def about_indistinct(blurred: Sequence[ModelLine], floor: Floor) -> str:
    """Say that images lie as far from all artifacts as pictures of nothing do, and what may be behind it."""
    shares = ", ".join(f"{floor.nearer[line.model]:.0%}" for line in blurred)
    why = f"they show none, or the encoder {floor.encoder} does not recognise what they show. Only an audit can tell."
    if all(line.shows_nothing is False for line in blurred):
        why = f"the encoder {floor.encoder} does not recognise what they show."
    return (
        f"The images of {listed([line.model for line in blurred])} are hardly nearer to any artifact than pictures of "
        f"nothing are (nearer in {shares} of pairs, where chance gives 50%): {why}"
    )


def about_accuracy(models: Sequence[ModelLine]) -> str:
    """Say how often the mapping is right, as people saw it."""
    known = [(line.model, line.recognised) for line in models if line.recognised]
    shares = [f"{found.value:.0%} ({span(found, percent=True)}) of {name}" for name, found in known]
    return f"Where people looked, the mapping names the country they saw in {listed(shares)}."


def about_order(models: Sequence[ModelLine], apart: Collection[tuple[str, str]]) -> list[str]:
    """Say which models stand in another order corrected than mapped, surely or by their values alone."""
    turned = list(turned_round(models, apart))
    corrected = [line for line in models if line.corrected and not math.isnan(line.corrected.value)]
    mapped = {line.model: line.mapped.value for line in models}
    if len(corrected) < 2 or any(mapped.get(more, 1.0) < mapped.get(less, 0.0) for more, less in apart):
        return turned
    places = [
        {line.model: place for place, line in enumerate(sorted(corrected, key=by, reverse=True), start=1)}
        for by in (lambda line: line.mapped.value, lambda line: line.corrected.value if line.corrected else 0.0)
    ]
    before, after = places
    if before == after:
        return ["Corrected, the models stand in the order in which they are mapped."]
    mover = max(after, key=lambda name: abs(after[name] - before[name]))
    return [
        f"Corrected, {mover} moves from {ordinal(before[mover])} to {ordinal(after[mover])} place, but which of two "
        "models shows more is not sure for any two that change places."
    ]


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


def most(figure: Figure) -> float:
    """Give the upper limit, or the value where there is none."""
    return figure.value if figure.high is None else figure.high


def floor_in(run: RunFolders) -> Floor | None:
    """Read how far images of models are nearer to artifacts than pictures of nothing, where that was tried."""
    if not run.has(roles.DIAGNOSIS):
        return None
    nothing = np.sort(similarities(run, roles.CULTURE_FREE))
    encoder = str(run.manifest(roles.INDEX).notes.get("encoder", "of this run"))
    return Floor(encoder, {model: share_nearer(similarities(run, model), nothing) for model in run.models})


def similarities(run: RunFolders, model: str) -> NDArray[np.float64]:
    """Read how similar each image of a model is to its nearest artifact."""
    return run.matches(model).filter(pl.col("rank") == 1)["score"].drop_nulls().cast(pl.Float64).to_numpy()


def share_nearer(images: NDArray[np.float64], nothing: NDArray[np.float64]) -> float:
    """Give the share of pairs in which the image is nearer; ties count half, `nothing` is sorted."""
    if not len(images) or not len(nothing):
        return math.nan
    below = np.searchsorted(nothing, images, "left") + np.searchsorted(nothing, images, "right")
    return float(below.mean() / (2 * len(nothing)))


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
    verdict = verdict_on(models, floor=floor_in(run), apart=apart_in(run), withheld=[*withheld(run)])
    if verdict.headline:
        yield verdict.headline
    yield from verdict.sentences


def rank_of(rank: Rank, models: int) -> str:
    """Write a rank, and among how many where those are not all models of the table."""
    return ordinal_span(rank.place) + ("" if rank.models == models else f" of {rank.models}")


Column = tuple[str, int, Callable[[ModelLine], str]]


def columns_of(models: Sequence[ModelLine]) -> list[Column]:
    """Say what stands of each model: title, width, and how to tell it; of what nobody knows there is no column."""

    def limits(title: str, of: Callable[[ModelLine], Figure | None]) -> Column:
        return title, 24, lambda line: text_of(of(line))

    columns: list[Column] = [("model", 14, lambda line: line.model)]
    if any(line.corrected for line in models):
        columns.append(limits("corrected diversity", lambda line: line.corrected))
    if any(line.rank for line in models):
        columns.append(("rank", 11, lambda line: "" if line.rank is None else rank_of(line.rank, len(models))))
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
