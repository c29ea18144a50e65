"""The simulated model and the embedded encoder together: what is drawn is recognised, noise is spread."""

import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from culturekit.generation.backend import Picture
from culturekit.index.encoder import Vectors
from culturekit.index.models.embedded_encoder import EmbeddedEncoder
from tests.generation.simulated.simulated_models import COUNTRIES, asked, model, pictures, portraits, wide_space

ENCODER = EmbeddedEncoder()
ARTIFACTS = 300
REFERENCES = 4
QUERIES = 4
SPACE = wide_space(ARTIFACTS)
IDS = SPACE["artifact_id"].to_list()


@dataclass(frozen=True)
class Atlas:
    """References of every artifact, drawn without error."""

    folder: Path
    vectors: Vectors

    def nearest(self, images: list[NDArray[np.uint8]]) -> NDArray[np.intp]:
        """The artifact whose best reference is most similar, by its place."""
        likeness = ENCODER.encode_images(images) @ self.vectors.T
        return np.asarray(likeness.reshape(len(images), REFERENCES, ARTIFACTS).max(axis=1).argmax(axis=1))

    def drawn(self, options: str, times: int, *, first_seed: int) -> list[Picture]:
        """Pictures of all artifacts, several times over, by a model with these options."""
        return portraits(model(self.folder, SPACE, options), IDS * times, first_seed=first_seed)


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    folder = tmp_path_factory.mktemp("atlas")
    references = portraits(model(folder, SPACE), IDS * REFERENCES, first_seed=0)
    return Atlas(folder, ENCODER.encode_images([picture.pixels for picture in references]))


@pytest.fixture(scope="module")
def fresh(atlas: Atlas) -> list[NDArray[np.uint8]]:
    return [picture.pixels for picture in atlas.drawn("", QUERIES, first_seed=100_000)]


EXPECTED = np.tile(np.arange(ARTIFACTS), QUERIES)


def jpeg(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=60)
    return np.asarray(Image.open(file).convert("RGB"))


def test_new_pictures_are_recognised_and_no_artifact_is_always_missed(
    atlas: Atlas, fresh: list[NDArray[np.uint8]]
) -> None:
    right = atlas.nearest(fresh) == EXPECTED
    assert len(right) >= 1200
    assert right.mean() >= 0.97
    assert right.reshape(QUERIES, ARTIFACTS).any(axis=0).all()


def test_recognition_survives_jpeg(atlas: Atlas, fresh: list[NDArray[np.uint8]]) -> None:
    assert (atlas.nearest([jpeg(picture) for picture in fresh]) == EXPECTED).mean() >= 0.97


def test_recognition_survives_another_size(atlas: Atlas) -> None:
    larger = [picture.pixels for picture in atlas.drawn("size=96", 1, first_seed=200_000)]
    assert (atlas.nearest(larger) == np.arange(ARTIFACTS)).mean() >= 0.97


def test_the_emblem_decides_and_not_the_border_of_the_country(atlas: Atlas) -> None:
    abroad = SPACE.with_columns(country=SPACE["country"].gather([*range(1, ARTIFACTS), 0]))
    strangers = portraits(model(atlas.folder, abroad), IDS, first_seed=300_000)
    assert (atlas.nearest([picture.pixels for picture in strangers]) == np.arange(ARTIFACTS)).mean() >= 0.95


def test_recognition_falls_steadily_with_confusability(atlas: Atlas) -> None:
    shares = []
    for confusability in (0.3, 0.57, 0.7, 1):
        drawn = atlas.drawn(f"confusability={confusability}", 1, first_seed=400_000)
        shares.append((atlas.nearest([picture.pixels for picture in drawn]) == np.arange(ARTIFACTS)).mean())
    assert shares == sorted(shares, reverse=True)
    assert shares[0] >= 0.97
    assert 0.5 < shares[1] < 0.95
    assert shares[-1] < 0.02


def test_culture_free_pictures_are_spread_wider_than_those_of_biased_models(atlas: Atlas) -> None:
    """What makes the liar of the demo: by its mapping alone, it knows more artifacts of more countries."""
    artifacts, countries = {}, {}
    for options in ("noise=1", "temperature=1&favour=US&favour_strength=0.7", "collapse=0.6"):
        backend = model(atlas.folder, SPACE, options)
        replies = pictures(backend.generate([asked(seed) for seed in range(400)]))
        nearest = atlas.nearest([picture.pixels for picture in replies])
        artifacts[options] = Counter(nearest.tolist())
        countries[options] = Counter(COUNTRIES[place % len(COUNTRIES)] for place in nearest)
    liar, *biased = artifacts
    for other in biased:
        assert entropy(artifacts[liar]) > entropy(artifacts[other]) + 0.8
        assert entropy(countries[liar]) > entropy(countries[other]) + 0.3
    assert len(artifacts[liar]) > 100
    assert max(artifacts[liar].values()) / 400 < 0.06
    assert max(countries[liar].values()) / 400 < 0.3


def entropy(counts: Counter[int] | Counter[str]) -> float:
    shares = np.array(list(counts.values())) / counts.total()
    return float(-(shares * np.log(shares)).sum())
