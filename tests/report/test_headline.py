"""The first sentences of a page, and encoders that an audit finds out."""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.core import roles
from culturekit.core.inputs import Numbered
from culturekit.core.registry import Entry, Spec
from culturekit.core.schemas import ARTIFACTS, MATCHES
from culturekit.core.tables import read_table
from culturekit.index.encoder import ENCODERS, EncoderIdentity, TooLong, Vectors
from culturekit.index.matching.comparison import MappingInputs, MappingOptions
from culturekit.index.matching.mapping import diagnosis_stage, map_stage, shuffle_stage
from culturekit.report.charts import ModelLine, Seen, in_order
from culturekit.report.headline import (
    EncoderTrial,
    Verdict,
    encoder_trial,
    question_about,
    sentences_on,
    standing,
    verdict_on,
)
from culturekit.report.run_folders import RunFolders
from tests.index.picture_world import image_table, write_built
from tests.recipes.built import built
from tests.report.pages import figure, line

NEARER = {"apple": 0.52, "pear": 0.47, "noise": 0.55, "real": 0.97, "fig": 0.98}
SHARP = EncoderTrial("clip", figure(0.9, 0), nearer=NEARER, references_nearer=0.99)
"""An encoder that maps references rightly, and tells the images of two models from pictures of nothing."""
BLIND = EncoderTrial("clip", figure(0.23, 0), nearer=NEARER, references_nearer=0.99)


def shown(*lines: ModelLine, trial: EncoderTrial | None = None, apart: frozenset[tuple[str, str]] = frozenset()) -> str:
    found = verdict_on(in_order(lines), trial=trial, apart=apart)
    return " ".join((found.headline, *found.sentences))


def test_a_simulated_model_that_shows_nothing_and_passes_others_is_lying() -> None:
    liar = line("mirage", 0.8, 0.125, free=1200, similarity=0.7)
    honest = line("atlas", 0.7, 0.69, free=0, similarity=0.97)
    found = verdict_on([honest, liar])
    assert (found.named, found.headline) == (("mirage",), "mirage is lying.")
    assert "rank 1 of 2. None of its 1,200 images shows any artifact" in found.sentences[0]
    assert "median similarity 0.70, where the other models have at least 0.97" in found.sentences[1]
    assert question_about([honest, liar]) == "Which of these two models is lying?"
    assert verdict_on([honest]).named == ()
    unscored = verdict_on([honest, line("short", math.nan, math.nan, free=0, similarity=0.97)])
    assert unscored.named == ()
    assert "too few batches" in unscored.sentences[0]


def test_a_biased_model_and_one_that_is_last_both_ways_are_not_lying() -> None:
    biased = line("biased", 0.4, 0.2, free=0, similarity=0.97)
    honest = line("atlas", 0.7, 0.69, free=0, similarity=0.97)
    last = line("blank", 0.3, 0.125, free=1200, similarity=0.7)
    assert verdict_on([honest, biased]).named == ()
    assert verdict_on([honest, biased, last]).named == ()
    assert "lying" not in shown(honest, biased, last)


def test_models_of_users_are_named_for_what_people_saw_and_an_interval_decides() -> None:
    real = line("apple", 0.8, None, free=None, similarity=0.9, corrected=0.13, nothing=0.97)
    assert verdict_on([real]).headline == "apple shows no artifact that people recognise."
    assert "Of 150 of its images that people looked at, 97% (96 to 98 % of all)" in shown(real)
    assert question_about([real, real]) == "What do these two models show?"
    doubtful = line("pear", 0.8, None, free=None, similarity=0.9, corrected=0.3, nothing=0.505)
    assert verdict_on([doubtful]).named == ()
    mostly = line("plum", 0.8, None, free=None, similarity=0.9, corrected=0.3, nothing=0.7)
    assert "in most of its images" in verdict_on([mostly]).headline
    overrated = line("fig", 0.8, None, free=None, similarity=0.9, corrected=0.3, nothing=0.02)
    assert verdict_on([overrated]).named == ()
    for each in (real, doubtful, mostly, overrated):
        assert "lying" not in shown(each)


