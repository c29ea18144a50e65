import io
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from scipy import stats
from scipy.stats import skew

from culturekit.core.roles import SHUFFLED
from culturekit.core.schemas import ARTIFACTS, HUBS, IMAGES, MATCHES, RECOGNITION
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.generation.simulated.simulated_backend import Attraction, Options, rows_of
from culturekit.index.embedding.embedding import load_picture
from culturekit.index.encoder import Vectors
from culturekit.index.matching import diagnosis
from culturekit.index.models.embedded_encoder import EmbeddedEncoder
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.conftest import HeardProgress, HereEngine
from tests.generation.simulated.dials import DIALS, Dial, drawn_share, knob_for
from tests.generation.simulated.simulated_models import COUNTRIES, asked, model, pictures, portraits, space, wide_space


@given(st.integers(1, 40), st.integers(1, 40), st.integers(2, 9), st.integers(0, 9))
def test_shuffling_keeps_the_pixels_of_whole_tiles(height: int, width: int, tiles: int, seed: int) -> None:
    picture = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    mixed = diagnosis.shuffled(picture, tiles, np.random.default_rng(seed))
    kept = picture[: mixed.shape[0], : mixed.shape[1]]
    assert mixed.shape[0] > height - max(tiles, 1) and mixed.shape[1] > width - max(tiles, 1)
    assert sorted(map(tuple, mixed.reshape(-1, 3).tolist())) == sorted(map(tuple, kept.reshape(-1, 3).tolist()))


def test_shuffled_images_are_files_of_their_own_and_the_same_every_time(tmp_path: Path) -> None:
    rows: list[Mapping[str, object]] = []
    for number in range(12):
        path = save_picture(tmp_path / f"in/{number}.png", seed=number, size=(48, 32))
        folder = {"prompt_id": "p", "repeat": number // 4, "slot": number % 4, "concept": "cuisine"}
        rows.append(image_row(tmp_path / "in", path.name, **folder))
    images = images_table(tmp_path / "in", rows)
    tables = []
    for name in ("one", "two"):
        out, scratch = tmp_path / name / "out", tmp_path / name / "scratch"
        out.mkdir(parents=True)
        scratch.mkdir()
        work = Work({}, out, scratch, HereEngine(), HeardProgress())
        outcome = diagnosis.shuffle_pictures(work, images, tiles=8, repeats=2, seed=5)
        assert outcome.counts == {"images": 8}
        tables.append(read_table(work.out / "images.parquet", IMAGES))
    assert tables[0].equals(tables[1])
    assert set(tables[0]["model"]) == {SHUFFLED}
    row = tables[0].row(0, named=True)
    assert load_picture(tmp_path / "one/out", row["path"], sha256=row["sha256"]).shape == (32, 48, 3)


def plain_space(artifacts: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "artifact_id": [f"Q{k:03}" for k in range(artifacts)], "artifact": [f"x{k}" for k in range(artifacts)],
            "concepts": [["cuisine"]] * artifacts, "countries": [[f"C{k % 5}"] for k in range(artifacts)],
            "continents": [["Asia"]] * artifacts,
        },
        schema=ARTIFACTS.schema,
    )  # fmt: skip


def held_out(artifacts: pl.DataFrame, *, references: int = 3) -> pl.DataFrame:
    """References that were all mapped to the artifact they show."""
    mine = artifacts.select(
        "artifact_id", "artifact", "countries", shown="artifact_id", country=pl.col("countries").list.first(),
        continent=pl.col("continents").list.first(), score=pl.lit(0.9), margin=pl.lit(0.1),
    )  # fmt: skip
    return pl.concat([mine] * references)


def test_a_perfect_mapping_of_enough_artifacts_gives_the_highest_score_there_is() -> None:
    artifacts = plain_space(40)
    matches = diagnosis.ceiling_matches(held_out(artifacts), artifacts, size=8, repeats=20, seed=1)
    assert MATCHES.problems(matches) == []
    scores = score_qvs(matches, None, options=QvsOptions(kernels=((0.0, 0.0, 1.0),))).scores
    assert scores["model"].to_list() == [diagnosis.CEILING]
    assert scores["value"][0] == pytest.approx(1)
    assert matches["artifact_id"].n_unique() > 30


