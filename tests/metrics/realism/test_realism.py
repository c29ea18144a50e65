"""CLIPScore and its intervals, PRDC, Fréchet and kernel distance, inception score: against peers and exact loops."""

import contextlib
import io
import math
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prdc import compute_prdc
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    PRDC,
    PRESENCE_THRESHOLDS,
    InceptionScore,
    Neighbourhoods,
    YesBucket,
    balanced_sample,
    clip_score,
    clustered_share,
    frechet_distance,
    in_manifold,
    inception_score,
    interval,
    kernel_distance,
    kernel_distance_interval,
    neighbourhoods,
    object_consistency,
    objects_present,
    prdc,
    squared_radii,
    unduplicated,
    yes_by_score,
)
from culturekit.metrics.realism import features, set_distances
from culturekit.metrics.realism.clip_scores import consistency_interval, nearest_own
from culturekit.metrics.realism.features import block_bound, clouds, exact_squares, rough_squares
from culturekit.metrics.realism.manifolds import coverage_interval, mean_interval, share_interval
from culturekit.metrics.realism.set_distances import split_scores
from tests.oracles.set_distances import shares, squared_mmd


def squares(a: Any, b: Any) -> Any:
    """Give squared distances of all pairs, int64 for integers."""
    kind = np.int64 if np.asarray(a).dtype.kind == "i" else np.float64
    left, right = np.asarray(a, kind), np.asarray(b, kind)
    return np.array([np.square(row - right).sum(axis=1) for row in left])


def oracle_prdc(real: Any, fake: Any, *, k: int) -> PRDC:
    """Take the shares that the verification counts from all distances."""
    return PRDC(*shares(np.asarray(real), np.asarray(fake), k))


@pytest.mark.parametrize("seed", range(5))
def test_clip_score_is_scikit_learns_cosine_clamped_per_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images, texts = rng.normal(size=(2, 30, 7)) * rng.uniform(0.01, 100, size=(2, 30, 1))
    expected = np.maximum(100 * cosine_similarity(images, texts).diagonal(), 0)
    assert clip_score(images, texts).tolist() == pytest.approx(expected.tolist(), abs=1e-10)
    assert (expected == 0).any()
    small = clip_score(images[:1] * 1e-300, texts[:1] * 1e100, scale=1)
    assert small == pytest.approx(expected[:1] / 100, abs=1e-12)


def test_a_zero_vector_is_named_by_its_own_row() -> None:
    images = np.ones((5000, 2))
    images[4500] = 0
    with pytest.raises(UsageError, match=r"image_vectors\[4500\]"):
        clip_score(images, np.ones((5000, 2)))


def test_an_object_is_present_from_the_threshold_on() -> None:
    scores = [0.2099999, 0.21, 0.25, 0.2499999]
    assert objects_present(scores).tolist() == [False, True, True, True]
    assert objects_present(scores, threshold=PRESENCE_THRESHOLDS["ldm"]).tolist() == [False, False, True, False]
    assert dict(PRESENCE_THRESHOLDS) == {"geode": 0.21, "dm": 0.21, "ldm": 0.25}


@pytest.mark.parametrize("seed", range(5))
def test_consistency_is_the_mean_of_polars_quantiles(seed: int) -> None:
    import polars as pl

    rng = np.random.default_rng(seed)
    table = pl.DataFrame({"score": rng.uniform(size=90), "object": rng.choice(["bag", "car", "dog"], 90)})
    low = table.group_by("object").agg(pl.col("score").quantile(0.1, "linear"))["score"]
    found = object_consistency(table["score"].to_numpy(), objects=table["object"].to_list())
    assert found == pytest.approx(low.mean())


def test_the_interval_of_consistency_holds_its_level() -> None:
    rng, runs, held = np.random.default_rng(0), 500, 0
    objects = [name for name in "abc" for _ in range(120)]
    true = np.mean([0.2 - 0.05 * 1.2815515655, 0.25 - 0.03 * 1.2815515655, 0.22 - 0.02 * 1.2815515655])
    for _ in range(runs):
        scores = np.concatenate([rng.normal(mean, sd, 120) for mean, sd in ((0.2, 0.05), (0.25, 0.03), (0.22, 0.02))])
        answer = consistency_interval(scores, objects=objects)
        held += bool(answer.low <= true <= answer.high)
    assert 0.92 <= held / runs <= 0.98
    assert math.isnan(consistency_interval([0.1, 0.2], objects=["a", "a"]).low)