def test_without_people_or_truth_nobody_is_named() -> None:
    noise = line("noise", 0.8, None, free=None, similarity=0.73)
    real = line("real", 0.7, None, free=None, similarity=0.9)
    found = verdict_on([real, noise], trial=SHARP)
    assert found.named == ()
    assert found.headline == "As mapped, noise shows most; nobody knows yet how often the mapping is right."
    assert "maps 90% (89 to 91 %) to their country. What models make may be harder" in found.sentences[0]
    assert "noise are hardly nearer to any artifact than pictures of nothing are (nearer in 55%" in found.sentences[1]
    assert "Only an audit can tell" in found.sentences[1]
    assert found.sentences[-1].endswith("an audit of some images by people would say by how much.")
    assert "hardly nearer" not in shown(real, trial=SHARP)
    assert "hardly nearer" not in shown(real, noise, trial=BLIND), "an encoder that fails accuses no model"


def test_an_encoder_that_fails_is_named_unless_people_saw_how_often_it_is_right() -> None:
    """It was said to fail where it mapped 62 to 85 % of images to the country that people saw."""
    blind = [line(name, 0.8, None, free=None, similarity=0.99) for name in ("apple", "pear")]
    found = verdict_on(blind, trial=BLIND)
    assert found.headline == "Do not trust these scores: the encoder clip fails on pictures whose artifact is known."
    assert "maps 23% (22 to 24 %) to their country, where chance gives 0%" in found.sentences[1]
    two = EncoderTrial("clip", figure(0.55, 0), chance=0.5)
    assert verdict_on(blind, trial=two).headline.startswith("Do not trust"), (
        "little more than chance among two countries"
    )
    looked_at = [
        replace(one, corrected=figure(0.6, 4), seen=seen(right)) for one, right in zip(blind, (0.62, 0.85), strict=True)
    ]
    audited = verdict_on(looked_at, trial=BLIND)
    assert "encoder" not in " ".join((audited.headline, *audited.sentences))
    assert "the country they saw in 62% (61 to 63 %) of apple and 85% (84 to 86 %) of pear" in audited.sentences[0]
    wrong = verdict_on([replace(one, seen=seen(0.25)) for one in looked_at], trial=BLIND)
    assert wrong.headline == "apple shows most, but not surely more than the other."
    assert wrong.sentences[0].startswith("Most images of apple and pear are mapped to something they do not show")


def test_a_model_that_draws_one_artifact_is_no_error_of_the_encoder() -> None:
    """Pictures of nothing scatter over many artifacts: that they score more than a narrow model says nothing."""
    narrow = line("fig", 0.13, 0.125, free=0, similarity=0.97)
    assert verdict_on([narrow]) == Verdict((), "No model surely shows less than its mapped diversity says.", ())
    assert "hardly" not in shown(narrow, trial=SHARP)


def test_a_rank_among_some_is_no_rank_among_all() -> None:
    """Ranks of the two models that people corrected stood in a table of five, and withheld scores came first."""
    some = [line(name, 0.5 + 0.1 * number, None, free=None, similarity=0.9) for number, name in enumerate("abcde")]
    audited = [
        replace(one, corrected=figure(value, 4), seen=seen(0.8))
        for one, value in zip(some[:2], (0.3, 0.2), strict=True)
    ]
    lines = in_order([*some[2:], *audited])
    assert [one.model for one in lines] == ["a", "b", "e", "d", "c"]
    found = verdict_on(lines, apart={("a", "b")}, withheld=["people marked too few items"])
    assert found.headline == "Of a and b, a shows most, surely more than the other. e, d and c are not corrected."
    assert "Corrected, b moves" not in " ".join(found.sentences)
    assert "What images of e, d and c really show is not known here" in found.sentences[-1]
    lacking = verdict_on(lines, prompts={"a": (2, 3)})
    assert "The score of a rests on 2 of 3 prompts: it cannot be compared with the others." in lacking.sentences


def test_the_answer_says_who_shows_most_and_of_whom_that_is_sure() -> None:
    lines = [line(name, 0.5, None, free=None, similarity=0.9, corrected=value, nothing=0.0)
             for name, value in (("a", 0.6), ("b", 0.5), ("c", 0.2))]  # fmt: skip
    sure = {("a", "c"), ("b", "c")}
    assert verdict_on(lines, apart=sure).headline == "a shows most, surely more than c; whether more than b is open."
    assert verdict_on(lines).headline == "a shows most, but not surely more than any other."
    assert verdict_on(lines, apart={*sure, ("a", "b")}).headline == "a shows most, surely more than all others."


