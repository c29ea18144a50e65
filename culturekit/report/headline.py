"""The sentences of every page: who comes first, how sure that is, and what to distrust, from typed facts alone."""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core import roles
from culturekit.core.choices import ANSWERS_PER_HOUR
from culturekit.core.errors import counted
from culturekit.core.inputs import manifest_of
from culturekit.core.schemas import MATCHES, RECOGNITION
from culturekit.metrics.statistics.intervals import wilson
from culturekit.report.charts import ModelLine, in_order, model_lines, overall_of
from culturekit.report.provenance import missing_lines, people_counted, withheld
from culturekit.report.run_folders import Figure, RunFolders, listed, ordinal, ordinal_span, span, text_of
from culturekit.report.run_folders import figure as score_figure

# Who comes first by a score, for pages of any recipe.


@dataclass(frozen=True, slots=True)
class Standing:
    """How models stand by one score."""

    by: str  # whose score it is, such as `the judge alone`
    verb: str  # what the first of them does, such as `comes first in ALIGN`
    over: str  # what sets it off, such as `ahead of`
    figures: Mapping[str, Figure]  # the score of each model that has one
    asked: Sequence[str]  # all models
    lowest: bool = False  # whether the lowest score is the best
    # pairs of which the first is surely ahead; None where intervals that do not overlap decide
    apart: Collection[tuple[str, str]] | None = None

    @property
    def order(self) -> list[str]:
        """The models that have a score, the best first."""
        scored = [name for name in self.asked if name in self.figures and not math.isnan(self.figures[name].value)]
        return sorted(scored, key=lambda name: self.figures[name].value, reverse=not self.lowest)

    @property
    def first(self) -> str:
        """The best, its score, and of how many models it is the best where not all have a score."""
        best, *_ = order = self.order
        scored = "the only one" if len(order) == 1 else f"of {len(order)}"
        among = "" if len(order) == len(self.asked) else f", {scored} with such a score"
        return f"{text_of(self.figures[best])}{among}"

    @property
    def how_sure(self) -> str:
        """Say what the first is surely ahead of."""
        best, *others = self.order
        passed = [name for name in others if self.surely_ahead(best, name)]
        if not others:
            return ""
        if len(passed) == len(others):
            return f", surely {self.over} {'the other' if len(others) == 1 else 'all others'}"
        if not passed:
            return f", but not surely {self.over} {'the other' if len(others) == 1 else 'any other'}"
        near = [name for name in others if name not in passed]
        return f", surely {self.over} {listed(passed)}; whether {self.over} {listed(near)} is open"

    def surely_ahead(self, better: str, worse: str) -> bool:
        """Tell whether one is surely ahead of another; without intervals nothing is sure."""
        if self.apart is not None:
            return (better, worse) in self.apart
        more, less = (self.figures[name] for name in ((worse, better) if self.lowest else (better, worse)))
        return more.low is not None and less.high is not None and more.low > less.high


def standing(
    scores: pl.DataFrame | None, asked: Sequence[str], by: str, words: tuple[str, str],
    where: Mapping[str, str | None], *, lowest: bool = False,
) -> Standing:  # fmt: skip
    """Look up how models stand in a table of scores; where the lowest is best, how far from 0 is what counts."""
    figures = {}
    if scores is not None:
        numbered = scores.with_row_index("row")
        found = {model: score_figure(numbered, model=model, **where) for model in asked}
        figures = {model: size_of(each) if lowest else each for model, each in found.items() if each is not None}
    return Standing(by, *words, figures, asked, lowest)


def size_of(found: Figure) -> Figure:
    """Give how far a figure is from 0, with the limits of that."""
    if found.low is None or found.high is None:
        return replace(found, value=abs(found.value))
    ends = sorted((abs(found.low), abs(found.high)))
    return replace(found, value=abs(found.value), low=0.0 if found.low <= 0 <= found.high else ends[0], high=ends[1])