def test_few_artifacts_are_shown_evenly_and_the_draw_depends_on_the_seed_alone() -> None:
    artifacts = plain_space(3)
    matches = diagnosis.ceiling_matches(held_out(artifacts), artifacts, size=8, repeats=10, seed=1)
    counts = matches.group_by("repeat", "artifact_id").len()["len"]
    assert set(counts) == {2, 3}
    artifacts = plain_space(12)
    rows = held_out(artifacts)
    first = diagnosis.ceiling_matches(rows, artifacts, size=8, repeats=3, seed=1)
    assert first.equals(diagnosis.ceiling_matches(rows.reverse(), artifacts.reverse(), size=8, repeats=3, seed=1))
    assert not first.equals(diagnosis.ceiling_matches(rows, artifacts, size=8, repeats=3, seed=2))


def matches(*images: tuple[str, str, list[str]]) -> pl.DataFrame:
    """Images as (id, model, nearest artifacts in order)."""
    rows = [
        {
            "image_id": image, "model": model, "rank": rank, "artifact_id": near, "artifact": near.lower(),
            "country": "FR", "countries": ["FR", "IT"], "continent": "Europe", "score": 0.5, "margin": 0.0,
            "country_margin": 0.0, "abstained": False, "method": "nearest",
        }
        for image, model, nearest in images
        for rank, near in enumerate(nearest, start=1)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=MATCHES.schema)


FOUR = matches(("1", "m", ["A", "B"]), ("2", "m", ["A", "C"]), ("3", "m", ["C", "A"]), ("1", "n", ["D"]))


def test_the_artifact_that_most_images_are_near_to_comes_first() -> None:
    hubs = diagnosis.hubs_of(FOUR)
    assert HUBS.problems(hubs) == []
    first = hubs.row(0, named=True)
    assert (first["model"], first["artifact_id"], first["neighbours"], first["nearest"], first["share"]) == (
        "m", "A", 3, 2, 1.0,
    )  # fmt: skip
    assert hubs["artifact_id"].to_list() == ["A", "C", "B", "D"]
    assert hubs["rank"].to_list() == [1, 2, 3, 1]
    assert diagnosis.hubs_of(FOUR, top=1)["artifact_id"].to_list() == ["A", "D"]


def test_artifacts_that_nothing_is_near_to_count() -> None:
    few, many = diagnosis.neighbour_skew(FOUR, 4), diagnosis.neighbour_skew(FOUR, 400)
    assert many["m"] > few["m"]
    assert diagnosis.neighbour_skew(matches(("1", "m", ["A"]), ("2", "m", ["B"])), 2) == {"m": 0.0}


@given(st.lists(st.integers(1, 9), min_size=2, max_size=20).filter(lambda counts: len(set(counts)) > 1))
def test_the_skewness_is_that_of_the_counts(counts: list[int]) -> None:
    images = [(f"{a}/{i}", "m", [f"A{a:02}"]) for a, count in enumerate(counts) for i in range(count)]
    skew = diagnosis.neighbour_skew(matches(*images), len(counts))["m"]
    assert skew == pytest.approx(stats.skew(counts), abs=1e-4)


def test_recognition_counts_an_artifact_for_each_of_its_countries() -> None:
    artifacts = pl.DataFrame(
        {"artifact_id": ["A", "B", "C"], "artifact": ["a", "b", "c"], "concepts": [["x"]] * 3,
            "countries": [["FR", "IT"], ["IT"], ["JP"]], "continents": [["Europe"] * 2, ["Europe"], ["Asia"]]},
        schema=ARTIFACTS.schema,
    )  # fmt: skip
    held_out = pl.DataFrame(
        {"shown": ["A", "A", "B", "C"], "artifact_id": ["A", "B", "B", "A"], "country": ["FR", "IT", "IT", "FR"]}
    )
    table = diagnosis.recognition_of(held_out, artifacts)
    assert RECOGNITION.problems(table) == []
    rows = {row["country"]: row for row in table.iter_rows(named=True)}
    assert (rows[None]["shown"], rows[None]["recognised"], rows[None]["recall"]) == (4, 2, 0.5)
    assert (rows["FR"]["recall"], rows["FR"]["precision"]) == (0.5, 0.5)  # the second A went to Italy's alone
    assert (rows["IT"]["recall"], rows["IT"]["precision"]) == (1.0, 1.0)
    assert (rows["JP"]["recall"], rows["JP"]["precision"], rows["JP"]["mapped"]) == (0.0, None, 0)


