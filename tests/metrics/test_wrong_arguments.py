"""Arguments that break their rule: shared rules once for all public functions, others case by case."""

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit import metrics
from culturekit.core.errors import UsageError
from culturekit.metrics.ahead.matching import phrase_lists
from culturekit.metrics.statistics.chance_corrected import equal_share
from culturekit.metrics.statistics.comparisons import corrected
from tests.metrics.inclusion.task_worlds import drawn_task1, drawn_task2, task1

m: Any = metrics

L = [("Asia", "JP", "sushi")]
W = (0.0, 0.0, 1.0)
TWO = {"a": [1, 2], "b": [2, 3], "clusters": ["p", "q"]}
GAP: dict[str, Any] = {"groups": ["a", "b"], "first": "a", "second": "b", "countries": ["X", "Y"], "prompts": [1, 2]}
POINTS = np.zeros((9, 2))
IMAGE = {"similarities": {"objects": [[0.5, 0.1]]}, "n_ref": {"objects": 2}, "tau": 0.5}
IMAGES = {"images": [{}, {}], "n_ref": {"objects": 2}, "tau": 0.5}
ANSWERED = {"scores": [0.1, 0.2], "yes": [True, False], "images": ["a", "b"]}
WHITE = np.zeros((4, 5, 3), np.uint8)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# Arguments with which each function works; what stands in RULES is then made wrong
CALLS: dict[str, dict[str, Any]] = {
    "vendi": {"labels": L},
    "vendi_batches": {"labels": L, "weights": W},
    "vendi_table": {"labels": L, "weights": W, "q": 1},
    "vendi_rarefied": {"labels": L * 2, "weights": W, "size": 1, "rng": rng()},
    "vendi_jackknife": {"labels": L * 2, "weights": W, "rng": rng()},
    "vendi_bounds": {"labels": L, "unknown": 0, "weights": W},
    "vendi_kernel": {"K": [[1.0]]},
    "vendi_features": {"X": [[1.0]]},
    "qvs": {"labels": L, "quality": [0.5], "weights": W},
    "distribution": {"labels": L, "level": "artifact"},
    "interval": {"values": [1, 2], "prompts": ["a", "a"], "repeats": [0, 1]},
    "bootstrap": {"values": [1, 2], "statistic": np.mean, "rng": rng()},
    "clustered_share": {"values": [0.0, 1.0], "clusters": {"image": [1, 2]}},
    "proportion_interval": {"successes": 1, "trials": 2},
    "compare": TWO,
    "compare_models": {
        "values": pl.DataFrame({"model": ["m", "n"] * 2, "prompt_id": ["p", "p", "q", "q"], "value": [1.0, 2, 4, 3]}),
        "rng": rng(),
    },
    "correlate": {"a": range(12), "b": [*range(11), 0], "rng": rng()},
    "group_gap": {"values": [1, 2], **GAP},
    "calibrate_judge": {"judgments": range(12), "people": [*range(11), 0], "pool": "NG", "rng": rng()},
    "pool_divergence": {"first": {"i": 1.0, "j": 2.0}, "second": {"i": 1.0, "j": 3.0}, "rng": rng()},
    "dialect_gap": {"scores": {"SAE": [1, 2], "AAE": [2, 2]}, "prompts": {"SAE": ["a", "b"], "AAE": ["a", "b"]},
                    "rng": rng()},
    "kernel_distance_interval": {"a": np.eye(3), "b": np.eye(3)},
    "yes_by_score": ANSWERED,
    "corrected_tones": {"judged": np.eye(10)[[4] * 40], "people": np.eye(10)[[4] * 40]},
    "tone_spread_interval": {"weights": np.eye(10), "clusters": range(10), "kind": "std"},
    "prdc": {"real": POINTS, "fake": POINTS},
    "neighbourhoods": {"real": POINTS, "fake": POINTS},
    "in_manifold": {"real": POINTS, "points": POINTS},
    "squared_radii": {"features": POINTS},
    **dict.fromkeys(("align", "align_detail", "hallucination", "hallucination_detail"), IMAGE),
    **dict.fromkeys(("descriptor_diversity", "semantic_diversity"), IMAGES),
    "appeal_and_similarity": {"task1": drawn_task1()},
    "appeal_in_manifold": {"task1": task1(), "real": np.arange(10.0)[:, None], "fake": {}, "k": 1},
    "closer_rates": {
        "task1": drawn_task1(),
        "extractors": {"e": {f"t{n:02}-{end}": [float(n), 1.0] for n in range(30) for end in ("ref", "1", "2")}},
    },
    **{name: {"task2": drawn_task2()} for name in
       ("in_region_rates", "task2_agreement", "consistency_and_representation")},
    "triplet_agreement": {"task1": drawn_task1(), "by": ()},
}  # fmt: skip