def test_the_curve_of_yes_by_hand() -> None:
    scores = [0.205, 0.205, 0.209, 0.29, 0.29, 0.29]
    yes = [True, True, False, True, True, True]
    first, second = yes_by_score(scores, yes, images=["a", "a", "b", "c", "c", "c"])
    assert first.low == 0.2
    assert (first.score, first.rate) == pytest.approx((0.62 / 3 + 0.001 / 3, 2 / 3), abs=1e-9)
    assert (first.images, first.answers) == (2, 3)
    assert first.ci_low < 2 / 3 < first.ci_high
    # 0.29 / 0.01 is a little below 29 in floating point.
    assert (second.low, second.rate, second.images, second.answers) == (0.29, 1.0, 1, 3)
    assert isinstance(second, YesBucket) and math.isnan(second.ci_low)


def test_answers_that_repeat_an_image_add_no_certainty() -> None:
    rng = np.random.default_rng(1)
    yes, images = rng.random(40) < 0.6, [f"i{number}" for number in range(40)]
    once = yes_by_score([0.2] * 40, yes, images=images)[0]
    often = yes_by_score([0.2] * 200, np.tile(yes, 5), images=images * 5)[0]
    assert (often.ci_low, often.ci_high) == pytest.approx((once.ci_low, once.ci_high))
    assert (often.images, often.answers, once.answers) == (40, 200, 40)
    shuffled = rng.permutation(200)
    again = yes_by_score([0.2] * 200, np.tile(yes, 5)[shuffled], images=[(images * 5)[i] for i in shuffled])[0]
    assert (again.ci_low, again.ci_high) == pytest.approx((often.ci_low, often.ci_high))
    by_few = yes_by_score(
        [0.2] * 200, np.tile(yes, 5), images=images * 5, annotators=[str(n // 40) for n in range(200)]
    )
    assert by_few[0].ci_high - by_few[0].ci_low > often.ci_high - often.ci_low


def test_it_is_what_a_loop_over_cosines_finds() -> None:
    rng = np.random.default_rng(3)
    images, texts = rng.normal(size=(60, 8)), rng.normal(size=(4, 8)) * 7
    own = rng.integers(4, size=60)
    expected = []
    for image, place in zip(images, own, strict=True):
        cosines = [float(image @ text) / float(np.linalg.norm(text)) for text in texts]
        expected.append(all(cosines[place] > other for number, other in enumerate(cosines) if number != place))
    found = nearest_own(images, texts, own)
    assert found.tolist() == expected
    assert 0 < found.sum() < 60


def test_of_two_texts_that_are_as_near_neither_is_nearest() -> None:
    assert nearest_own(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([0])).tolist() == [False]


def test_with_equal_prompts_it_is_the_t_interval_over_prompts() -> None:
    rng = np.random.default_rng(0)
    values, prompts = rng.normal(size=120), np.repeat(np.arange(24), 5)
    found = mean_interval(values, clusters=prompts)
    expected = interval(values, prompts=prompts, repeats=np.tile(np.arange(5), 24), target="population")
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
    found = mean_interval(values, clusters=prompts, target="these")
    expected = interval(values, prompts=prompts, repeats=np.tile(np.arange(5), 24), target="these")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_every_image_weighs_the_same_and_order_does_not_matter() -> None:
    values, prompts = np.arange(60.0), np.repeat(np.arange(20), np.tile([1, 5, 3, 3], 5))
    found = mean_interval(values, clusters=prompts)
    assert found.value == pytest.approx(29.5)
    order = np.random.default_rng(0).permutation(60)
    assert mean_interval(values[order], clusters=prompts[order]) == found
    assert mean_interval([3.0] * 25).low == mean_interval([3.0] * 25).high == 3.0


def test_a_share_is_clustered_share_with_enough_prompts() -> None:
    rng = np.random.default_rng(1)
    prompts = np.repeat(np.arange(30), 6)
    yes = rng.random(180) < np.repeat(rng.random(30), 6)
    found, expected = share_interval(yes, clusters=prompts), clustered_share(yes, {"prompt": prompts})
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


@pytest.mark.parametrize("function", [mean_interval, share_interval])
def test_what_does_not_say_how_it_scatters_has_no_limits(function: Any) -> None:
    assert math.isnan(function([0, 1] * 20, clusters=[0, 1] * 20).low)
    assert math.isnan(function([0, 1, 1], clusters=[0, 0, 1], target="these").low)
    assert math.isnan(function([0, 1, 1]).low)
    with pytest.raises(UsageError, match="target must be 'these' or 'population'"):
        function([0, 1], clusters=[0, 1], target="all")


def test_a_share_on_which_all_agree_still_has_limits() -> None:
    from scipy.stats import binomtest

    found = share_interval([1] * 400, clusters=list(range(20)) * 20)
    assert found.value == found.high == 1
    # As uncertain as 20 images, by t with 19 degrees of freedom.
    assert 0.75 < found.low < binomtest(20, 20).proportion_ci(method="wilson").low
    assert share_interval([1] * 400, clusters=list(range(20)) * 20, target="these").low > 0.98
    with pytest.raises(UsageError, match="yes must be True and False"):
        share_interval([0.5] * 30)


def drawn_world(rng: np.random.Generator) -> Any:
    """Fakes of 30 prompts, each near a point of its own."""
    centres = rng.normal(size=(30, 2)) * 1.5
    return np.repeat(centres, 4, axis=0) + rng.normal(size=(120, 2)) * 0.4, np.repeat(np.arange(30), 4)


def test_the_interval_of_coverage_holds_its_level_and_a_bootstrap_does_not() -> None:
    rng = np.random.default_rng(5)
    real = rng.normal(size=(150, 2)) * 1.5
    coverages = [neighbourhoods(real, drawn_world(rng)[0]).prdc.coverage for _ in range(300)]
    true, held, below, runs = float(np.mean(coverages)), 0, 0, 200
    for _ in range(runs):
        fake, prompts = drawn_world(rng)
        answer = coverage_interval(neighbourhoods(real, fake, groups=prompts), strata=None, groups=30)
        held += answer.low <= true <= answer.high
        resampled = rng.integers(0, 30, 30)
        rows = (resampled[:, None] * 4 + np.arange(4)).ravel()
        below += neighbourhoods(real, fake[rows]).prdc.coverage < answer.value
    assert held / runs >= 0.93
    assert below / runs > 0.9


def test_the_jackknife_of_coverage_by_hand() -> None:
    rng = np.random.default_rng(8)
    real = rng.normal(size=(60, 2))
    fake, prompts = rng.normal(size=(44, 2)), np.repeat(np.arange(22), 2)
    found = neighbourhoods(real, fake, k=2, groups=prompts)
    without = [neighbourhoods(real, fake[prompts != out], k=2).prdc.coverage for out in range(22)]
    answer = coverage_interval(found, strata=None, groups=22)
    margin = 2.0796138447276626 * math.sqrt(21 * np.var(without))
    assert answer.value == found.prdc.coverage
    assert (answer.low, answer.high) == pytest.approx((answer.value - margin, min(1.0, answer.value + margin)))
    one_by_one = neighbourhoods(real, fake, k=2)
    answer = coverage_interval(one_by_one, strata=prompts, groups=44)
    left = np.array([neighbourhoods(real, np.delete(fake, row, axis=0), k=2).prdc.coverage for row in range(44)])
    variance = sum(np.square(pair - pair.mean()).sum() / 2 for pair in left.reshape(22, 2))
    assert answer.value - answer.low == pytest.approx(2.0738730679040147 * math.sqrt(variance))
    assert math.isnan(coverage_interval(one_by_one, strata=np.arange(44), groups=44).low)
    assert math.isnan(coverage_interval(neighbourhoods(real, fake[:8], k=2), strata=None, groups=8).low)


def test_a_balanced_sample_has_equally_many_of_each_cell() -> None:
    cells = ["b"] * 30 + ["a"] * 12 + ["c"] * 50
    drawn = balanced_sample(cells, rng=np.random.default_rng(0))
    assert [cells[row] for row in drawn] == ["b"] * 12 + ["a"] * 12 + ["c"] * 12
    assert len(set(drawn.tolist())) == 36
    assert drawn.tolist() == balanced_sample(cells, rng=np.random.default_rng(0)).tolist()
    assert drawn.tolist() != balanced_sample(cells, rng=np.random.default_rng(1)).tolist()
    assert len(balanced_sample(cells, size=5, rng=np.random.default_rng(0))) == 15
    assert balanced_sample([], rng=np.random.default_rng(0)).tolist() == []
    # Every row of a cell is as likely as any other.
    counts = np.zeros(92)
    for seed in range(300):
        counts[balanced_sample(cells, size=3, rng=np.random.default_rng(seed))] += 1
    assert counts[:30].std() < 3 * math.sqrt(30) and counts[:30].mean() == 30
    with pytest.raises(UsageError, match="expected 13 of each, found 12 of 'a'"):
        balanced_sample(cells, size=13, rng=np.random.default_rng(0))


seeds = st.integers(0, 2**32 - 1)


def by_package(real: Any, fake: Any, k: int) -> PRDC:
    with contextlib.redirect_stdout(io.StringIO()):
        found = compute_prdc(real_features=real, fake_features=fake, nearest_k=k)
    return PRDC(*(float(found[name]) for name in ("precision", "recall", "density", "coverage")))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_it_equals_the_package_on_random_features(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n, m, dim, k = rng.integers(30, 300), rng.integers(30, 300), rng.integers(2, 80), int(rng.integers(1, 8))
    real = (rng.normal(size=(n, dim)) + 0.5).astype(kind)
    fake = (rng.normal(size=(m, dim)) * rng.uniform(0.6, 1.2)).astype(kind)
    assert astuple(prdc(real, fake, k=k)) == pytest.approx(astuple(by_package(real, fake, k)), abs=1e-12)


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_on_lattices_full_of_ties_and_copies_it_equals_exact_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim, levels, k = int(rng.integers(1, 7)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    real = rng.integers(0, levels + 1, size=(rng.integers(k + 1, 60), dim))
    fake = rng.integers(0, levels + 1, size=(rng.integers(k + 1, 60), dim))
    expected = oracle_prdc(real, fake, k=k)
    assert prdc(real, fake, k=k) == expected
    assert prdc(real.astype(np.float32), fake.astype(np.float32), k=k) == expected
    # Far from the origin, where the expansion in float32 knows no digits at all.
    assert prdc(real + 10**6, fake + 10**6, k=k) == expected
    # A power of two scales without rounding.
    assert prdc(real * 2.0**-70, fake * 2.0**-70, k=k) == expected


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_copies_outliers_and_far_centres_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim, k = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    pool = rng.normal(size=(25, dim)) * 10.0 ** rng.uniform(-6, 6, size=(25, 1)) + rng.choice([0.0, 1e4])
    real, fake = pool[rng.integers(0, 25, 40)], pool[rng.integers(0, 25, 30)]
    fake[:5] += rng.normal(size=(5, dim)) * 1e-6
    assert prdc(real, fake, k=k) == oracle_prdc(real, fake, k=k)


def test_the_package_is_wrong_about_ties_far_from_the_origin_and_this_is_not() -> None:
    lattice = np.random.default_rng(3).integers(0, 4, size=(60, 3))
    exact, far = oracle_prdc(lattice, lattice, k=3), lattice + 1e8
    assert prdc(far, far, k=3) == exact
    assert astuple(by_package(far, far, 3)) != pytest.approx(astuple(exact))


@pytest.mark.parametrize("block", [1, 7, 16, 33, 1000])
def test_blocks_and_order_change_nothing(block: int) -> None:
    rng = np.random.default_rng(5)
    real, fake = rng.integers(0, 6, size=(90, 3)) / 3, rng.integers(0, 6, size=(70, 3)) / 3
    whole = neighbourhoods(real, fake, k=3)
    parts = neighbourhoods(real, fake, k=3, block=block)
    assert np.array_equal(squared_radii(real, k=3), squared_radii(real, k=3, block=block))
    for name in ("around_fake", "recalled", "covered", "only_group"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    order, other = rng.permutation(90), rng.permutation(70)
    assert prdc(real[order], fake[other], k=3) == whole.prdc
    turned = fake[:, ::-1], real[:, ::-1]
    assert prdc(turned[1], turned[0], k=3) == whole.prdc


def test_many_hits_in_one_block_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    real, fake = rng.integers(0, 3, size=(150, 2)), rng.normal(size=(140, 2)) * 1e-3 + 1
    expected = oracle_prdc(real.astype(float), fake, k=40)
    monkeypatch.setattr(features, "PAIRS", 50)
    monkeypatch.setattr("culturekit.metrics.realism.manifolds.PAIRS", 50)
    monkeypatch.setattr(features, "PAIR_BYTES", 100)
    assert prdc(real, fake, k=40) == expected


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_the_error_of_the_fast_way_stays_within_its_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 700))
    x = rng.normal(size=(20, dim)) * 10.0 ** rng.uniform(-8, 8, size=(20, 1)) + rng.uniform(-1e3, 1e3)
    y = x[rng.permutation(20)[:15]] + rng.normal(size=(15, dim)) * 10.0 ** rng.uniform(-8, 0)
    left, right = clouds(x, y)
    rough = rough_squares(left, slice(0, 20), right, slice(0, 15), np.empty(300, np.float32))
    error = np.abs(rough - squares(x, y) * left.scale**2)
    assert (error <= block_bound(dim, left.norms[:, None], right.norms[None, :])).all()
    assert left.norms.max() <= 1 and left.scale == right.scale
    pairs = np.arange(15)
    assert exact_squares(x, pairs, y, pairs).tolist() == exact_squares(y, pairs, x, pairs).tolist()


def test_radii_are_kept_by_the_hash_of_the_features_and_k() -> None:
    rng = np.random.default_rng(1)
    real, fakes, cache = rng.normal(size=(50, 3)), rng.normal(size=(2, 40, 3)), dict[tuple[str, int], Any]()
    first = prdc(real, fakes[0], cache=cache)
    assert len(cache) == 2
    key = next(key for key, radii in cache.items() if len(radii) == 50)
    assert (len(key[0]), key[1]) == (64, 5)
    # What the cache says is believed: without radii nothing is real.
    cache[key] = np.zeros(50)
    assert prdc(real, fakes[0], cache=cache).precision == 0.0 < first.precision
    assert prdc(real.copy() + 1e-12, fakes[0], cache=cache) == first
    assert len({*cache}) == 3
    prdc(real, fakes[1], k=3, cache=cache)
    assert len(cache) == 5


def test_in_manifold_is_what_precision_is_the_mean_of() -> None:
    rng = np.random.default_rng(4)
    real, fake = rng.normal(size=(100, 6)), rng.normal(size=(60, 6)) * 1.2
    found = neighbourhoods(real, fake, k=4)
    inside = in_manifold(real, fake, k=4)
    assert isinstance(found, Neighbourhoods)
    assert inside.tolist() == (found.around_fake > 0).tolist()
    assert [bool(in_manifold(real, [point], k=4)[0]) for point in fake] == inside.tolist()


def test_groups_that_alone_cover_a_real_are_named() -> None:
    real = np.array([[0.0], [1.0], [10.0], [11.0]])
    fake = np.array([[0.2], [0.3], [10.5], [50.0]])
    found = neighbourhoods(real, fake, k=1, groups=[7, 7, 8, 8])
    assert found.covered.tolist() == [True] * 4
    assert found.only_group.tolist() == [7, 7, 8, 8]
    assert neighbourhoods(real, fake, k=1).only_group.tolist() == [-1, -1, 2, 2]


def test_unduplicated_drops_every_copy() -> None:
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [3.0, 1.0]], np.float32)
    assert unduplicated(rows).tolist() == [False, True, False, True]
    assert unduplicated(np.empty((0, 3))).tolist() == []
    assert unduplicated(rows[::-1].copy()).tolist() == [True, False, True, False]


def two_sets(seed: int, *, n: int, m: int, dim: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(dim, dim)) / math.sqrt(dim)
    return rng.normal(size=(n, dim)), rng.normal(size=(m, dim)) @ mix + rng.normal(size=dim) * 0.3


@pytest.mark.parametrize("seed", range(8))
def test_the_frechet_distance_is_that_of_scipys_matrix_root(seed: int) -> None:
    from scipy.linalg import sqrtm

    a, b = two_sets(seed, n=90, m=70, dim=12)
    first, second = np.cov(a.T), np.cov(b.T)
    root = np.real(sqrtm(first @ second))
    expected = np.square(a.mean(axis=0) - b.mean(axis=0)).sum() + np.trace(first + second - 2 * root)
    assert frechet_distance(a, b) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "m", "dim"), [(200, 150, 20), (30, 25, 64), (2, 2, 5), (2, 40, 8), (300, 300, 6)])
