"""The answer on the first screen, in words, from the figures below it; and the headline scores for a terminal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from culturekit.report.figures import Figure
from culturekit.report.missing import missing_lines
from culturekit.report.model_lines import HEADLINE_KERNEL, ModelLine, model_lines
from culturekit.report.run_folders import RunFolders

__all__ = ["Verdict", "headline_lines", "question_about", "verdict_on"]

NOTICEABLE = 0.1
"""A model whose diversity is overstated by less is not called out."""

ALL_ALIKE = 1 / 8
"""The diversity of eight images that show the same: a model that scores no more overstates nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer on the first screen."""

    liar: str | None
    sentences: tuple[str, ...]


def question_about(models: Sequence[ModelLine]) -> str:
    """Ask what the page answers: which model is lying, if one is."""
    return f"Which of these {in_words(len(models))} models is lying?"


def in_words(number: int) -> str:
    """Write a small number as a word."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number] if number < len(words) else str(number)


def verdict_on(models: Sequence[ModelLine], *, floor: Mapping[str, float] | None = None) -> Verdict:
    """Say which model is not what its mapped diversity says, or that nobody can know yet.

    Args:
        models: the headline of each.
        floor: how near pictures of nothing are to what they are mapped to, where that was tried.
    """
    if not models or any(math.isnan(line.mapped.value) for line in models):
        return Verdict(None, (UNSCORED,))
    known = [line for line in models if reality(line) is not None]
    worst = max(known, key=overstated, default=None)
    if worst is None or overstated(worst) < NOTICEABLE:
        unknown = [line for line in models if reality(line) is None]
        nothing = [
            line for line in unknown
            if floor is not None and line.similarity["median"] <= floor["highest 5 %"]
            and line.mapped.value >= ALL_ALIKE + NOTICEABLE
        ]  # fmt: skip
        if nothing and floor is not None:
            farthest = min(nothing, key=lambda line: line.similarity["median"])
            return Verdict(farthest.model, (like_nothing(farthest, models, floor), SCATTER, UNKNOWN))
        if unknown:
            return Verdict(None, (UNKNOWN,))
        return Verdict(None, ("Every model is as diverse as its nearest artifacts say.",))
    rank = sorted(models, key=lambda line: -line.mapped.value).index(worst) + 1
    sentences = [
        f"Its mapped diversity is {worst.mapped.value:.2f}, rank {rank} of {len(models)}. {shows(worst)}",
        distance(worst, [line for line in models if line is not worst]),
        SCATTER,
    ]
    return Verdict(worst.model, tuple(filter(None, sentences)))


SCATTER = "Nearest-artifact mapping always finds something nearest, and scatter looks like diversity."

UNSCORED = "The diversity of some model could not be scored: no batch of its images is complete."

UNKNOWN = (
    "What these images really show is not known here. The scores are mapped diversity: they err where the mapping "
    "errs, and an audit of some images by people would say by how much."
)


def reality(line: ModelLine) -> Figure | None:
    """Give the diversity of what images really show: known, or found out by an audit."""
    return line.truth or line.corrected


def overstated(line: ModelLine) -> float:
    """By how much the mapped diversity of a model exceeds the real one.

    An audit leaves some doubt, and the model has the benefit of it.
    """
    real = reality(line)
    if real is None:
        return 0.0
    highest = real.value if line.truth is not None or real.high is None else real.high
    return line.mapped.value - highest


def shows(line: ModelLine) -> str:
    """Say what the images of a model really show."""
    real = reality(line)
    if not line.culture_free or line.truth is None:
        found = "By the audit, the" if line.truth is None else "The"
        return f"{found} diversity of what its images really show is {real.value if real else 0.0:.2f}."
    share = "None" if line.culture_free == line.images else f"Only {line.images - line.culture_free:,}"
    return f"{share} of its {line.images:,} images show{'s' if share == 'None' else ''} any artifact at all."


def like_nothing(line: ModelLine, models: Sequence[ModelLine], floor: Mapping[str, float]) -> str:
    """Say that images are no nearer to any artifact than pictures of nothing are."""
    rank = sorted(models, key=lambda other: -other.mapped.value).index(line) + 1
    return (
        f"Its mapped diversity is {line.mapped.value:.2f}, rank {rank} of {len(models)}, but its images are no nearer "
        f"to any artifact than pictures of nothing: median similarity {line.similarity['median']:.2f}, where theirs is "
        f"{floor['median']:.2f}."
    )


def distance(line: ModelLine, others: Sequence[ModelLine]) -> str:
    """Compare how near the nearest artifact is; empty when the model is no farther than the others."""
    lowest = min((other.similarity["median"] for other in others), default=0.0)
    if line.similarity["median"] >= lowest - 0.05:
        return ""
    return (
        f"Its images are far from everything they are mapped to: median similarity "
        f"{line.similarity['median']:.2f}, where the other models have at least {lowest:.2f}."
    )


def headline_lines(run: RunFolders) -> Iterator[str]:
    """Tell the headline scores of a run, the most diverse by mapping first."""
    models = sorted(model_lines(run, run.scores()), key=lambda line: -line.mapped.value)
    yield f"diversity VS/8, {HEADLINE_KERNEL} kernel, over all prompts, with 95 % intervals"
    audited = any(line.corrected for line in models)
    corrected = f"{'corrected diversity':<24} " if audited else ""
    yield f"{'model':<14} {'mapped diversity':<24} {corrected}{'true diversity':<24} {'quality':>8} {'images':>8}"
    for line in models:
        quality = f"{line.quality.value:.3f}" if line.quality else ""
        corrected = f"{text_of(line.corrected):<24} " if audited else ""
        yield (
            f"{line.model:<14} {text_of(line.mapped):<24} {corrected}{text_of(line.truth):<24} "
            f"{quality:>8} {line.images:>8,}"
        )
    for lacking in missing_lines(run, run.scores()):
        if lacking.prompts < lacking.prompts_asked:
            yield f"{lacking.model} rests on {lacking.prompts} of {lacking.prompts_asked} prompts: no fair match."
    verdict = verdict_on(models, floor=run.floor())
    if verdict.liar:
        yield f"{verdict.liar} is lying."
    yield from verdict.sentences


def text_of(figure: Figure | None) -> str:
    """Write a figure with its interval."""
    if figure is None:
        return "not known"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