def test_models_that_move_without_being_sure_are_said_to_move() -> None:
    """Mapped 2nd and corrected 4th stood beside "no two models surely stand in another order than mapped"."""
    drawn = (("a", 0.6, 0.61), ("b", 0.55, 0.4), ("c", 0.5, 0.5), ("d", 0.45, 0.45))
    lines = [
        line(name, mapped, None, free=None, similarity=0.9, corrected=value, nothing=0.0)
        for name, mapped, value in drawn
    ]
    text = shown(*lines, apart=frozenset({("a", "b")}))
    assert "Corrected, b moves from 2nd to 4th place, but which of two models shows more is not sure" in text
    assert "keep the order in which they are mapped" in shown(*lines[:1], lines[2])


def seen(right: float) -> Seen:
    return Seen(150, figure(0.02, 5), {"country": figure(right, 6)})


@pytest.mark.parametrize("seed", range(6))
def test_no_sentence_is_denied_by_the_numbers_beside_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = set()
    for _ in range(100):
        lines, trial, apart = random_lines(rng)
        found = verdict_on(lines, trial=trial, apart=apart)
        check_sentences(" ".join((found.headline, *found.sentences)), {one.model: one for one in lines}, trial, apart)
        kinds.add(found.headline.partition(" ")[2][:12])
    assert len(kinds) > 5


def check_sentences(
    text: str, of: dict[str, ModelLine], trial: EncoderTrial | None, apart: frozenset[tuple[str, str]]
) -> None:
    """Read each sentence that names models or numbers, and hold it to what it speaks of."""
    corrected = {name: one.corrected.value for name, one in of.items() if one.corrected}
    if "No model surely shows less" in text:
        assert not any(one.reality and (one.reality.high or 1.0) < one.mapped.value for one in of.values())
    if less := re.search(r"(\w+) surely shows less than its mapped diversity says: ", text):
        real = of[less[1]].reality
        assert real is not None
        assert real.value < of[less[1]].mapped.value
    if first := re.search(r"In truth (\w+) shows most", text):
        true = {name: one.truth.value for name, one in of.items() if one.truth}
        assert true[first[1]] == max(true.values())
    assert "nobody knows yet" not in text or not any(one.recognised for one in of.values())
    mapped = {name: one.mapped.value for name, one in of.items()}
    if first := re.search(r"As mapped, (\w+) shows most", text):
        assert mapped[first[1]] == max(mapped.values())
        assert len(corrected) < 2
    elif first := re.search(r"(?:Of ([\w, ]+), )?(?<!truth )\b(\w+) shows most(.*?)\.", text):
        among = set(re.findall(r"\w+", first[1] or "")) - {"and"} or set(of)
        assert among == set(corrected)
        assert corrected[first[2]] == max(corrected.values())
        check_sure(first[2], first[3], "more than", corrected, {worse for better, worse in apart if better == first[2]})
    for name, before, after, among_some in re.findall(
        r"(\w+) moves from (\d)\w\w to (\d)\w\w place( of these \d models)?", text
    ):
        assert bool(among_some) == (len(corrected) < len(of))
        for position, values in ((before, {one: mapped[one] for one in corrected}), (after, corrected)):
            assert sorted(values, key=values.__getitem__, reverse=True).index(name) + 1 == int(position)
    if "moves from" in text or "keep the order in which they are mapped" in text:
        assert not any(mapped[more] < mapped[less] for more, less in apart)
    for share, name in re.findall(r"(\d+)% \([^)]*\) of (\w+)", text.partition("country they saw")[2]):
        right = of[name].recognised
        assert right is not None
        assert f"{right.value:.0%}" == f"{share}%"
    if blurred := re.search(r"The images of ([^.]*?) are hardly nearer", text):
        for name in (name for name in of if re.search(rf"\b{name}\b", blurred[1])):
            assert trial is not None
            assert trial.nearer[name] <= 0.6
            assert max(trial.references_nearer, *trial.nearer.values()) >= 0.9
    if "Do not trust" in text:
        assert trial is not None
        assert (trial.right.value < 0.75) if trial.right else (trial.shuffled and trial.shuffled[1] <= 0.7)
    if "encoder" in text:
        assert not any(one.recognised for one in of.values())
    if wrong := re.search(r"Most images of (.*?) are mapped to something", text):
        rates = [of[name].recognised for name in of if re.search(rf"\b{name}\b", wrong[1])]
        assert all(rate is not None and rate.value < 0.5 for rate in rates)