RULES: dict[str, dict[str, list[Any]]] = {
    "labels": {
        "labels must be a sequence of labels or of triples": ["abc"],
        "labels[1] must be a triple": [[*L, ("Asia", "JP")], [*L, None]],
        "each artifact label must be a text, a whole number or None": [[("Asia", "JP", 0.5)], [("Asia", "JP", [])]],
        "labels must be a frame with the columns continent": [pl.DataFrame({"country": ["JP"]})],
    },
    "weights": {"weights must be": [(0.5, 0.5), (1.5, -0.5, 0), (0.5, 0.5, 0.5), (math.nan, 0, 1), (None, 0, 1), 1]},
    "q": {"q must be a number above 0, or infinity": [0, -1, math.nan]},
    "missing": {"missing must be 'distinct' or 'equal'; found 'same'": ["same"]},
    "size": {"size must be a whole number": [0, 2.5]},
    "confidence": {"confidence must be between 0 and 1": [0, 95, math.nan]},
    "target": {"target must be": ["all"]},
    "resamples": {"resamples must be a whole number of at least 1; found 0": [0]},
    "comparisons": {"comparisons must be a whole number of at least 1; found 0": [0]},
    "k": {"k must be a whole number": [0, 1.5], "10": [10]},
    "tau": {"tau must be a number between -1 and 1": [math.nan, 52, "high"]},
    "n_ref": {
        "n_ref must be a mapping": [[2]],
        "n_ref['objects'] must be a whole number": [{"objects": -1}, {"objects": 1.5}, {"objects": True}],
    },
    "aggregate": {"aggregate must be 'dimension' or 'pooled'": ["mean"]},
    "by": {"colour": [("colour",)]},
}

# Arguments of the same name that mean something else
ELSEWHERE = {("cohen_kappa", "weights"), ("tone_spread_interval", "weights"), ("balanced_sample", "size"),
             ("alignment_c3", "target")}  # fmt: skip
CORRECTED = {"vendi_corrected", "judged_mean", "audit_sample", "rater_model"}  # held in tests/metrics/corrected


def shared() -> list[tuple[str, str]]:
    """List each public function with each of its arguments that has a rule."""
    return [
        (name, argument)
        for name in sorted(set(metrics.__all__) - CORRECTED)
        if inspect.isfunction(getattr(metrics, name))
        for argument in inspect.signature(getattr(metrics, name)).parameters
        if argument in RULES and (name, argument) not in ELSEWHERE
    ]


@pytest.mark.parametrize(("name", "argument"), shared())
def test_a_shared_argument_is_held_to_its_rule_by_every_function(name: str, argument: str) -> None:
    function = getattr(metrics, name)
    function(**CALLS[name])
    for message, wrongs in RULES[argument].items():
        for wrong in wrongs:
            with pytest.raises(UsageError) as caught:
                function(**{**CALLS[name], argument: wrong})
            assert message in str(caught.value), wrong


def tones(**changes: Any) -> Any:
    return m.tone_spread_interval(**{"weights": np.eye(10), "clusters": range(10), "kind": "std", **changes})


def best(vectors: Any, references: Any, predictions: Any, groups: Any) -> Any:
    return m.best_matches(vectors, references=references, predictions=predictions, groups=np.array(groups))


ONE = phrase_lists([[0]])