def sentences_on(standings: Sequence[Standing]) -> Iterator[str]:
    """Say who comes first by the first score that there is, and whether the others put it first too."""
    scored = [each for each in standings if each.order and len(each.asked) > 1]
    if not scored:
        return
    leading, *others = scored
    best = leading.order[0]
    yield f"By {leading.by}, {best} {leading.verb} ({leading.first}){leading.how_sure}."
    if alike := [each.by for each in others if each.order[0] == best]:
        by = listed(alike)
        yield f"{by[0].upper()}{by[1:]} {'puts' if len(alike) == 1 else 'put'} {best} first too."
    for each in others:
        if (other := each.order[0]) != best:
            yield f"By {each.by}, {other} comes first instead ({each.first}){each.how_sure}."


# The answer on the first screen of a run of the kind `cube`.
#
# People and known truths speak about models, the mapping speaks about itself: a model is named where truth or people
# say that it shows nothing, and where the encoder is known to fail the encoder is named. Only people know how often
# images are mapped rightly; before they look, references whose artifact is known are all that can be tried.


@dataclass(frozen=True, slots=True)
class EncoderTrial:
    """What is known of an encoder before people look at images."""

    encoder: str  # as a SPEC
    # the share of references held out that are mapped to their country; None where none could be
    right: Figure | None = None
    # the share that would be right if countries were dealt out at random, as often as they were found
    chance: float = 0.0
    why: str = ""  # no reference could be held out
    # for each model, of pairs of one of its images and one picture of nothing, the share in which the image is nearer
    # to what it is mapped to; one half says that it cannot be told from a picture of nothing
    nearer: Mapping[str, float] = field(default_factory=dict)
    references_nearer: float = math.nan  # the same of references held out
    # a model, and the same of its images and their shuffled copies, which have the same colours
    shuffled: tuple[str, float] | None = None

    @property
    def fails(self) -> bool:
        """Tell whether references, or else copies with the same colours, show that it does not recognise artifacts."""
        if self.right is None:
            return self.shuffled is not None and self.shuffled[1] <= BY_COLOUR
        return most(self.right) < self.chance + (1 - self.chance) / 2

    @property
    def nearness_tells(self) -> bool:
        """Tell whether pictures known to show artifacts are nearer to them than pictures of nothing are."""
        return not self.fails and any(share >= CLEARLY for share in (self.references_nearer, *self.nearer.values()))


INDISTINCT = 0.6
"""Up to this share of pairs, images of a model are hardly nearer to artifacts than pictures of nothing are."""

CLEARLY = 0.9  # from this share of pairs on, pictures can be told from pictures of nothing

BY_COLOUR = 0.7
"""Up to this share of pairs, an encoder hardly tells images from copies in shuffled tiles. Of drawn flags, mean colours
of 4 x 4 fields told 59 % (and mapped 17 % rightly), encoders that look at shapes from 91 % on."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer on the first screen."""

    named: tuple[str, ...]  # models that show nothing
    headline: str  # the answer in a line; empty where there is none to give
    sentences: tuple[str, ...]  # what it rests on


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
    models: Sequence[ModelLine], *, trial: EncoderTrial | None = None, apart: Collection[tuple[str, str]] = (),
    withheld: Sequence[str] = (), prompts: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> Verdict:  # fmt: skip
    """Say what is known of the models, and what of the mapping.

    Args:
        models: the headline of each.
        trial: what is known of the encoder without people, where it was tried.
        apart: pairs of models of which the first is surely more diverse, corrected.
        withheld: why answers of people corrected some scores not.
        prompts: of models that lack some, how many prompts they are scored on, and of how many.
    """
    if not models or any(math.isnan(line.mapped.value) for line in models):
        return Verdict((), "", (UNSCORED,))
    lying = all(line.truth is not None for line in models)
    empty = [line for line in models if line.shows_nothing and (not lying or overstated(line, models))]
    audited = any(line.recognised for line in models)
    answers = [headline_of(empty, lying=lying), "" if audited else doubt_of(trial), answer_of(models, apart)]
    headline, *others = [*filter(None, answers), ""]
    sentences = [sentence for line in empty for sentence in evidence(line, models)]
    sentences += [SCATTER] if empty else []
    sentences += filter(None, others)
    sentences += [
        f"The score of {model} rests on {scored:,} of {of:,} prompts: it cannot be compared with the others."
        for model, (scored, of) in prompts.items()
    ]
    sentences += about_accuracy(models) if audited else about_trial(models, trial)
    sentences += about_order(models, apart)
    unknown = [line.model for line in models if line.reality is None]
    if unknown:
        of = "these images" if len(unknown) == len(models) else f"images of {listed(unknown)}"
        sentences.append(UNKNOWN.format(of=of) + (f"{UNHEARD}{'; '.join(withheld)}." if withheld else UNASKED))
    elif withheld and not any(line.corrected for line in models):
        sentences.append(f"No score is corrected by what people answered: {'; '.join(withheld)}.")
    return Verdict(tuple(line.model for line in empty), headline, tuple(sentences))