ENCODER = EmbeddedEncoder()

REFERENCES = 4

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class World:
    """A CSpace of one concept and eight countries, and vectors of its references, drawn without error."""

    folder: Path
    cspace: pl.DataFrame
    references: Vectors

    @classmethod
    def over(cls, cspace: pl.DataFrame, folder: Path, *, first: int) -> Self:
        drawn = portraits(model(folder, cspace), cspace["artifact_id"].to_list() * REFERENCES, first_seed=first)
        return cls(folder, cspace, ENCODER.encode_images([picture.pixels for picture in drawn]))

    @classmethod
    def made(cls, artifacts: int, folder: Path, *, first: int) -> Self:
        rows = [(f"Q{first + k}", "cuisine", COUNTRIES[k % len(COUNTRIES)], 1.0) for k in range(artifacts)]
        return cls.over(space(*rows), folder, first=first)

    def nearest(self, images: list[Pixels]) -> NDArray[np.intp]:
        """The artifact whose best reference is most similar, by its place."""
        vectors, found = ENCODER.encode_images(images), []
        for start in range(0, len(vectors), 500):
            likeness = vectors[start : start + 500] @ self.references.T
            found.append(likeness.reshape(len(likeness), REFERENCES, -1).max(axis=1).argmax(axis=1))
        return np.concatenate(found)

    def drawn(self, options: str, *, times: int, seed: int) -> list[Pixels]:
        ids = self.cspace["artifact_id"].to_list() * times
        return [picture.pixels for picture in portraits(model(self.folder, self.cspace, options), ids, first_seed=seed)]

    def right(self, images: list[Pixels]) -> NDArray[np.bool_]:
        return np.equal(self.nearest(images), np.arange(len(images)) % self.cspace.height)

    def accuracy(self, images: list[Pixels]) -> float:
        return float(self.right(images).mean())

    def dialled(self, dial: Dial, accuracy: float) -> str:
        knob = knob_for(dial, accuracy, artifacts=self.cspace.height, drawn=drawn_share(dial, self.cspace))
        return f"{dial}={knob}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.over(wide_space(300), tmp_path_factory.mktemp("300"), first=0)


@pytest.fixture(scope="module")
def fresh(world: World) -> list[Pixels]:
    return world.drawn("", times=4, seed=100_000)


def stored(picture: Pixels, form: str) -> Pixels:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, form, quality=60)
    return np.asarray(Image.open(file).convert("RGB"))


def test_new_pictures_are_recognised_and_no_artifact_is_always_missed(world: World, fresh: list[Pixels]) -> None:
    right = world.right(fresh)
    assert len(right) == 1200
    assert right.mean() >= 0.97
    assert right.reshape(4, -1).any(axis=0).all()


def test_recognition_survives_jpeg_and_another_size(world: World, fresh: list[Pixels]) -> None:
    assert world.accuracy([stored(picture, "JPEG") for picture in fresh]) >= 0.97
    assert world.accuracy(world.drawn("size=96", times=1, seed=200_000)) >= 0.97


def test_recognition_falls_steadily_with_confusability(world: World) -> None:
    drawn = (world.drawn(f"confusability={knob}", times=1, seed=400_000) for knob in (0.3, 0.57, 0.7, 1))
    shares = [world.accuracy(images) for images in drawn]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] >= 0.97
    assert 0.5 < shares[1] < 0.95
    assert shares[-1] < 0.02


def entropy(counts: Iterable[int]) -> float:
    shares = np.array(list(counts)) / sum(counts)
    return float(-(shares * np.log(shares)).sum())