CASES: dict[str, list[tuple[Callable[[], object], str]]] = {
    "diversity": [
        (lambda: m.vendi(L, weights=[0.001] * 500), "found [0.001, 0.001, "),
        (lambda: m.vendi(pl.DataFrame({"country": ["JP"]}).lazy()), "labels must be a frame with the columns continen"),
        (lambda: m.vendi_table(L, weights=[], q=1), "weights must be three numbers"),
        (lambda: m.vendi_table(L, weights=[(1, 0, 0), (1, 1, 0)], q=1), "found (1, 1, 0)"),
        (lambda: m.vendi_table(L, weights=(1, 0, 0), q=[1, 0]), "q must be a number above 0"),
        (lambda: m.vendi_table(np.zeros((2, 2), int), weights=(1, 0, 0), q=1), "labels[0] must be a triple"),
        (lambda: m.vendi_batches(L, weights=W, partial="keep"), "partial must be 'drop' or 'paper'; found 'keep'"),
        (lambda: m.vendi_rarefied(L, size=2, weights=W, rng=rng()), "size must be at most the"),
        (lambda: m.vendi_jackknife(L, weights=W, groups=1, rng=rng()), "groups must be at least"),
        (lambda: m.vendi_bounds([], unknown=0, weights=W), "at least one item"),
        (lambda: m.vendi_bounds(L, unknown=-1, weights=W), "0 or more"),
        *[(lambda call=call: call([]), "labels must be at least one") for call in (
            m.vendi, lambda none: m.vendi_batches(none, weights=W), lambda none: m.vendi_table(none, weights=W, q=1),
            lambda none: m.vendi_jackknife(none, weights=W, rng=rng()), lambda none: m.qvs(none, [], weights=W),
            lambda none: m.distribution(none, level="country"))],
        (lambda: m.qvs(L, [0.1, 0.2], weights=W), "quality must be of length 1"),
        (lambda: m.qvs(L, [], weights=W), "quality must be a sequence of at least one number"),
        (lambda: m.qvs(L, [math.nan], weights=W), "quality[0] must be finite; found nan"),
        (lambda: m.qvs(L, ["good"], weights=W), "quality must be a sequence of numbers"),
        (lambda: m.distribution(L, level="city"), "level must be 'continent' or 'country' or 'artifact'"),
        (lambda: m.mean_cosine(np.ones(3)), "vectors must be a matrix with at least one cell; found 'shape (3,)'"),
        (lambda: m.mean_cosine([[1, 0], [0, 0]]), "vectors[1] must be a vector with a direction"),
        (lambda: m.mean_cosine([[1, np.nan]]), "vectors[0] must be finite"),
        (lambda: m.mean_cosine([["a", "b"]]), "vectors must be a matrix of numbers"),
        (lambda: m.vendi_kernel(np.ones((2, 3))), "K must be square; found 'shape (2, 3)'"),
        (lambda: m.vendi_kernel([[1.0, 0.2], [0.3, 1.0]]), "K must be symmetric; found 'cells that differ by 0.1'"),
        (lambda: m.vendi_kernel([[1.0, 0.2], [0.2, 2.0]]), "K[1, 1] must be 1, like the whole diagonal; found 2.0"),
        (lambda: m.vendi_kernel([[1.0, 3.0], [3.0, 1.0]]), "K must be positive semi-definite"),
        (lambda: m.vendi_kernel([[math.nan]]), "K must be finite in every cell"),
        (lambda: m.vendi_features(np.empty((0, 4))), "X must be a matrix with at least one cell"),
        (lambda: m.vendi_features([[1.0, 0.0], [0.0, 0.0]]), "X[1] must be a vector other than zero"),
    ],
    "statistics": [
        (lambda: m.interval([], prompts=[], repeats=[]), "values must be a sequence of at least one number"),
        (lambda: m.interval([1, math.inf], prompts=[1, 1], repeats=[0, 1]), "values[1] must be finite; found inf"),
        (lambda: m.interval([1], prompts=["a", "a"], repeats=[0]), "prompts must be one per value, of length 1"),
        (lambda: m.interval([1, 2], prompts=["a", "a"], repeats=[0]), "repeats must be one per value, of length 2"),
        (lambda: m.interval([1, 2], prompts=["a", None], repeats=[0, 1]), "prompts must be all texts or all numbers"),
        (lambda: m.interval([1, 2], prompts=["a", "a"], repeats=[3, 3]), "several for prompt a, repeat 3"),
        (lambda: m.interval(**CALLS["interval"], target="population"), "few prompts cannot"),
        (lambda: m.interval(**CALLS["interval"], target="population"), "expected at least 20 prompts, found 1"),
        (lambda: m.bootstrap([], statistic=np.mean, rng=rng()), "values must be at least one row of numbers, (n,) or"),
        (lambda: m.bootstrap([[1, 2], [3, math.inf]], statistic=np.mean, rng=rng()), "values[1, 1] must be finite"),
        (lambda: m.bootstrap(["x"], statistic=np.mean, rng=rng()), "values must be numbers"),
        (lambda: m.bootstrap([1, 2], statistic=np.mean, clusters=["a"], rng=rng()), "clusters must be one per value"),
        (lambda: m.bootstrap([1, 2], statistic=np.mean, method="magic", rng=rng()), "method must be 'BCa' or"),
        (lambda: m.bootstrap([1, 2], statistic=m.vendi, rng=rng()), "resampling lowers a Vendi score, so use interval"),
        (lambda: m.proportion_interval(1, 0), "trials must be a whole number of at least 1; found 0"),
        (lambda: m.proportion_interval(3, 2), "successes must be a whole number from 0 to 2; found 3"),
        (lambda: m.proportion_interval(-1, 2), "successes must be a whole number from 0 to 2; found -1"),
        (lambda: m.proportion_interval(1, 2, method="wald"), "method must be 'wilson' or 'clopper-pearson'"),
        (lambda: m.clustered_share([0.5, 2], {"image": [1, 2]}), "values must be from 0 to 1"),
        (lambda: m.clustered_share([0.5], {}), "clusters must be of one kind or two"),
        (lambda: m.clustered_share([0.5], {"image": [1, 2]}), "clusters"),
        (lambda: m.compare([1], [1], clusters=(["p"], ["q"])), "the two sides have no cluster in common"),
        (lambda: m.compare([1], [1], clusters=(["p"], [1])), "clusters must be texts on both sides, or numbers on bot"),
        (lambda: m.compare(**{**TWO, "a": [math.nan, 1]}), "a[0] must be finite; found nan"),
        (lambda: m.compare(**{**TWO, "b": [1]}), "clusters of b must be one per value, of length 1"),
        (lambda: m.compare(**TWO, alternative="more"), "alternative must be 'two-sided' or 'greater' or 'less'"),
        (lambda: m.compare_models(pl.DataFrame({"model": ["m"]}), rng=rng()), "values must have the columns model, p"),
        (lambda: m.compare_models(CALLS["compare_models"]["values"].filter(model="m"), rng=rng()), "two models; found"),
        (lambda: m.group_gap([1, 2], **{**GAP, "second": "c"}), "first and second must be two of the groups"),
        (lambda: m.group_gap([1, 2], **{**GAP, "countries": ["X"]}), "countries must be one per value, of length 2"),
        (lambda: m.holm([0.5, 1.5]), "p must be a sequence of numbers in [0, 1]"),
        (lambda: corrected([0.5], correction="sidak"), "correction must be 'holm' or 'benjamini-hochberg'"),
        (lambda: m.correlate([1, 2], [1], rng=rng()), "b must be of length 2"),
        (lambda: m.correlate([1, 2], [1, 2], method="cosine", rng=rng()), "method must be 'spearman' or 'kendall' or"),
        (lambda: m.cohen_kappa([1], [1, 2]), "b must be as long as a, and not empty; a has 1; found 2"),
        (lambda: m.cohen_kappa([1], [1], weights="cubic"), "weights must be 'none' or 'linear' or 'quadratic'"),
        (lambda: m.fleiss_kappa([1, 2]), "counts must be a table, (n_items, n_choices); found 'shape (2,)'"),
        (lambda: m.fleiss_kappa([[1, -1]]), "counts must be whole numbers of at least 0"),
        (lambda: m.pairwise_agreement([[0.5, 1]]), "counts must be whole numbers of at least 0"),
        (lambda: m.krippendorff_alpha([1, 2]), "ratings must be a table, (n_annotators, n_items)"),
        (lambda: m.krippendorff_alpha([["a"], ["b"]], level="interval"), "ratings must be numbers for level='interval"),
        (lambda: m.krippendorff_alpha([[1], [2]], level="ratio"), "level must be 'nominal' or 'ordinal' or 'interval'"),
        (lambda: m.rating_counts(["a"], [1, 2]), "choices must be one per item"),
        (lambda: equal_share(["x"], ["x", "y"], batches=[0]), "as long as a"),
        (lambda: m.pool_divergence({"a": 1.0}, {"b": 1.0}, rng=rng()), "second must be scores of items that first has"),
        (lambda: m.calibrate_judge([1], [1], pool="", rng=rng()), "a calibration record names its pool of people"),
        (lambda: m.calibrate_judge([1, 2], [1], pool="NG", rng=rng()), "people must be of length 2"),
    ],
    "realism": [
        (lambda: m.prdc(POINTS[:5], POINTS), "real must be more than k = 5 rows"),
        (lambda: m.prdc(POINTS, POINTS[:5]), "fake must be more than k = 5 rows"),
        (lambda: m.prdc(POINTS, np.zeros((9, 3))), "real and fake must come from one extractor; expected vectors of 2"),
        (lambda: m.prdc(POINTS, np.zeros(9)), "fake must be one row of numbers per image, (n, dim); found 'shape (9,)"),
        (lambda: m.prdc(POINTS * np.nan, POINTS), "real[0] must be finite, and at most 1e150 in size; found nan"),
        (lambda: m.prdc(np.eye(9)[:, :2] * 1e200, POINTS), "real[0] must be finite, and at most 1e150"),
        (lambda: m.prdc([["a", "b"]], POINTS), "real must be numbers"),
        *[(lambda of=of: of(np.ones((1, 3)), np.ones((4, 3))), "a must be at least 2 rows; found '1'")
          for of in (m.frechet_distance, m.kernel_distance, m.kernel_distance_interval)],
        *[(lambda of=of: of(np.ones((4, 2)), np.ones((4, 3))), "a and b must come from one extractor")
          for of in (m.frechet_distance, m.kernel_distance, m.kernel_distance_interval)],
        (lambda: m.kernel_distance(np.ones((4, 1)), [[0.0], [math.inf], [1.0]]), "b[1] must be finite"),
        (lambda: m.inception_score([[0.5, 0.6]], splits=1), "found 'smallest 0.5, sum 1.1'"),
        (lambda: m.inception_score([[0.5, 0.5], [1.5, -0.5]], splits=1), "probs[1] must be probabilities"),
        (lambda: m.inception_score([[0.5, 0.5]], splits=2), "splits must be a whole number from 1 to 1"),
        (lambda: m.inception_score([[0.5, 0.5]], splits=0), "splits must be a whole number from 1 to 1"),
        (lambda: m.inception_score([0.5, 0.5], splits=1), "probs must be one row of numbers per image"),
        (lambda: m.clip_score([[1, 2], [0, 0]], [[1, 1], [1, 1]]), "image_vectors[1] must be a vector with a directio"),
        (lambda: m.clip_score([[1, 2]], [[0.0, 0.0]]), "text_vectors[0] must be a vector with a direction"),
        (lambda: m.clip_score([[1, 2]], [[1, 2], [1, 2]]), "each image has one text; expected 1 text_vectors, found 2"),
        (lambda: m.clip_score([[1, 2]], [[1, 2, 3]]), "image_vectors and text_vectors must come from one extractor"),
        (lambda: m.clip_score([[1, 2]], [[1, 2]], scale=0), "scale must be a number above 0"),
        (lambda: m.object_consistency([0.1, 0.2], objects=["a"]), "objects must be one per score, of length 2"),
        (lambda: m.object_consistency([0.1], objects=["a"], percentile=101), "percentile must be from 0 to 100"),
        (lambda: m.yes_by_score(**{**ANSWERED, "yes": [1, 2]}), "yes must be True and False, or 1 and 0; found 2.0"),
        (lambda: m.yes_by_score(**{**ANSWERED, "images": ["a"]}), "images must be one per score, of length 2"),
        (lambda: m.yes_by_score(**{**ANSWERED, "images": ["a", "a"]}), "an image has one score; found an image with t"),
        (lambda: m.yes_by_score(**ANSWERED, width=0), "width must be a number above 0"),
        (lambda: m.yes_by_score(**ANSWERED, annotators=["x"]), "annotators must be one per score"),
    ],
    "ahead": [
        *[(lambda of=of: of(**{**IMAGE, "similarities": [[0.5]]}), "similarities must be a mapping")
          for of in (m.align, m.align_detail, m.hallucination, m.hallucination_detail)],
        (lambda: m.align(**{**IMAGE, "similarities": {"objects": [[0.1]]}}), "['objects'] must be of shape (n_pred, 2"),
        (lambda: m.align(**{**IMAGE, "similarities": {"objects": [0.5, 0.1]}}), "['objects'] must be of shape (n_pred"),
        (lambda: m.align(**{**IMAGE, "similarities": {"objects": [[0, math.nan]]}}), "['objects'] must be finite"),
        (lambda: m.align(**{**IMAGE, "similarities": {"objects": [["a", "b"]]}}), "['objects'] must be an array of nu"),
        *[(lambda of=of, images=images: of(**{**IMAGES, "images": images}), "images must be a sequence of mappings")
          for of in (m.descriptor_diversity, m.semantic_diversity) for images in ({"objects": np.eye(2)}, [np.eye(2)])],
        (lambda: m.descriptor_diversity(**{**IMAGES, "images": [{"objects": np.eye(3)}, {}]}), "must be of shape"),
        (lambda: best(np.zeros(3), ONE, ONE, [0]), "vectors must be of shape (n, dim)"),
        (lambda: best([["a"]], ONE, ONE, [0]), "vectors must be an array of numbers"),
        (lambda: best(np.zeros((1, 3)), ONE, ONE, [0]), "vectors[0] must be finite and not all zero"),
        (lambda: best(np.full((1, 3), np.nan), ONE, ONE, [0]), "vectors[0] must be finite and not all zero"),
        (lambda: best(np.eye(2), ONE, ONE, [0, 0]), "groups must be one per cell, of length 1"),
        (lambda: best(np.eye(2), ONE, ONE, [1]), "groups must be between 0 and 0"),
        (lambda: best(np.eye(2), ONE, phrase_lists([[2]]), [0]), "predictions.phrases must be between 0 and 1"),
        (lambda: best(np.eye(2), phrase_lists([[-1]]), ONE, [0]), "references.phrases must be between 0 and 1"),
        (lambda: best(np.eye(2), phrase_lists([[]]), ONE, [0]), "references must be lists of at least one phrase"),
        (lambda: m.calibrate_tau([]), "similarities must be of at least one prediction"),
        (lambda: m.calibrate_tau({"objects": np.empty((0, 2))}), "similarities must be of at least one prediction"),
        (lambda: m.calibrate_tau([0.5, math.nan]), "similarities must be finite"),
        (lambda: m.calibrate_tau(np.zeros((2, 2, 2))), "similarities must be arrays of shape (n_pred, n_ref)"),
        (lambda: m.calibrate_tau("high"), "similarities must be arrays of numbers"),
        (lambda: m.calibrate_tau([0.5], quantile=75), "quantile must be between 0 and 1"),
        (lambda: m.calibrate_tau([0.5], quantile=math.nan), "quantile must be between 0 and 1"),
        (lambda: m.exaggeration([0.1, 0.2], [0.1, 0.2]), "scores must be of shape (n_images, n_candidates)"),
        (lambda: m.exaggeration([[0.1, 0.2]], [[0.1, 0.2]]), "real_mean must be of shape (n_candidates,)"),
        (lambda: m.exaggeration([[0.1, 0.2]], [0.1]), "real_mean must be of length 2"),
        (lambda: m.exaggeration([[0.1, math.nan]], [0.1, 0.2]), "scores must be finite"),
        (lambda: m.exaggeration([["a"]], [0.1]), "scores must be an array of numbers"),
        (lambda: m.exaggeration([[0.1]], [0.1], reduce="sum"), "reduce must be 'mean' or 'max'"),
        (lambda: m.faithfulness([0.1, 0.2], [0.1], [0.1, 0.2]), "hal must be of shape (2,), like align"),
        (lambda: m.faithfulness(0.1, 0.2, "much"), "exag must be a number"),
    ],
    "captions": [
        (lambda: m.keep_best(["a"], [1.0], n=-1), "n must be a whole number of at least 0"),
        (lambda: m.keep_best(["a"], [1.0], n=1.5), "n must be a whole number of at least 0"),
        (lambda: m.keep_best(["a"], [1.0], n=True), "n must be a whole number of at least 0"),
        (lambda: m.keep_best(["a"], [1.0, 2.0], n=1), "scores must be one per id, of shape (1,)"),
        (lambda: m.keep_best(["a", "a"], [1.0, 2.0], n=1), "ids must be names, each given once"),
        (lambda: m.keep_best(["a"], ["high"], n=1), "scores must be a sequence of numbers"),
    ],
    "questions": [
        (lambda: m.dsg_score([[1]], {"a": ["a"]}), "questions depend on each other in a circle"),
        (lambda: m.dsg_score([[1, 1]], {"a": ["b"], "b": ["a"]}), "'b' -> 'a'"),
        (lambda: m.dsg_score([[1]], {"a": ["c"]}), "depends on one that is not there; expected one of 'a', found 'c'"),
        (lambda: m.dsg_score([[1, 0]], {"a": []}), "answers must be of shape (n, 1), a column per question"),
        (lambda: m.dsg_score([[0.5]], {"a": []}), "answers[0, 0] must be 1, 0 or NaN; found 0.5"),
        (lambda: m.dsg_score([["yes"]], {"a": []}), "answers must be 1, 0 or NaN"),
        (lambda: m.dsg_score([[]], {}), "there are no questions"),
        (lambda: m.vqa_score([[0.1, math.nan]]), "logits[0, 1] must be a number, or -inf; found nan"),
        (lambda: m.vqa_score([0.1, 0.2]), "logits must be a row of numbers per question"),
        (lambda: m.vqa_score([["yes"]]), "logits must be numbers"),
        (lambda: m.vqa_score([[0.1, -0.2]], yes=[]), "yes must be columns from 0 to 1, each once"),
        (lambda: m.vqa_score([[0.1, -0.2]], no=[2]), "no must be columns from 0 to 1, each once; found [2]"),
        (lambda: m.vqa_score([[0.1, -0.2]], no=[0]), "a token says yes or no, not both; found column 0 in yes and in "),
        (lambda: m.vqa_score([[0.1, -0.2]], of="all"), "of must be 'yes-no' or 'given' or 'vocabulary'"),
        (lambda: m.vqa_score([[0.1, -0.2]], of="vocabulary"), "logits[0] must be log probabilities, summing to at mos"),
        (lambda: m.vqa_score([[0.0, 0, 0], [-math.inf, -math.inf, 0]]), "logits[1] must be a row with a finite token"),
    ],
    "linguistic": [
        (lambda: m.skin_tone(WHITE[0, :, :2]), "image must be uint8"),
        (lambda: m.skin_tone(WHITE.astype(float)), "float64 (4, 5, 3)"),
        (lambda: m.skin_tone(WHITE[..., :2]), "uint8 (4, 5, 2)"),
        (lambda: m.skin_tone(WHITE[:0]), "uint8 (0, 5, 3)"),
        (lambda: m.skin_tone(WHITE, detector="hsv"), "detector must be 'ita' or 'dall-eval'"),
        (lambda: m.nearest_tone((1, 2, 300)), "rgb must be three numbers"),
        *[(lambda of=of: m.tone_histogram(of), "indices must be") for of in ([], [0], [11], [1.5])],
        *[(lambda of=of: m.tone_spread(of), "histogram")
          for of in ([0.5, 0.5], [0.2] * 10, [1.5, -0.5] + [0.0] * 8, [math.nan] * 10)],
        (lambda: tones(kind="iqr"), "kind must be 'std' or 'mad'"),
        (lambda: tones(clusters=[1]), "clusters must be one per row"),
        (lambda: tones(weights=[0.1], clusters=[1]), "weights must be finite numbers"),
        (lambda: m.corrected_tones(np.zeros((5, 10)), np.zeros((4, 10))), "judged and people"),
        (lambda: m.corrected_tones(np.full((40, 10), np.nan), np.zeros((40, 10))), "judged and people"),
        (lambda: m.corrected_tones(np.zeros((40, 10)), np.zeros((40, 10))), "too few pictures"),
        (lambda: m.corrected_tones(**CALLS["corrected_tones"], answers=[1, 2]), "answers"),
        (lambda: m.neutral_similarity([[1, 2]], [[1, 2, 3]]), "group must be vectors of width 2"),
        (lambda: m.neutral_similarity([[0, 0]], [[1, 2]]), "neutral[0] must be a vector with a direction"),
        (lambda: m.neutral_similarity([], [[1, 2]]), "neutral must be finite vectors"),
        (lambda: m.neutral_similarity([[1, 2]], [[1, math.nan]]), "group must be finite vectors"),
        (lambda: m.neutral_spread([[0.1, math.inf]], ["a"]), "similarities must be finite numbers"),
        (lambda: m.neutral_spread([[0.1, 0.2]] * 2, ["a", "a"]), "prompts must be 2 different names"),
        (lambda: m.dialect_gap({"SAE": [1]}, {"SAE": ["a"]}, rng=rng()), "scores must be given for 'SAE' and 'AAE'"),
        (lambda: m.likert_table(pl.DataFrame({"item_id": ["x"]})), "annotations must be a frame with the columns"),
        (lambda: m.relevance_rates(pl.DataFrame({"item_id": ["x"]})), "choice"),
        (lambda: m.question_pair([[1.0, 0.0]], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]), "width"),
        (lambda: m.question_pair([[1.0, 0.0]], [1.0, 0.0], [1.0, 0.0, 0.0]), "width"),
        (lambda: m.question_pair([[0.0, 0.0]], [1.0, 0.0], [1.0, 0.0]), "images[0] must be a vector with a direction"),
        (lambda: m.question_pair([[1.0, 0.0]], [0.0, 0.0], [1.0, 0.0]), "first[0] must be a vector with a direction"),
        (lambda: m.question_pair([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]), "images must be finite vectors"),
        (lambda: m.question_pair([[1.0]], [1.0], [1.0], logit_scale=0), "logit_scale must be a number above 0"),
    ],
    "inclusion": [
        (lambda: m.drop_unreliable(drawn_task2(), least=90), "least must be from 0 to 1"),
        (lambda: m.closer_rates(drawn_task1(), {}), "extractors must be at least one"),
        (lambda: m.closer_rates(drawn_task1(), CALLS["closer_rates"]["extractors"], bins=0), "bins must be a whole nu"),
        (lambda: m.image_set("real", [[0.0], [1.0]], ids=["a"] * 2, objects=["x"] * 2, regions=["y"] * 2),
         "ids must be all different"),
        (lambda: m.image_set("real", [[0.0]], ids=["a"], objects=["x"], regions=[]), "regions must be one per vector"),
        (lambda: m.triplet_distance([[1.0]], [[1.0, 2.0]], [[1.0, 2.0]]), "a must be"),
        (lambda: m.triplet_distance([[math.nan]], [[1.0]], [[1.0]]), "ref must be"),
        (lambda: m.triplet_distance([], [], []), "ref must be"),
        (lambda: m.triplet_distance([1.0], [1.0], [1.0], maximum=0), "maximum must be a number above 0"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"), [pytest.param(*case, id=f"{area}-{case[1]}") for area in CASES for case in CASES[area]]
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        call()
    assert len(str(caught.value)) < 400
    assert isinstance(caught.value, ValueError)
