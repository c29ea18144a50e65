from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.registry import spec_state
from culturekit.core.run import run_stage
from culturekit.core.schemas import CSPACE, DROPS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.index.encoder import ENCODERS
from culturekit.index.folder.build import IndexFiles, IndexOptions, build_index, channels_for, index_stage
from culturekit.index.folder.index_folder import OpenIndex, open_index
from tests.builders import counting_encoder
from tests.builders.counting_encoder import register
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.conftest import HeardProgress, HereEngine, stage_here

SPACE = [
    ("Q1", "moqueca", "cuisine", "BR", "Brazil", 0), ("Q2", "ceviche", "cuisine", "EC", "Ecuador", 1),
    ("Q2", "ceviche", "cuisine", "PE", "Peru", 0), ("Q3", "shrine", "landmarks", "JP", "Japan", 0),
    ("Q4", "unseen", "landmarks", "JP", "Japan", 0),
]  # fmt: skip


@pytest.fixture(autouse=True)
def counting() -> None:
    register()


@pytest.fixture
def cspace(tmp_path: Path) -> Path:
    rows = [
        {
            "artifact_id": artifact, "qid": artifact, "name": name, "concept": concept, "country": iso,
            "country_name": country, "continent": "somewhere", "source": "wikidata", "path": [], "country_order": order,
        }
        for artifact, name, concept, iso, country, order in SPACE
    ]  # fmt: skip
    (tmp_path / "cspace").mkdir()
    return write_table(
        tmp_path / "cspace", CSPACE, pl.DataFrame(rows, schema={**CSPACE.schema, "country_order": pl.UInt16})
    )


@pytest.fixture
def references(tmp_path: Path) -> Path:
    """Two pictures of Q1, one of Q2, Q3 and an unknown artifact, one that is no picture, one without a file."""
    folder = tmp_path / "references"
    rows: list[Mapping[str, object]] = []
    for number, artifact in enumerate(["Q1", "Q2", "Q1", "Q3", "Q99", "Q3", None]):
        path = save_picture(folder / f"r{number}.png", seed=number)
        if number == 5:
            path.write_bytes(b"no picture")
        rows.append(image_row(folder, path.name, truth_artifact_id=artifact))
    failed = {"path": "", "sha256": "", "status": "refused", "reason": "safety", "image_id": "r7"}
    rows.append({**rows[0], **failed})
    return images_table(folder, rows)


def built(tmp_path: Path, files: IndexFiles, options: IndexOptions, name: str = "index") -> OpenIndex:
    stage_here(index_stage(files, options), tmp_path / name)
    return open_index(tmp_path / name)


def test_both_channels_are_built_where_they_can_be(tmp_path: Path, cspace: Path, references: Path) -> None:
    index = built(tmp_path, IndexFiles(cspace, references), IndexOptions("counting"))
    names = index.artifacts["artifact_id"].to_list()
    assert index.artifacts["countries"].to_list() == [["BR"], ["PE", "EC"], ["JP"], ["JP"]], "as their order is stated"
    image, text = index.channels["image"], index.channels["text"]
    assert [names[owner] for owner in image.owners.tolist()] == ["Q1", "Q1", "Q2", "Q3"]
    assert image.sources.to_list() == ["r0", "r2", "r1", "r3"]
    assert [names[owner] for owner in text.owners.tolist()] == ["Q1", "Q2", "Q3", "Q4"]
    assert text.sources.to_list() == ["moqueca", "ceviche", "shrine", "unseen"]
    assert index.notes["channels"] == ["image", "text"]
    assert index.notes["caveat"] == "for tests only"
    assert "a photo of {name}" in index.notes["templates"]["generic"]
    assert text.slices.rows() == [("cuisine", "BR", 0, 1), ("cuisine", "PE", 1, 2), ("landmarks", "JP", 2, 4)]


def test_what_has_no_place_is_counted_and_listed(tmp_path: Path, cspace: Path, references: Path) -> None:
    built(tmp_path, IndexFiles(cspace, references), IndexOptions("counting", "image"))
    drops = read_table(tmp_path / "index/drops.parquet", DROPS).select("key", "reason", "detail").sort("key")
    assert drops.rows() == [
        ("Q4", "artifact without a reference", None),
        ("r4", "reference of an unknown artifact", "Q99"),
        ("r5", "picture format not read", drops["detail"][2]),
        ("r6", "reference that shows no artifact", None),
        ("r7", "reference without a picture", "safety"),
    ]


def test_several_workers_give_the_same_bytes(tmp_path: Path, cspace: Path, references: Path) -> None:
    stage = index_stage(IndexFiles(cspace, references), IndexOptions("counting?batch=2"))
    manifests = []
    for workers in (1, 4):
        engine = HereEngine()
        engine.workers = workers
        manifests.append(run_stage(stage, tmp_path / str(workers), engine=engine, progress=HeardProgress()).manifest)
    assert manifests[0] == manifests[1]


PICTURES_ONLY = "is of names, and this index goes by pictures only"


@pytest.mark.parametrize(("encoder", "more", "problem"), [
    ("embedded", {"references": None}, "the index needs pictures that show the artifacts; expected --references"),
    ("embedded", {"references": None, "channel": "image"}, "the index needs pictures"),
    ("counting", {"references": None, "channel": "both"}, "the index needs pictures"),
    ("embedded", {"channel": "text"}, "the encoder reads no texts; expected --channel image"),
    ("embedded", {"channel": "both"}, "the encoder reads no texts"),
    ("counting", {"channel": "text"}, "references are pictures, and this index goes by names only; expected --ch"),
    ("embedded", {"aliases": Path("a.csv")}, f"--aliases {PICTURES_ONLY}"),
    ("embedded", {"templates": Path("t.yaml")}, f"--templates {PICTURES_ONLY}"),
    ("embedded", {"countries_in_texts": True}, f"--countries-in-texts {PICTURES_ONLY}"),
])  # fmt: skip
def test_impossible_channels_are_refused(
    cspace: Path, references: Path, encoder: str, more: dict[str, Any], problem: str
) -> None:
    options = {name: more[name] for name in ("channel", "countries_in_texts") if name in more}
    files = {"references": references} | {name: value for name, value in more.items() if name not in options}
    with pytest.raises(UsageError, match=problem):
        channels_for(IndexFiles(cspace, **files), IndexOptions(encoder, **options))


def test_long_vectors_are_refused(work: Work, cspace: Path, references: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_encoder, "drawn", lambda content: np.full(8, 2, np.float32))
    with pytest.raises(UsageError, match=r"vectors of length one.*Leave give= away"):
        build_index(work, IndexFiles(cspace, references), IndexOptions("counting?weights=long", "image"))


def test_references_of_unknown_artifacts_only_are_refused(work: Work, cspace: Path, references: Path) -> None:
    images = pl.read_parquet(references).filter(pl.col("truth_artifact_id") == "Q99")
    images.write_parquet(references)
    with pytest.raises(UsageError, match="no reference picture shows an artifact"):
        build_index(work, IndexFiles(cspace, references), IndexOptions("counting", "image"))


def test_other_weights_at_the_same_place_are_another_result(tmp_path: Path) -> None:
    weights = tmp_path / "model"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"one")
    first = spec_state(ENCODERS, f"transformers:{weights}")
    (weights / "model.safetensors").write_bytes(b"two")
    assert first != spec_state(ENCODERS, f"transformers:{weights}")
    assert spec_state(ENCODERS, "embedded") == {}