def check_sure(best: str, how: str, over: str, scored: Iterable[str], passed: set[str]) -> None:
    """Hold what is said to be sure, and what to be open, to what is."""
    others = {name for name in scored if name != best}
    named = re.search(rf", surely {over} (.*?)(?:;|$)", how)
    sure = set(re.findall(r"\w+", named[1])) & others if named else set()
    if named and named[1] in {"the other", "all others"}:
        sure = others
    assert sure == passed & others
    assert bool(others - sure) == ("open" in how or "but not surely" in how)


@pytest.mark.parametrize("seed", range(6))
def test_no_order_of_any_recipe_is_denied_by_its_table(seed: int) -> None:
    """Tables as scores have them, without some models, some limits, and with the lowest as the best."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        lowest, models = bool(rng.random() < 0.4), NAMES[: int(rng.integers(1, 6))]
        tables, standings = {}, []
        for by in ("people", "the judge alone", "the truth"):
            rows = [scored(name, rng) for name in models if rng.random() < 0.85]
            types = {"model": pl.String, "metric": pl.String, "value": pl.Float64, "n": pl.Int64}
            tables[by] = pl.DataFrame(rows, schema=types | {"ci_low": pl.Float64, "ci_high": pl.Float64})
            words = ("is first", "ahead of")
            standings.append(standing(tables[by], models, by, words, {"metric": "align"}, lowest=lowest))
        check_order(" ".join(sentences_on(standings)), tables, models, lowest=lowest)


def scored(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """Draw a row of scores: some without limits, a few without a value."""
    value = float(rng.choice([rng.normal(), math.nan], p=[0.95, 0.05]))
    low, high = (None, None) if rng.random() < 0.15 else (value - rng.random() / 3, value + rng.random() / 3)
    return {"model": name, "metric": "align", "value": value, "n": 9, "ci_low": low, "ci_high": high}


def check_order(
    text: str, tables: Mapping[str, pl.DataFrame], models: Sequence[str], *, lowest: bool, verb: str = "is first",
    over: str = "ahead of",
) -> None:  # fmt: skip
    """Read who is first by whom, and hold it to the tables."""
    size = pl.col("value").abs() if lowest else -pl.col("value")
    asked = pl.col("model").replace_strict({name: number for number, name in enumerate(models)})
    ordered = {by: table.filter(pl.col("value").is_not_nan()).sort(size, asked) for by, table in tables.items()}
    first = {by: rows["model"][0] for by, rows in ordered.items() if rows.height}
    if len(models) < 2 or not first:
        assert text == ""
        return
    pattern = rf"By ([a-z' -]+), (\w+) (?:{verb}|comes first instead) \(([^()]*)\)(.*?)\.(?: |$)"
    spoken = re.findall(pattern, text)
    alike = re.search(r"(?:^|\. )([A-Z][a-z', -]+?) puts? (\w+) first too", text)
    named_by = {by: name for by, name, _, _ in spoken}
    agree = [by for by in first if by not in named_by]
    assert all(alike and by in alike[1].lower() and alike[2] == first[by] for by in agree)
    assert named_by == {by: first[by] for by in named_by}
    for by, best, _, how in spoken:
        rows = {row["model"]: row for row in ordered[by].to_dicts()}
        assert ("with such a score" in text) or len(rows) == len(models)
        passed = {name for name in rows if beyond(rows[best], rows[name], lowest)}
        check_sure(best, how, over, rows, passed)


def beyond(better: dict[str, Any], worse: dict[str, Any], lowest: bool) -> bool:
    """Tell whether two intervals leave no doubt; those of a size begin at 0 where they hold it."""
    if None in (better["ci_low"], worse["ci_low"]):
        return False
    if not lowest:
        return bool(better["ci_low"] > worse["ci_high"])
    farthest = max(abs(better["ci_low"]), abs(better["ci_high"]))
    nearest = 0 if worse["ci_low"] <= 0 <= worse["ci_high"] else min(abs(worse["ci_low"]), abs(worse["ci_high"]))
    return bool(farthest < nearest)


NAMES = ["ash", "birch", "cedar", "dahlia", "elm"]


def random_lines(rng: np.random.Generator) -> tuple[list[ModelLine], EncoderTrial | None, frozenset[tuple[str, str]]]:
    """Draw models as runs have them: all, some or none audited, of known truth or not; pairs in corrected order."""
    names = NAMES[: int(rng.integers(1, 6))]
    audited, known = float(rng.choice([0, 0.5, 1])), rng.random() < 0.3
    lines = []
    for name in names:
        mapped, true, corrected, right, similarity = (round(float(one), 3) for one in rng.random(5))
        free = int(rng.choice([0, 0, 700, 1200])) if known else None
        one = line(name, mapped, true if known else None, free=free, similarity=similarity)
        lines.append(replace(one, corrected=figure(corrected, 4), seen=seen(right)) if rng.random() < audited else one)
    values = {one.model: one.corrected.value for one in lines if one.corrected}
    pairs = [(a, b) for a in values for b in values if values[a] > values[b] + 0.1 and rng.random() < 0.7]
    right_of = figure(round(float(rng.random()), 3), 0) if rng.random() < 0.6 else None
    nearer = {name: float(rng.random()) for name in names}
    trial = EncoderTrial("clip", right_of, float(rng.random() / 2), "why", nearer, float(rng.random()),
                         (names[0], float(rng.random())))  # fmt: skip
    return lines, trial if rng.random() < 0.7 else None, frozenset(pairs)


ARTIFACTS_DRAWN, COUNTRIES, SIDE = 36, ("BR", "FR", "IN", "JP", "NG", "TR"), 8
Picture = NDArray[np.uint8]


def drawn(artifact: int, rng: np.random.Generator) -> Picture:
    """Draw the shape of an artifact in another colour each time, a little darker than the paper."""
    shape = np.random.default_rng(artifact).integers(0, 2, (SIDE, SIDE, 1))
    paper = rng.uniform(80, 250, 3)
    ink = paper - rng.uniform(20, 40)
    pixels = np.kron(np.where(shape, ink, paper), np.ones((SIDE, SIDE, 1)))
    return np.clip(pixels + rng.normal(0, 8, pixels.shape), 0, 255).astype(np.uint8)


def of_nothing(rng: np.random.Generator) -> Picture:
    noise = rng.uniform(0, 255, (SIDE * SIDE, SIDE * SIDE, 3))
    return (0.5 * noise + rng.uniform(0, 120, 3)).astype(np.uint8)


def shapes(picture: Picture) -> NDArray[np.float64]:
    grey = picture.mean(axis=2).reshape(SIDE, SIDE, SIDE, SIDE).mean(axis=(1, 3)).ravel()
    return np.asarray(grey - grey.mean() + 1e-9)


def mean_colours(picture: Picture) -> NDArray[np.float64]:
    half = SIDE // 2
    return np.asarray(picture.reshape(half, 2 * SIDE, half, 2 * SIDE, 3).mean(axis=(1, 3)).ravel() + 1.0)


def random(picture: Picture) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(picture.tobytes()).digest()[:8], "little")
    return np.random.default_rng(seed).normal(size=32)


def constant(picture: Picture) -> NDArray[np.float64]:
    return np.ones(32)


@dataclass(frozen=True)
class NumpyEncoder:
    vector: Callable[[Picture], NDArray[np.float64]]
    caveat: str = ""
    batch_size: int = 64

    @property
    def identity(self) -> EncoderIdentity:
        dim = len(self.vector(np.zeros((SIDE * SIDE, SIDE * SIDE, 3), np.uint8)))
        return EncoderIdentity(self.vector.__name__, "none", "1", "none", "float32", dim)

    def prepare(self, picture: Picture) -> Picture:
        return picture

    def encode_prepared(self, pictures: Sequence[Picture]) -> Vectors:
        found = np.stack([self.vector(picture) for picture in pictures])
        unit: Vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
        return unit

    encode_images = encode_prepared

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        return []


VECTORS = {vector.__name__: vector for vector in (shapes, mean_colours, random, constant)}


def make(spec: Spec) -> NumpyEncoder:
    return NumpyEncoder(VECTORS[spec.name])


def finished(
    root: Path, encoder: NumpyEncoder, references: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[RunFolders, dict[str, float]]:
    """Map images of two models that show artifacts and of one that shows none; say how often that is right."""
    name = encoder.vector.__name__
    monkeypatch.setitem(ENCODERS.entries, name, Entry(name, f"{__name__}:make", ""))
    rng, ids = np.random.default_rng(5), [f"Q{number:02d}" for number in range(ARTIFACTS_DRAWN)]
    shown_in = [COUNTRIES[number % len(COUNTRIES)] for number in range(ARTIFACTS_DRAWN)]
    rows = [(one, one, ["cuisine"], [iso], ["x"]) for one, iso in zip(ids, shown_in, strict=True)]
    artifacts = pl.DataFrame(rows, schema=ARTIFACTS.schema, orient="row")
    vectors = encoder.encode_prepared([drawn(n, rng) for _ in range(references) for n in range(ARTIFACTS_DRAWN)])
    sources = [f"r{number}" for number in range(len(vectors))]
    index = pl.DataFrame({"channel": "image", "artifact_id": ids * references, "source": sources})
    models, floors = ("apple", "pear", "blank"), (roles.CULTURE_FREE,)
    run = RunFolders(root, models, ())
    write_built(
        run.folder(roles.INDEX), index, vectors, artifacts, encoder=name, identity=encoder.identity.as_options()
    )
    right = {}
    for model in (*models, *floors):
        shown = rng.permutation(np.repeat(np.arange(ARTIFACTS_DRAWN), 2))
        pictures = [drawn(n, rng) if model in models[:2] else of_nothing(rng) for n in shown.tolist()]
        image_table(run.folder(roles.IMAGES, model), pictures, model=model)
        mapped = matched(run, model)
        hits = mapped.filter(rank=1)["country"].to_numpy() == np.array([shown_in[n] for n in shown])
        right[model] = float(hits.mean())
    built(shuffle_stage(run.table(roles.IMAGES, "apple")), run.folder(roles.IMAGES, roles.SHUFFLED))
    matched(run, roles.SHUFFLED)
    tables = Numbered([run.table(roles.MATCHES, model) for model in models])
    built(diagnosis_stage(run.folder(roles.INDEX), tables, mapping=MappingOptions()), run.folder(roles.DIAGNOSIS))
    return RunFolders(root, models, tuple(path.name for path in root.iterdir())), right


def matched(run: RunFolders, model: str) -> pl.DataFrame:
    inputs = MappingInputs(run.folder(roles.INDEX), run.table(roles.IMAGES, model))
    built(map_stage(inputs, MappingOptions()), run.folder(roles.MATCHES, model))
    return read_table(run.table(roles.MATCHES, model), MATCHES).sort("image_id")


def before_audit(run: RunFolders) -> list[ModelLine]:
    return [line(model, 0.5, None, free=None, similarity=0.99) for model in run.models]


@pytest.mark.parametrize(("vector", "references"), [
    (shapes, 3), (mean_colours, 3), (random, 3), (constant, 3), (shapes, 1), (mean_colours, 1)
])  # fmt: skip
def test_the_encoder_that_fails_is_named_before_an_audit_and_the_audit_alone_speaks_after_it(
    vector: Callable[[Picture], NDArray[np.float64]], references: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, right = finished(tmp_path, NumpyEncoder(vector), references, monkeypatch)
    trial = encoder_trial(run)
    assert trial is not None
    good = vector is shapes
    assert (right["apple"] > 0.9) is good
    before = verdict_on(before_audit(run), trial=trial)
    text = " ".join((before.headline, *before.sentences))
    assert before.headline.startswith("Do not trust these scores: the encoder ") is not good
    assert ("could not be tried: no artifact has two reference pictures" in text) is (references == 1)
    assert ("The images of blank are hardly nearer to any artifact than pictures of nothing" in text) is good
    if references > 1:
        assert trial.right is not None
        assert trial.right.value == pytest.approx(right["apple"], abs=0.15), "references foretell what images do"
        assert f"maps {trial.right.value:.0%}" in text
    after = verdict_on(
        [
            replace(
                one, corrected=figure(0.4, 4), seen=Seen(150, figure(0.02, 5), {"country": figure(right[one.model], 6)})
            )
            for one in before_audit(run)[:2]
        ],
        trial=trial,
    )
    text = " ".join((after.headline, *after.sentences))
    assert "encoder" not in text
    assert "pictures of nothing" not in text
    assert ("Most images of apple and pear are mapped to something they do not show" in text) is not good
    assert f"the country they saw in {right['apple']:.0%}" in text
