import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core import stage as stage_module
from culturekit.core.errors import UsageError
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.matching.comparison import weights_of
from tests.command_line import culturekit
from tests.conftest import stage_here
from tests.index.picture_world import PictureWorld, made_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> PictureWorld:
    return made_world(tmp_path_factory.mktemp("worlds") / "world", each=10, texts=True)


@pytest.fixture(scope="module")
def images(world: PictureWorld) -> Path:
    return world.images("fresh", world.artifacts["artifact_id"].to_list(), seed=50_000)


def mapping(world: PictureWorld, images: Path, out: Path, *words: str, ends: int = 0) -> str:
    """Map images, and give what was said beside the result."""
    files = ("--index", world.index, "--images", images, "--out", out)
    return culturekit("index", "map", *files, *words, "--json", ends=ends).stderr


def notes_of(out: Path) -> dict[str, Any]:
    notes: dict[str, Any] = json.loads((out / "manifest.json").read_text())["notes"]
    return notes


def test_every_option_reaches_the_mapping(world: PictureWorld, images: Path, tmp_path: Path) -> None:
    mapping(
        world, images, tmp_path / "out", "--k", "4", "--aggregate", "top3", "--weights", "image=0.7,text=0.3",
        "--within", "concept", "--country", "BR", "--country", "FR", "--max-error", "0.5", "--search", "numpy",
        "--encoder", "embedded",
    )  # fmt: skip
    options = json.loads((tmp_path / "out/manifest.json").read_text())["options"]
    assert options == {
        "k": 4, "aggregate": "top3", "weights": {"image": 0.7, "text": 0.3}, "within": "concept", "concepts": [],
        "countries": ["BR", "FR"], "max_error": 0.5,
    }  # fmt: skip
    assert notes_of(tmp_path / "out")["channels"] == {"image": 0.7, "text": 0.3}


def test_an_error_that_cannot_be_kept_ends_with_1(world: PictureWorld, images: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the second time the finished folder answers
        words = mapping(world, images, tmp_path / "out", "--max-error", "0.001", ends=1)
        assert "every image abstains" in words
        assert "references held out" in words
    assert pl.read_parquet(tmp_path / "out/matches.parquet")["abstained"].all()


def test_vectors_of_the_same_images_are_taken_and_no_others(
    world: PictureWorld, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = embed_stage(EmbedSource(images), encoder="embedded")
    stage_here(stage, tmp_path / "vectors")
    given = ("--vectors", str(tmp_path / "vectors"))
    mapping(world, images, tmp_path / "anew")
    mapping(world, images, tmp_path / "taken", *given)
    anew, taken = (pl.read_parquet(tmp_path / name / "matches.parquet") for name in ("anew", "taken"))
    assert taken.equals(anew)
    assert not (tmp_path / "taken/vectors.npy").exists()
    others = world.images("others", world.artifacts["artifact_id"].to_list(), seed=60_000)
    assert "not the vectors of these images" in mapping(world, others, tmp_path / "wrong", *given, ends=4)
    vectors = bytearray((tmp_path / "vectors/vectors.npy").read_bytes())
    vectors[-2] ^= 4
    (tmp_path / "vectors/vectors.npy").write_bytes(vectors)
    for hashed, why in ((stage_module.HASHED, "changed or removed since its stage finished"), (0, "not what was made")):
        monkeypatch.setattr(stage_module, "HASHED", hashed)  # large files are known by their sizes, and looked at later
        assert why in mapping(world, images, tmp_path / "broken", *given, ends=4)


@pytest.mark.parametrize(
    "text", ["image", "image=x", "image=-1", "sound=1", "image=1,image=2", "image=nan", "image=inf"]
)
def test_weights_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="such as image"):
        weights_of(text)


@pytest.mark.parametrize(("words", "spoken"), [
    (("--adjust", "csls"), "go together"), (("--max-error", "0"), "above 0 and below 1"),
    (("--concept", "cuisne"), "one of cuisine"), (("--search", "quickly"), "quickly"),
])  # fmt: skip
def test_what_cannot_be_is_refused(
    world: PictureWorld, images: Path, tmp_path: Path, words: tuple[str, ...], spoken: str
) -> None:
    assert spoken in mapping(world, images, tmp_path / "out", *words, ends=2)
