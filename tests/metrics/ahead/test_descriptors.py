"""ALIGN, HAL, EXAG, FAITH, DDIV and SDIV: against loops over pairs, scikit-learn, and CULTIVate's tables."""

import json
import math
import random
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.core.schemas import DESCRIPTORS, IMAGES, JUDGMENTS, PROMPTS
from culturekit.metrics import (
    DEFAULT_TAU,
    PUBLISHED_TAUS,
    BestMatches,
    DimensionScore,
    PhraseLists,
    align,
    align_detail,
    best_matches,
    calibrate_tau,
    descriptor_diversity,
    exaggeration,
    faithfulness,
    hallucination,
    hallucination_detail,
    normalise_phrase,
    phrase_lists,
    semantic_diversity,
)
from culturekit.metrics.ahead.matching import NOTHING_SAID
from culturekit.recipes.cultivate.scores import AheadInput, AheadOptions, score_ahead
from tests.recipes.cultivate.ahead_world import image_row, judgment_row

Image = Mapping[str, NDArray[np.float64]]


def random_image(rng: np.random.Generator, n_ref: Mapping[str, int], *, most: int = 6) -> Image:
    """Draw similarities of an image; a dimension may be empty or missing."""
    image = {}
    for name, count in n_ref.items():
        if rng.random() > 0.15:
            image[name] = rng.uniform(-0.2, 1.0, (int(rng.integers(0, most)), count)).round(2)
    return image


def align_by_pairs(image: Image, n_ref: Mapping[str, int], tau: float, *, pooled: bool = False) -> float:
    shares, hits, total = [], 0, 0
    for name, count in n_ref.items():
        if count:
            shown = sum(any(row[j] >= tau for row in image.get(name, ())) for j in range(count))
            shares.append(shown / count)
            hits, total = hits + shown, total + count
    return (hits / total if pooled else sum(shares) / len(shares)) if shares else math.nan


def hal_by_pairs(image: Image, n_ref: Mapping[str, int], tau: float, *, pooled: bool = False) -> float:
    shares, wrong, total = [], 0, 0
    for name, count in n_ref.items():
        if count:
            rows = list(image.get(name, ()))
            alone = sum(all(value < tau for value in row) for row in rows)
            shares.append(alone / len(rows) if rows else 0.0)
            wrong, total = wrong + alone, total + len(rows)
    if not shares:
        return math.nan
    return (wrong / total if total else 0.0) if pooled else sum(shares) / len(shares)


def ddiv_by_pairs(images: Sequence[Image], n_ref: Mapping[str, int], tau: float) -> float:
    scores = []
    for name, count in n_ref.items():
        if count:
            cover = [sum(any(row[j] >= tau for row in image.get(name, ())) for image in images) for j in range(count)]
            shares = [c / sum(cover) for c in cover if c]
            scores.append(-sum(p * math.log(p) for p in shares) / math.log(count) if shares and count > 1 else 0.0)
    return sum(scores) / len(scores) if scores and len(images) > 1 else math.nan


def sdiv_by_pairs(images: Sequence[Image], n_ref: Mapping[str, int], tau: float) -> float:
    scores = []
    for name, count in n_ref.items():
        if count:
            pooled = {name: np.concatenate([image.get(name, np.empty((0, count))) for image in images])}
            alone = [align_by_pairs(image, {name: count}, tau) for image in images]
            scores.append(align_by_pairs(pooled, {name: count}, tau) - sum(alone) / len(alone))
    return sum(scores) / len(scores) if scores and len(images) > 1 else math.nan