def test_culture_free_pictures_are_spread_wider_than_those_of_biased_models(world: World) -> None:
    """What makes the liar of the demo: by its mapping alone, it knows more artifacts of more countries."""
    found = []
    for options in ("noise=1", "temperature=1&favour=US&favour_strength=0.7", "collapse=0.6"):
        replies = model(world.folder, world.cspace, options).generate([asked(seed) for seed in range(400)])
        nearest = world.nearest([picture.pixels for picture in pictures(replies)])
        found.append([list(Counter(which.tolist()).values()) for which in (nearest, nearest % len(COUNTRIES))])
    (artifacts, countries), *biased = found
    for other_artifacts, other_countries in biased:
        assert entropy(artifacts) > entropy(other_artifacts) + 0.8
        assert entropy(countries) > entropy(other_countries) + 0.3
    assert len(artifacts) > 100
    assert max(artifacts) / 400 < 0.06
    assert max(countries) / 400 < 0.3


@pytest.mark.slow
def test_hubs_draw_the_errors_and_skew_the_counts_of_nearest_neighbours(world: World) -> None:
    ids = world.cspace["artifact_id"].to_list()
    hubs = Attraction(rows_of(world.cspace), Options()).hubs["cuisine"]
    skews = []
    for options in ("confusability=0.55", "hub_skew=0.04", "hub_skew=0.2"):
        nearest = world.nearest(world.drawn(options, times=4, seed=6_000_000))
        wrong = nearest[nearest != np.arange(len(nearest)) % len(ids)]
        share = np.isin(np.array(ids)[wrong], hubs).mean()
        assert share > 0.55 if "hub" in options else share < 0.2
        skews.append(skew(np.bincount(nearest, minlength=len(ids))))
    assert skews[0] < 3 < skews[1] < skews[2]


def test_drift_costs_precision_where_pictures_drift_to_and_recall_elsewhere(world: World) -> None:
    countries = np.array(world.cspace["country"].to_list())
    for named, dominant in (("", ("BR", "FR")), ("&drift_to=JP", ("JP",))):
        nearest = countries[world.nearest(world.drawn(f"drift=0.25{named}", times=4, seed=7_000_000))]
        truth = np.tile(countries, 4)
        assert np.isin(nearest[nearest != truth], dominant).mean() > 0.7
        precision = {code: (truth[nearest == code] == code).mean() for code in COUNTRIES}
        recall = {code: (nearest[truth == code] == code).mean() for code in COUNTRIES}
        elsewhere = set(COUNTRIES) - set(dominant)
        assert max(precision[code] for code in dominant) < min(precision[code] for code in elsewhere) - 0.1
        assert min(recall[code] for code in dominant) > max(recall[code] for code in elsewhere) + 0.1


@pytest.mark.slow
def test_of_three_thousand_artifacts_nearly_all_are_recognised_however_stored(tmp_path: Path) -> None:
    world = World.made(3000, tmp_path, first=3_000_000)
    fresh = world.drawn("", times=1, seed=8_000_000)
    assert world.accuracy(fresh) >= 0.99
    for form in ("JPEG", "WEBP"):
        assert world.accuracy([stored(picture, form) for picture in fresh]) >= 0.99
    for side in (96, 128):
        larger = [Image.fromarray(picture).resize((side, side), Image.Resampling.BICUBIC) for picture in fresh]
        assert world.accuracy([np.asarray(picture) for picture in larger]) >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("artifacts", "times", "first"), [
    (300, 10, 4_000_000), (1000, 3, 4_000_000), (1000, 3, 4_500_000), (3000, 1, 4_500_000),
    pytest.param(3000, 1, 4_000_000, marks=pytest.mark.xfail(reason="confusability at .75 gives .773")),
    pytest.param(300, 10, 4_500_000, marks=pytest.mark.xfail(reason="confusability at .87 gives .838")),
])  # fmt: skip
def test_every_dial_holds_to_two_points(artifacts: int, times: int, first: int, tmp_path: Path) -> None:
    """To three points in fewer than 3,000 artifacts: always the same ones are confused, and sets of them differ."""
    world = World.made(artifacts, tmp_path, first=first)
    near = 0.02 if artifacts == 3000 else 0.03
    for dial in DIALS:
        for wanted in (0.92, 0.87, 0.82, 0.75):
            found = world.accuracy(world.drawn(world.dialled(dial, wanted), times=times, seed=9_000_000))
            assert found == pytest.approx(wanted, abs=near), (dial, wanted)
