"""Four encoders, before and after an audit: the one that fails is named, the good one never is."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from culturekit.report.charts import ModelLine, Seen
from culturekit.report.headline import encoder_trial, verdict_on
from culturekit.report.run_folders import RunFolders
from tests.index.picture_world import image_table, write_built
from tests.recipes.built import built
from tests.report.pages import figure, line

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