N_REF = {"attire": 3, "background": 4, "interaction": 2, "objects": 5, "spatial": 1}
IMAGE = {"objects": np.array([[0.9, 0.1], [0.2, 0.3]]), "attire": np.array([[0.6]])}
COUNTS = {"objects": 2, "attire": 1}


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("tau", [0.29, 0.52, 0.9])
def test_they_are_what_a_loop_over_pairs_gives(seed: int, tau: float) -> None:
    rng = np.random.default_rng(seed)
    image = random_image(rng, N_REF)
    assert align(image, N_REF, tau=tau) == pytest.approx(align_by_pairs(image, N_REF, tau), abs=1e-12)
    assert hallucination(image, N_REF, tau=tau) == pytest.approx(hal_by_pairs(image, N_REF, tau), abs=1e-12)
    pooled = align_by_pairs(image, N_REF, tau, pooled=True), hal_by_pairs(image, N_REF, tau, pooled=True)
    assert align(image, N_REF, tau=tau, aggregate="pooled") == pytest.approx(pooled[0], abs=1e-12)
    assert hallucination(image, N_REF, tau=tau, aggregate="pooled") == pytest.approx(pooled[1], abs=1e-12)


@pytest.mark.parametrize("nothing", [{}, {"objects": []}, {"objects": np.empty((0, 2))}, {"objects": np.empty((0, 0))}])
def test_saying_nothing_is_flagged_and_counts_as_zero(nothing: dict[str, Any]) -> None:
    for detail in (align_detail, hallucination_detail):
        for aggregate in ("dimension", "pooled"):
            found = detail(nothing, COUNTS, tau=0.5, aggregate=aggregate)
            assert found == DimensionScore(0.0, {"attire": 0.0, "objects": 0.0}, ("attire", "objects"), ())


@pytest.mark.parametrize("n_ref", [{}, {"objects": 0}, {"people": 3}])
@pytest.mark.parametrize("aggregate", ["dimension", "pooled"])
def test_where_nothing_can_be_scored_the_score_is_missing(n_ref: dict[str, int], aggregate: Any) -> None:
    found = align_detail({}, n_ref, tau=0.5, aggregate=aggregate)
    assert math.isnan(found.value)
    assert math.isnan(hallucination({}, n_ref, tau=0.5, aggregate=aggregate))
    assert found.ignored == (("people",) if "people" in n_ref else ())


def test_a_dimension_that_the_extractor_lacks_is_left_out_and_listed() -> None:
    n_ref = {**COUNTS, "people": 3}
    for detail in (align_detail, hallucination_detail):
        assert detail(IMAGE, n_ref, tau=0.5).ignored == ("people",)
        assert detail(IMAGE, n_ref, tau=0.5).value == detail(IMAGE, COUNTS, tau=0.5).value
        stated = detail(IMAGE, COUNTS, tau=0.5, extractor_dimensions=["objects"])
        assert (stated.ignored, set(stated.per_dimension)) == (("attire",), {"objects"})
        as_none = detail({**IMAGE, "attire": None}, COUNTS, tau=0.5)
        assert as_none == stated


def test_an_extractor_that_has_people_is_scored_on_them() -> None:
    n_ref = {"objects": 2, "people": 2}
    seen = align_detail({"objects": np.eye(2), "people": np.eye(2)[:1]}, n_ref, tau=0.5)
    assert (seen.value, seen.ignored) == (0.75, ())
    stated = align_detail({"objects": np.eye(2)}, n_ref, tau=0.5, extractor_dimensions=("objects", "people"))
    assert (stated.value, stated.empty) == (0.5, ("people",))


def test_predictions_in_a_dimension_without_references_are_left_out_and_listed() -> None:
    image: dict[str, Any] = {**IMAGE, "spatial": np.empty((2, 0)), "background": [[0.5]], "interaction": []}
    found = hallucination_detail(image, {**COUNTS, "spatial": 0}, tau=0.52)
    assert found.ignored == ("background", "spatial")
    assert found.value == hallucination(IMAGE, COUNTS, tau=0.52)