SCATTER = "Nearest-artifact mapping always finds something nearest, and scatter looks like diversity."

UNSCORED = "The diversity of some model could not be scored: too few batches, none of its images makes a complete one."

UNKNOWN = "What {of} really show is not known here. Mapped diversity errs where the mapping errs, "
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


def doubt_of(trial: EncoderTrial | None) -> str:
    """Say in a line that no score is to be trusted, where the encoder is known to fail before anybody looked."""
    if trial is None or not trial.fails:
        return ""
    if trial.right is not None:
        return f"Do not trust these scores: the encoder {trial.encoder} fails on pictures whose artifact is known."
    return f"Do not trust these scores: the encoder {trial.encoder} hardly sees more than colours."


def about_trial(models: Sequence[ModelLine], trial: EncoderTrial | None) -> Iterator[str]:
    """Say how the encoder did where the artifact is known, and whose images it cannot tell from nothing."""
    if trial is None:
        return
    if trial.right is not None:
        chance = f", where chance gives {trial.chance:.0%}" if trial.fails or trial.chance > 0.25 else ""
        yield (
            f"Of {trial.right.n:,} references held out, the encoder {trial.encoder} maps {trial.right.value:.0%} "
            f"({span(trial.right, percent=True)}) to their country{chance}. What models make may be harder to map."
        )
    else:
        yield f"How well the encoder {trial.encoder} maps could not be tried: {trial.why}."
        if trial.fails and trial.shuffled is not None:
            model, nearer = trial.shuffled
            yield (
                f"Images of {model} are hardly nearer to any artifact than the same images cut into tiles and shuffled "
                f"(nearer in {nearer:.0%} of pairs, where chance gives 50%): the encoder goes by colours, or these "
                "images show nothing. Only an audit can tell."
            )
    blurred = [
        line for line in models if line.shows_nothing is None and trial.nearer.get(line.model, 1.0) <= INDISTINCT
    ]
    if trial.nearness_tells and blurred:
        shares = ", ".join(f"{trial.nearer[line.model]:.0%}" for line in blurred)
        yield (
            f"The images of {listed([line.model for line in blurred])} are hardly nearer to any artifact than pictures "
            f"of nothing are (nearer in {shares} of pairs, where chance gives 50%): they show none, or are unlike all "
            "references. Only an audit can tell."
        )


def answer_of(models: Sequence[ModelLine], apart: Collection[tuple[str, str]]) -> str:
    """Say in a line which model shows most, and of which others that is sure."""
    if len(models) == 1:
        (line,) = models
        if line.reality is not None and most(line.reality) < line.mapped.value:
            return f"{line.model} surely shows less than its mapped diversity says: {text_of(line.reality)}."
        return "No model surely shows less than its mapped diversity says." if line.reality else ""
    asked = [line.model for line in models]
    figures = {line.model: line.corrected for line in models if line.corrected is not None}
    corrected = Standing("", "shows most", "more than", figures, asked, apart=apart)
    left = [name for name in asked if name not in corrected.order]
    if left and all(line.truth for line in models):
        return f"In truth {max(models, key=lambda line: line.truth.value if line.truth else 0.0).model} shows most."
    if len(corrected.order) < 2:
        best = max(models, key=lambda line: line.mapped.value).model
        asked_people = any(line.recognised for line in models)
        doubt = "not enough scores are corrected to say more" if asked_people else KNOWS
        return f"As mapped, {best} shows most; {doubt}."
    among = f"Of {listed(sorted(corrected.order))}, " if left else ""
    rest = f" {listed(left)} {'is' if len(left) == 1 else 'are'} not corrected." if left else ""
    return f"{among}{corrected.order[0]} shows most{corrected.how_sure}.{rest}"