def test_the_frechet_distance_is_torchmetrics(n: int, m: int, dim: int) -> None:
    torch, fid = pytest.importorskip("torch"), pytest.importorskip("torchmetrics.image.fid")
    a, b = two_sets(n, n=n, m=m, dim=dim)
    moments = [torch.from_numpy(part) for rows in (a, b) for part in (rows.mean(axis=0), np.cov(rows.T))]
    assert frechet_distance(a, b) == pytest.approx(float(fid._compute_fid(*moments)), rel=1e-5)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = two_sets(3, n=200, m=100, dim=9)
    whole = frechet_distance(a, b), kernel_distance(a, b), kernel_distance_interval(a, b)
    monkeypatch.setattr(features.blocks, "__defaults__", (17,))
    monkeypatch.setattr(set_distances, "BLOCK", 23)
    assert frechet_distance(a, b) == pytest.approx(whole[0], rel=1e-9)
    assert kernel_distance(a, b) == pytest.approx(whole[1], rel=1e-9)
    parts = kernel_distance_interval(a, b)
    assert (parts.low, parts.high) == pytest.approx((whole[2].low, whole[2].high), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_kernel_distance_is_that_of_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = two_sets(seed, n=int(rng.integers(2, 20)), m=int(rng.integers(2, 20)), dim=int(rng.integers(1, 9)))
    assert kernel_distance(a, b) == pytest.approx(squared_mmd(a, b), rel=1e-9)
    assert kernel_distance(b, a) == pytest.approx(kernel_distance(a, b), rel=1e-9)


def naive_jackknife(a: Any, b: Any, codes: Any) -> tuple[float, float]:
    """Leave out each cluster of a, then each row of b, and recompute."""
    first = [squared_mmd(a[codes != code], b) for code in np.unique(codes)]
    second = [squared_mmd(a, np.delete(b, row, axis=0)) for row in range(len(b))]
    return tuple((len(values) - 1) * float(np.var(values)) for values in (first, second))  # type: ignore[return-value]


def test_the_interval_is_that_of_a_jackknife_by_hand() -> None:
    from scipy.stats import t

    a, b = two_sets(2, n=12, m=9, dim=3)
    codes = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    answer = kernel_distance_interval(a, b, a_clusters=codes)
    margin = t.ppf(0.975, 3) * math.sqrt(sum(naive_jackknife(a, b, codes)))
    assert answer.value == pytest.approx(squared_mmd(a, b))
    assert (answer.low, answer.high) == pytest.approx((answer.value - margin, answer.value + margin))
    order = np.random.default_rng(0).permutation(12)
    again = kernel_distance_interval(a[order], b, a_clusters=[f"prompt {codes[i]}" for i in order])
    assert (again.low, again.high) == pytest.approx((answer.low, answer.high))


def test_one_cluster_leaves_the_limits_open() -> None:
    a, b = two_sets(2, n=12, m=9, dim=3)
    answer = kernel_distance_interval(a, b, a_clusters=[1] * 12)
    assert math.isnan(answer.low) and math.isnan(answer.high)
    assert answer.value == pytest.approx(kernel_distance(a, b))


def test_nominal_intervals_hold_the_true_kernel_distance() -> None:
    rng, runs = np.random.default_rng(7), 400
    # Of normal vectors with mean s in each of 3 dimensions, E(x·y/3 + 1)³ follows from E x·y and its square.
    shift, dim = 0.5, 3

    def expected(first: float, second: float) -> float:
        inner = first * second
        square = inner**2 + (first**2 + second**2 + 1) / dim
        cube = inner**3 + 3 * inner * (first**2 + second**2 + 1) / dim + 2 * (3 * inner) / dim**2
        return cube + 3 * square + 3 * inner + 1

    true = expected(0, 0) + expected(shift, shift) - 2 * expected(0, shift)
    # The formula itself, against a large sample.
    large = kernel_distance(rng.normal(size=(6000, dim)), rng.normal(size=(6000, dim)) + shift)
    assert large == pytest.approx(true, abs=0.05)
    held = 0
    for _ in range(runs):
        answer = kernel_distance_interval(rng.normal(size=(60, dim)), rng.normal(size=(60, dim)) + shift)
        held += answer.low <= true <= answer.high
    assert 0.92 <= held / runs <= 0.985


def drawn(seed: int, *, n: int, classes: int = 6) -> Any:
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.4), size=n)


@pytest.mark.parametrize(("n", "splits"), [(50, 10), (53, 10), (7, 7), (20, 1), (10, 3)])
def test_it_is_the_original_loop_over_splits(n: int, splits: int) -> None:
    from scipy.stats import entropy

    probs = drawn(n, n=n)
    values = []
    for split in range(splits):
        part = probs[split * n // splits : (split + 1) * n // splits]
        values.append(np.exp(np.mean([entropy(row, part.mean(axis=0)) for row in part])))
    found = inception_score(probs, splits=splits)
    assert isinstance(found, InceptionScore)
    assert (found.value, found.std) == pytest.approx((np.mean(values), np.std(values)), rel=1e-9, abs=1e-12)
    assert split_scores(probs, splits=splits).tolist() == pytest.approx(values)