class Draw:
    """Random phrases, references of some groups, and predictions of some cells; some cells say nothing."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.vectors = rng.normal(size=(60, 8)).astype(np.float32) * rng.uniform(0.1, 9, (60, 1)).astype(np.float32)
        self.references = phrase_lists([rng.integers(0, 60, rng.integers(1, 6)).tolist() for _ in range(7)])
        self.predictions = phrase_lists([rng.integers(0, 60, rng.integers(0, 9)).tolist() for _ in range(40)])
        self.groups = rng.integers(0, 7, 40)

    def matches(self) -> BestMatches:
        return best_matches(self.vectors, references=self.references, predictions=self.predictions, groups=self.groups)

    def cosines(self, cell: int) -> NDArray[np.float64]:
        """The similarities of one cell by scikit-learn, (n_pred, n_ref)."""

        said, asked = listed(self.predictions, cell), listed(self.references, self.groups[cell])
        if len(said) == 0:
            return np.empty((0, len(asked)))
        vectors = self.vectors.astype(np.float64)
        return np.asarray(cosine_similarity(vectors[said], vectors[asked]))


def listed(lists: PhraseLists, number: int) -> NDArray[np.int64]:
    return lists.phrases[lists.starts[number] : lists.starts[number + 1]]


@pytest.mark.parametrize("seed", range(10))
def test_the_best_similarities_are_those_of_scikit_learn_pair_by_pair(seed: int) -> None:
    draw = Draw(seed)
    found = draw.matches()
    for cell in range(40):
        cosines = draw.cosines(cell)
        of_reference = found.of_reference[found.reference_starts[cell] : found.reference_starts[cell + 1]]
        of_prediction = found.of_prediction[draw.predictions.starts[cell] : draw.predictions.starts[cell + 1]]
        np.testing.assert_allclose(of_reference, cosines.max(axis=0, initial=NOTHING_SAID), atol=1e-9)
        np.testing.assert_allclose(of_prediction, cosines.max(axis=1), atol=1e-9)
        alignment = align({"objects": cosines}, {"objects": cosines.shape[1]}, tau=0.4)
        assert found.covered(0.4)[cell] / cosines.shape[1] == pytest.approx(alignment)


def test_without_cells_there_are_no_matches() -> None:
    found = best_matches(
        np.eye(2), references=phrase_lists([[0]]), predictions=phrase_lists([]), groups=np.empty(0, np.int64)
    )
    assert (len(found.of_reference), len(found.of_prediction), len(found.covered(0.5))) == (0, 0, 0)


def test_a_list_counts_a_phrase_once() -> None:
    lists = phrase_lists([[3, 1, 3], [], [2]])
    assert (lists.phrases.tolist(), lists.starts.tolist(), lists.lengths.tolist()) == (
        [1, 3, 2],
        [0, 2, 2, 3],
        [2, 0, 1],
    )


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("  Red\u00a0 SARI\n", "red sari"),
        ("Cafe\u0301", "café"),
        ("Straße", "strasse"),
        ("\u1e9e", "ss"),
        ("ǰ", "ǰ"),
        ("", ""),
        (" \t ", ""),
    ],
)
def test_equal_phrases_have_one_form(text: str, form: str) -> None:
    assert normalise_phrase(text) == unicodedata.normalize("NFC", form)


@given(st.text(max_size=30))
def test_a_normal_form_is_normal(text: str) -> None:
    form = normalise_phrase(text)
    assert normalise_phrase(form) == form
    assert normalise_phrase(f"  {unicodedata.normalize('NFD', text)}\n") == form
    assert unicodedata.is_normalized("NFC", form)


RNG = np.random.default_rng(5)
ALIGN_IMAGES = [{"objects": RNG.random((6, 4)), "attire": RNG.random((3, 2))} for _ in range(8)]


def test_it_is_a_quantile_of_best_matches() -> None:
    best = [max(column) for image in ALIGN_IMAGES for array in image.values() for column in array.T]
    for quantile in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert calibrate_tau(ALIGN_IMAGES, quantile=quantile) == pytest.approx(
            float(np.quantile(best, quantile)), abs=1e-15
        )
    assert calibrate_tau(ALIGN_IMAGES) == calibrate_tau(ALIGN_IMAGES, quantile=0.75) == calibrate_tau(best)
    assert calibrate_tau(np.array(best)) == calibrate_tau(ALIGN_IMAGES)


def test_the_published_operating_points() -> None:
    assert list(PUBLISHED_TAUS.items()) == [(0.25, 0.29), (0.5, 0.39), (0.75, 0.52)]
    assert DEFAULT_TAU == 0.52


# CULTIVate, Table 1: ALIGN, HAL, EXAG, FAITH
TABLE_1 = {
    ("Std-3.5-medium", "GN"): "0.30 0.57 0.05 0.56",
    ("Std-3.5-medium", "GS"): "0.25 0.63 0.08 0.51",
    ("FLUX.1-dev", "GN"): "0.31 0.59 0.03 0.56",
    ("FLUX.1-dev", "GS"): "0.23 0.66 0.06 0.50",
    ("Qwen-Image", "GN"): "0.36 0.53 0.06 0.59",
    ("Qwen-Image", "GS"): "0.30 0.59 0.10 0.54",
    ("DALL-E 3", "GN"): "0.37 0.49 0.09 0.60",
    ("DALL-E 3", "GS"): "0.32 0.54 0.13 0.55",
    ("GPT-Image-1", "GN"): "0.36 0.47 0.06 0.61",
    ("GPT-Image-1", "GS"): "0.31 0.54 0.06 0.57",
    ("Nano Banana", "GN"): "0.40 0.44 0.09 0.62",
    ("Nano Banana", "GS"): "0.36 0.49 0.12 0.58",
}


def test_faith_of_table_1_follows_from_its_other_columns_in_all_twelve_rows() -> None:
    for row in TABLE_1.values():
        align, hal, exag = map(float, row.split()[:3])
        assert f"{faithfulness(align, hal, exag):.2f}" == row.split()[3]
    assert len(TABLE_1) == 12


def test_faith_of_arrays_is_that_of_their_elements() -> None:
    rng = np.random.default_rng(0)
    align, hal, exag = rng.random((3, 4, 5))
    found = np.asarray(faithfulness(align, hal, exag))
    assert found.shape == (4, 5)
    assert math.isnan(faithfulness(math.nan, 0.0, 0.0))
    for place in np.ndindex(4, 5):
        assert found[place] == faithfulness(float(align[place]), float(hal[place]), float(exag[place]))


def test_exaggeration_pair_by_pair() -> None:
    rng = np.random.default_rng(3)
    scores, real = rng.random((7, 4)), rng.random(4)
    by_pairs = [[max(0.0, f - usual) for f, usual in zip(row, real, strict=True)] for row in scores]
    np.testing.assert_allclose(exaggeration(scores, real), [sum(row) / 4 for row in by_pairs], atol=1e-15)
    np.testing.assert_allclose(exaggeration(scores, real, reduce="max"), [max(row) for row in by_pairs], atol=1e-15)


def test_without_candidates_exaggeration_is_missing() -> None:
    for reduce in ("mean", "max"):
        assert np.isnan(exaggeration(np.empty((3, 0)), [], reduce=reduce)).tolist() == [True] * 3
    assert exaggeration(np.empty((0, 2)), [0.1, 0.2]).shape == (0,)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tau", [0.39, 0.52, 0.95])
def test_diversity_is_what_a_loop_over_pairs_gives(seed: int, tau: float) -> None:
    rng = np.random.default_rng(seed)
    images = [random_image(rng, N_REF) for _ in range(int(rng.integers(2, 6)))]
    assert descriptor_diversity(images, N_REF, tau=tau) == pytest.approx(ddiv_by_pairs(images, N_REF, tau), abs=1e-12)
    assert semantic_diversity(images, N_REF, tau=tau) == pytest.approx(sdiv_by_pairs(images, N_REF, tau), abs=1e-12)


@pytest.mark.parametrize("score", [descriptor_diversity, semantic_diversity])
def test_where_there_is_nothing_to_compare_the_score_is_missing(score: Any) -> None:
    assert math.isnan(score([], N_REF, tau=0.5))
    assert math.isnan(score([{"objects": np.eye(5)}], N_REF, tau=0.5))
    assert math.isnan(score([{}, {}], {}, tau=0.5))
    assert math.isnan(score([{}, {}], {"people": 2}, tau=0.5))


@pytest.mark.parametrize("score", [descriptor_diversity, semantic_diversity])
def test_a_dimension_that_the_extractor_lacks_is_left_out(score: Any) -> None:
    images = [{"objects": np.eye(2)[:1]}, {"objects": np.eye(2)}]
    alone = score(images, {"objects": 2}, tau=0.5)
    assert score(images, {"objects": 2, "people": 3}, tau=0.5) == alone
    assert score([{**image, "attire": None} for image in images], {"objects": 2, "attire": 3}, tau=0.5) == alone
    assert score(images, {"objects": 2, "attire": 3}, tau=0.5, extractor_dimensions=("objects",)) == alone
    assert score(images, {"objects": 2, "attire": 3}, tau=0.5) == pytest.approx(alone / 2)
    one_saw = [images[0], {**images[1], "people": np.eye(2)}]
    two = score([{**images[0], "people": []}, one_saw[1]], {"objects": 2, "people": 2}, tau=0.5)
    assert score(one_saw, {"objects": 2, "people": 2}, tau=0.5) == two


TAU = 0.52
FIVE = ("setting", "objects", "attire", "interaction", "spatial")
Tokens = dict[str, list[str]]


def published(folder: Path) -> dict[str, tuple[str, Tokens]]:
    """Read country and tokens of each published sub-activity."""
    found = {}
    for activities in json.loads((folder / "ahead/iran_descriptors.json").read_text(encoding="utf-8")).values():
        for name, lists in activities.items():
            found[f"ir-{name}"] = "IR", {dim: [each["token"] for each in rows] for dim, rows in lists.items()}
    for name, lists in json.loads((folder / "ahead/nepal_tokens.json").read_text(encoding="utf-8")).items():
        found[f"np-{name}"] = "NP", lists
    return found


@cache
def vector(phrase: str) -> list[float]:
    """Add up a direction per word, so that phrases which share words are alike."""
    total = [0.0] * 24
    for word in phrase.casefold().split():
        drawn = random.Random(word)
        total = [number + drawn.gauss(0, 1) for number in total]
    return total


@cache
def cosine(one: str, other: str) -> float:
    a, b = vector(one.casefold()), vector(other.casefold())
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def once(tokens: list[str]) -> list[str]:
    return list(dict.fromkeys(" ".join(token.casefold().split()) for token in tokens))


def extracted(asked: dict[str, tuple[str, Tokens]], prompt: str, image: int) -> Tokens:
    """Draw what an extractor says: tokens of this activity, of others, some shortened; sometimes nothing."""
    drawn = random.Random(f"{prompt} {image}")
    said: Tokens = {}
    for dimension in FIVE:
        own = asked[prompt][1][dimension]
        others = [token for name, (_, lists) in asked.items() if name != prompt for token in lists[dimension]]
        chosen = drawn.sample(own, 3) + drawn.sample(others, 2)
        said[dimension] = [] if drawn.random() < 0.1 else [drawn.choice((token, token.split()[0])) for token in chosen]
    return said


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def tables(asked: dict[str, tuple[str, Tokens]], said: dict[str, list[Tokens]]) -> AheadInput:
    """Write it all as tables: references under the published names, predictions under `background`."""
    descriptors, images, rows, stereotypes = [], [], [], []
    for prompt, (_, lists) in asked.items():
        descriptors += [
            {"prompt_id": prompt, "dimension": dimension, "token": token, "style": "traditional|modern",
             "necessity": "optional", "proposers": ["published"]}
            for dimension, tokens in lists.items() for token in dict.fromkeys(tokens)
        ]  # fmt: skip
        for model in ("made", "real"):
            for number, lists_said in enumerate(said[prompt]):
                name = f"{model}/{prompt}/{number}"
                images.append(image_row(name, model=model, prompt_id=prompt, repeat=number))
                for dimension, tokens in lists_said.items():
                    ours = "background" if dimension == "setting" else dimension
                    rows += [
                        judgment_row(name, token, task="extract", dimension=ours)
                        for token in list(dict.fromkeys(tokens)) or [""]
                    ]
                stereotypes += [
                    judgment_row(name, token, task="stereotype", judge="vqa", value=score(name, token))
                    for token in ("rug", "mountain", "veil")
                ]
    prompts = [
        {"prompt_id": prompt, "text": prompt, "benchmark": "cultivate", "kind": "activity", "country": country,
         "language": "en", "template_id": "t"}
        for prompt, (country, _) in asked.items()
    ]  # fmt: skip
    phrases = sorted({*(row["token"] for row in descriptors), *(row["item"] for row in rows)} - {""})
    return AheadInput(
        pl.DataFrame(images, schema=IMAGES.schema),
        pl.DataFrame(prompts, schema=PROMPTS.schema),
        pl.DataFrame(descriptors, schema=DESCRIPTORS.schema),
        pl.DataFrame(rows, schema=JUDGMENTS.schema),
        np.array([vector(phrase) for phrase in phrases]),
        phrases,
        pl.DataFrame(stereotypes, schema=JUDGMENTS.schema),
    )


def score(image: str, token: str) -> float:
    return random.Random(f"{image} {token}").random()


def exag_by_loop(asked: dict[str, tuple[str, Tokens]], image: str) -> float:
    country = asked[image.split("/")[1]][0]
    real = [f"real/{prompt}/{number}" for prompt in asked if asked[prompt][0] == country for number in range(4)]
    tokens = ("rug", "mountain", "veil")
    return mean([max(0.0, score(image, token) - mean([score(name, token) for name in real])) for token in tokens])


@pytest.mark.parametrize("aggregate", ["dimension", "pooled"])
def test_scores_on_published_descriptors_are_those_of_a_loop(
    shared_data: Path, aggregate: Literal["dimension", "pooled"]
) -> None:
    asked = published(shared_data)
    said = {prompt: [extracted(asked, prompt, image) for image in range(4)] for prompt in asked}
    answer = score_ahead(tables(asked, said), options=AheadOptions(tau=TAU, real="real", aggregate=aggregate))
    found: dict[tuple[str, str], float] = {
        (row["metric"], row["item"]): row["value"] for row in answer.scored.values.filter(model="made").to_dicts()
    }
    wanted: dict[tuple[str, str], Any] = {}
    for prompt, (_, lists) in asked.items():
        n_ref, pooled = {name: len(once(lists[name])) for name in FIVE}, aggregate == "pooled"
        arrays = [{name: similar(lists[name], image[name]) for name in FIVE} for image in said[prompt]]
        aligned = [align_by_pairs(array, n_ref, TAU, pooled=pooled) for array in arrays]
        together = {name: np.concatenate([array[name] for array in arrays]) for name in FIVE}
        wanted[("ddiv", prompt)] = ddiv_by_pairs(arrays, n_ref, TAU)
        wanted[("sdiv", prompt)] = align_by_pairs(together, n_ref, TAU, pooled=pooled) - mean(aligned)
        for number, array in enumerate(arrays):
            name = f"made/{prompt}/{number}"
            wanted[("align", name)] = aligned[number]
            wanted[("hal", name)] = hal_by_pairs(array, n_ref, TAU, pooled=pooled)
            wanted[("exag", name)] = exag_by_loop(asked, name)
            kinds = wanted[("align", name)], 1 - wanted[("hal", name)], 1 - wanted[("exag", name)]
            wanted[("faith", name)] = mean(list(kinds))
    assert {key for key in found if key[0] != "empty"} == wanted.keys()
    assert all(abs(found[key] - value) < 1e-9 for key, value in wanted.items())
    assert len({round(value, 3) for (metric, _), value in wanted.items() if metric == "align"}) > 5, "it varies"
    assert not any("predictions" in reason for reason in answer.scored.left_out)
    people = sum(len(once(lists.get("people", []))) for _, lists in asked.values())
    assert answer.scored.left_out["references the extractor cannot see: people"] == people > 0


def similar(references: list[str], predictions: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    rows = [[cosine(r, p) for r in once(references)] for p in once(predictions)]
    return np.array(rows).reshape(len(rows), len(once(references)))