KNOWS = "nobody knows yet how often the mapping is right"


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


def about_accuracy(models: Sequence[ModelLine]) -> Iterator[str]:
    """Say how often the mapping is right, as people saw it."""
    known = [(line.model, line.recognised) for line in models if line.recognised]
    wrong = [
        line.model for line in models if line.recognised and not line.shows_nothing and most(line.recognised) < 0.5
    ]
    if wrong:
        yield f"Most images of {listed(wrong)} are mapped to something they do not show: mapped scores say little here."
    shares = [f"{found.value:.0%} ({span(found, percent=True)}) of {name}" for name, found in known]
    yield f"Where people looked, the mapping names the country they saw in {listed(shares)}."


def about_order(models: Sequence[ModelLine], apart: Collection[tuple[str, str]]) -> list[str]:
    """Say which models stand in another order corrected than mapped, surely or by their values alone."""
    turned = list(turned_round(models, apart))
    corrected = [line for line in models if line.corrected and not math.isnan(line.corrected.value)]
    among = "" if len(corrected) == len(models) else f" of these {len(corrected)} models"
    mapped = {line.model: line.mapped.value for line in models}
    if len(corrected) < 2 or any(mapped.get(more, 1.0) < mapped.get(less, 0.0) for more, less in apart):
        more = [f"Corrected, {counted(len(turned) - 2, 'more pairs')} surely stand the other way round than mapped."]
        return turned[:2] + more * (len(turned) > 2)
    places = [
        {line.model: index for index, line in enumerate(sorted(corrected, key=by, reverse=True), start=1)}
        for by in (lambda line: line.mapped.value, lambda line: line.corrected.value if line.corrected else 0.0)
    ]
    before, after = places
    if before == after:
        who = "the models" if not among else listed([line.model for line in corrected])
        return [f"Corrected, {who} keep the order in which they are mapped."]
    mover = max(after, key=lambda name: abs(after[name] - before[name]))
    return [
        f"Corrected, {mover} moves from {ordinal(before[mover])} to {ordinal(after[mover])} place{among}, but "
        "which of two models shows more is not sure for any two that change places."
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


def encoder_trial(run: RunFolders) -> EncoderTrial | None:
    """Read how the encoder did on pictures whose artifact is known, and on pictures of nothing, where it was tried."""
    if not run.has(roles.DIAGNOSIS):
        return None
    nothing, shuffled = (np.sort(similarities(run.matches(floor))) for floor in (roles.CULTURE_FREE, roles.SHUFFLED))
    images = {model: similarities(run.matches(model)) for model in run.models}
    first, counts = run.models[0], run.manifest(roles.INDEX).counts
    right, chance = recognised_references(run)
    return EncoderTrial(
        str(run.manifest(roles.INDEX).notes.get("encoder", "of this run")), right, chance,
        NAMES_ALONE if not counts.get("references") else str(run.manifest(roles.DIAGNOSIS).notes.get("no_recognition")),
        {model: share_nearer(found, nothing) for model, found in images.items()},
        share_nearer(similarities(run.needed(roles.DIAGNOSIS, MATCHES)), nothing),
        (first, share_nearer(images[first], shuffled)),
    )  # fmt: skip


NAMES_ALONE = "it knows artifacts by their names alone"


def recognised_references(run: RunFolders) -> tuple[Figure | None, float]:
    """Read which share of references held out was mapped to their country, and what chance would give.

    References of one artifact may all err together, so that an artifact counts as one in the interval.
    """
    table, index = run.needed(roles.DIAGNOSIS, RECOGNITION), run.manifest(roles.INDEX).counts
    of_countries = table.drop_nulls("country").select(pl.col("shown", "recognised", "mapped").cast(pl.Float64))
    shown, recognised, mapped = (of_countries[name].to_numpy() for name in of_countries.columns)
    if not shown.sum():
        return None, 0.0
    references = int(table.filter(pl.col("country").is_null())["shown"][0])
    share = float(recognised.sum() / shown.sum())
    artifacts = references * index["indexed"] / index["references"]
    chance = float((shown / shown.sum() * mapped / max(mapped.sum(), 1.0)).sum())
    return Figure(share, *wilson(share, artifacts, 1.96), references, 0), chance


def waiting_forms(run: RunFolders) -> Iterator[str]:
    """Say which forms nobody has answered, where they are and how long people take for them."""
    manifests = {name: manifest_of(run.root / name) for name in run.stages}
    read = {record.sha256 for manifest in manifests.values() for record in manifest.inputs.values()}
    for name, manifest in manifests.items():
        if manifest.stage == FORM_STAGE and manifest.sha256 not in read:
            answers = manifest.counts["annotation_key"]
            yield (
                f"Nobody has answered the form {name} yet: {answers:,} answers on "
                f"{counted(manifest.counts['sheets'], 'sheets')}, about {answers / ANSWERS_PER_HOUR:.1f} hours. "
                f"culturekit annotate serve {run.root.name}/{name} asks for them."
            )


FORM_STAGE = "annotate-export"


def similarities(matches: pl.DataFrame) -> NDArray[np.float64]:
    """Read how similar each image is to its nearest artifact."""
    return matches.filter(pl.col("rank") == 1)["score"].drop_nulls().cast(pl.Float64).to_numpy()


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


def verdict_in(run: RunFolders, models: Sequence[ModelLine], scores: pl.DataFrame) -> Verdict:
    """Read what the answer rests on, and give it."""
    lacking = {
        line.model: (line.prompts, line.prompts_asked)
        for line in missing_lines(run, scores)
        if line.prompts < line.prompts_asked
    }
    reasons = tuple(withheld(run))
    found = verdict_on(models, trial=encoder_trial(run), apart=apart_in(run), withheld=reasons, prompts=lacking)
    return replace(found, sentences=(*found.sentences, *waiting_forms(run), *people_counted(run)))


def headline_lines(run: RunFolders) -> Iterator[str]:
    """Tell the headline scores of a run, the most diverse first, and the answer last."""
    scores = run.headline_scores()
    models = in_order(model_lines(run, scores))
    yield f"diversity VS/{run.size}, {run.kernel} kernel, over all prompts, with {run.confidence()} intervals"
    columns = columns_of(models)
    yield "".join(f"{title:<{width}} " for title, width, _ in columns).rstrip()
    for line in models:
        yield "".join(f"{tell(line):<{width}} " for _, width, tell in columns).rstrip()
    verdict = verdict_in(run, models, scores)
    if verdict.headline:
        yield verdict.headline
    yield from verdict.sentences


Column = tuple[str, int, Callable[[ModelLine], str]]


def columns_of(models: Sequence[ModelLine]) -> list[Column]:
    """Say what stands of each model: title, width, and how to tell it; of what nobody knows there is no column."""

    def limits(title: str, of: Callable[[ModelLine], Figure | None]) -> Column:
        return title, 24, lambda line: text_of(of(line))

    def rank(line: ModelLine) -> str:
        if line.rank is None:
            return ""
        among = "" if line.rank.models == len(models) else f" of {line.rank.models}"
        return f"{ordinal_span(line.rank.position)}{among}"

    columns: list[Column] = [("model", 14, lambda line: line.model)]
    if any(line.corrected for line in models):
        columns.append(limits("corrected diversity", lambda line: line.corrected))
    if any(line.rank for line in models):
        columns.append(("rank", 11, rank))
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


def judge_stands(*, asked: bool) -> str:
    """Say that people put no score of the judge right, though they were `asked`, or because nobody was."""
    why = (
        "People's answers do not put the judge right yet (the notes say why)"
        if asked
        else "Nobody has put the judge right"
    )
    return f"{why}: what it says of the models stands as it is."
