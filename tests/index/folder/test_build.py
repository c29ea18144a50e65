import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.registry import spec_state
from culturekit.core.run import run_stage
from culturekit.core.schemas import CSPACE, DROPS
from culturekit.core.stage import Stage, Work
from culturekit.core.tables import read_table, write_table
from culturekit.index.encoder import ENCODERS
from culturekit.index.folder import build
from culturekit.index.folder.build import IndexFiles, IndexOptions, build_index, channels_for, index_stage
from culturekit.index.folder.index_folder import OpenIndex, open_index
from culturekit.index.search.search import searcher
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


def space_of(folder: Path, listed: Sequence[tuple[str, str, str, str, str, int]]) -> Path:
    """A cultural space of (artifact, name, concept, country, its name, its order)."""
    columns = ("artifact_id", "name", "concept", "country", "country_name", "country_order")
    usual = {"continent": "somewhere", "source": "wikidata", "path": []}
    rows = [{**usual, **dict(zip(columns, row, strict=True)), "qid": row[0]} for row in listed]
    folder.mkdir(exist_ok=True)
    return write_table(folder, CSPACE, pl.DataFrame(rows, schema={**CSPACE.schema, "country_order": pl.UInt16}))


@pytest.fixture
def cspace(tmp_path: Path) -> Path:
    return space_of(tmp_path / "cspace", SPACE)


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


PLACES = [("cuisine", "BR"), ("cuisine", "PE"), ("landmarks", "JP")]

SAME = ("vectors.npy", "ids.parquet", "artifacts.parquet", "slices.parquet")


def numbered_space(folder: Path, numbers: Sequence[int]) -> Path:
    """Artifacts Q0, Q1, ... in turn from three places; every fifth is of a second country, too."""
    return space_of(folder, [
        (f"Q{number}", f"thing {number}", PLACES[number % 3][0], *(PLACES[(number + order) % 3][1],) * 2, order)
        for number in numbers for order in range(1 + (number % 5 == 0))
    ])  # fmt: skip


def numbered_references(folder: Path, shown: Sequence[tuple[int, int]]) -> Path:
    """A picture for each artifact and number; the same pair is the same picture."""
    rows: list[Mapping[str, object]] = []
    for artifact, number in shown:
        path = save_picture(folder / f"Q{artifact}-{number}.png", seed=100 * artifact + number, size=(8, 8))
        rows.append(image_row(folder, path.name, truth_artifact_id=f"Q{artifact}"))
    return images_table(folder, rows)


def run(stage: Stage, out: Path) -> Path:
    return stage_here(stage, out).folder


@dataclass(frozen=True)
class World:
    """An index of twelve artifacts, and what more there is."""

    root: Path
    encoder: str

    def built(self, name: str, artifacts: Sequence[int], shown: Sequence[tuple[int, int]]) -> Path:
        files = build.IndexFiles(
            numbered_space(self.root / f"{name}-space", artifacts), numbered_references(self.root / f"{name}-r", shown)
        )
        return run(build.index_stage(files, build.IndexOptions(self.encoder)), self.root / name)

    def appended(
        self, index: Path, name: str, artifacts: Sequence[int] | None, shown: Sequence[tuple[int, int]] | None
    ) -> Path:
        space = None if artifacts is None else numbered_space(self.root / f"{name}-space", artifacts)
        pictures = None if shown is None else numbered_references(self.root / f"{name}-r", shown)
        return run(build.append_stage(index, build.AppendFiles(pictures, cspace=space)), self.root / name)


OLD = [(artifact, number) for artifact in range(12) for number in range(3)]

NEW = [(artifact, number) for artifact in range(6, 18) for number in range(2, 5)]

BOTH = sorted({*OLD, *NEW})


@pytest.fixture(params=["counting", "embedded"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    return World(tmp_path, request.param)


def same_index(left: Path, right: Path) -> None:
    for name in SAME:
        assert (left / name).read_bytes() == (right / name).read_bytes(), name


def test_appended_and_compacted_is_built_at_once(world: World) -> None:
    base = world.built("base", range(12), OLD)
    before = {path.name: path.read_bytes() for path in base.iterdir()}
    more = world.appended(base, "more", range(6, 18), NEW)
    assert (base / "vectors.npy").samefile(more / "vectors.npy")
    assert {path.name: path.read_bytes() for path in base.iterdir()} == before
    once = world.built("once", range(18), BOTH)
    same_index(run(build.compact_stage(more), world.root / "compact"), once)
    assert sorted(path.name for path in more.glob("*.npy")) == ["vectors-0001.npy", "vectors.npy"]
    assert len(np.load(more / "vectors-0001.npy")) == len(set(NEW) - set(OLD)) + 6 * (world.encoder == "counting")


def test_several_appends_and_removals_search_as_the_compacted_one(world: World) -> None:
    base = world.built("base", range(12), OLD)
    first = world.appended(base, "first", range(15), [(artifact, 7) for artifact in range(15)])
    fewer = run(build.remove_stage(first, build.Removed(artifact=("Q1", "Q14"))), world.root / "fewer")
    last = world.appended(fewer, "last", range(18), [*NEW, (1, 9), (14, 9)])
    fewest = run(build.remove_stage(last, build.Removed(artifact=("Q17",))), world.root / "fewest")
    compact = run(build.compact_stage(fewest), world.root / "compact")
    left = [number for number in range(18) if number not in {1, 14, 17}]
    shown = sorted({*BOTH, *((artifact, 7) for artifact in range(15))})
    same_index(compact, world.built("once", left, [pair for pair in shown if pair[0] in left]))
    parts, whole = open_index(fewest), open_index(compact)
    queries = whole.channels["image"].vectors[::3]
    for name, channel in whole.channels.items():
        other = parts.channels[name]
        names, others = whole.artifacts["artifact_id"], parts.artifacts["artifact_id"]
        found, same = (searcher(each.vectors, engine="numpy").best(queries, k=5) for each in (channel, other))
        np.testing.assert_array_equal(found.scores, same.scores)
        np.testing.assert_array_equal(found.rows, same.rows)
        assert names.gather(channel.owners).equals(others.gather(other.owners))
        assert channel.slices.equals(other.slices)


def test_removed_artifacts_stay_out(world: World) -> None:
    base = world.built("base", range(12), OLD)
    fewer = run(build.remove_stage(base, build.Removed(artifact=("Q3",))), world.root / "fewer")
    more = world.appended(fewer, "more", None, [(3, 8), (4, 8)])
    drops = pl.read_parquet(more / "drops.parquet").filter(pl.col("stage") == "index append")
    assert drops.select("key", "reason").rows() == [("Q3-8", "reference of a removed artifact")]
    for channel in open_index(more).channels.values():
        assert "Q3" not in open_index(more).artifacts["artifact_id"].gather(channel.owners)
    with pytest.raises(UsageError, match=r"not in the index.*found Q3, Q99"):
        run(build.remove_stage(more, build.Removed(artifact=("Q99", "Q3"))), world.root / "wrong")


def test_an_artifact_that_gets_its_first_reference_is_no_longer_dropped(world: World) -> None:
    base = world.built("base", range(12), OLD[:-3])
    missing = pl.read_parquet(base / "drops.parquet").filter(pl.col("reason") == "artifact without a reference")
    assert missing["key"].to_list() == ["Q11"]
    more = world.appended(base, "more", None, [(11, 0)])
    assert pl.read_parquet(more / "drops.parquet").is_empty()
    same_index(
        run(build.compact_stage(more), world.root / "compact"),
        world.built("once", range(12), sorted({*OLD[:-3], (11, 0)})),
    )


def test_another_encoder_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, "counting")
    base = world.built("base", range(12), OLD)
    files = build.AppendFiles(numbered_references(tmp_path / "r", NEW))
    words = "not the one that built the index; expected weights 'made up', found weights 'other'"
    with pytest.raises(IntegrityError, match=words):
        run(build.append_stage(base, files, encoder="counting?weights=other"), tmp_path / "more")
    assert not (tmp_path / "more").exists()


def test_nothing_new_and_changed_artifacts_are_refused(world: World) -> None:
    base = world.built("base", range(12), OLD)
    with pytest.raises(UsageError, match=r"nothing is new.*found 36 references"):
        world.appended(base, "more", None, OLD)
    with pytest.raises(UsageError, match="nothing is new"):
        world.appended(base, "none", None, None)
    space = numbered_space(world.root / "changed", range(12))
    frame = pl.read_parquet(space).with_columns(
        name=pl.when(pl.col("artifact_id") == "Q7").then(pl.lit("other")).otherwise("name")
    )
    space.unlink()
    write_table(space.parent, CSPACE, frame)
    files = build.AppendFiles(numbered_references(world.root / "r", NEW), cspace=space)
    with pytest.raises(UsageError, match=r"Q7: an artifact has changed.*artifact 'thing 7', found 'other'"):
        run(build.append_stage(base, files), world.root / "x")


def test_an_index_never_becomes_empty(world: World) -> None:
    base = world.built("base", range(3), [(0, 0), (1, 0), (2, 0)])
    with pytest.raises(UsageError, match="nothing would be left"):
        run(build.remove_stage(base, build.Removed(artifact=("Q0", "Q1", "Q2"))), world.root / "none")
    with pytest.raises(UsageError, match="no artifact to remove is named"):
        run(build.remove_stage(base, build.Removed()), world.root / "none")


@pytest.mark.parametrize("name", ["ids.txt", "ids.csv", "ids.parquet"])
def test_artifacts_to_remove_are_read_from_a_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    table = pl.DataFrame({"artifact_id": ["Q2", "Q10", "Q2"]})
    if name.endswith("parquet"):
        table.write_parquet(path)
    else:
        path.write_text(("artifact_id\n" if name.endswith("csv") else "") + "Q2\nQ10\n\nQ2\n", encoding="utf-8")
    assert build.listed_artifacts(path) == ["Q10", "Q2"]


def test_a_list_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("id\nQ1\n", encoding="utf-8")
    for name in ("absent.txt", "absent.csv", "wrong.csv"):
        with pytest.raises(
            UsageError, match="no such file" if name.startswith("absent") else "the artifacts cannot be read"
        ):
            build.listed_artifacts(tmp_path / name)


def test_the_commands_append_remove_and_compact(tmp_path: Path) -> None:
    world = World(tmp_path, "embedded")
    base = world.built("base", range(6), [(number, 0) for number in range(6)])
    table = numbered_references(tmp_path / "r", [(1, 1), (2, 0)])
    (tmp_path / "gone.txt").write_text("Q3\n", encoding="utf-8")
    steps = [
        ["append", "--index", str(base), "--references", str(table), "--out", str(tmp_path / "a")],
        ["remove", "--index", str(tmp_path / "a"), "--artifacts", str(tmp_path / "gone.txt"), "--artifact", "Q4",
         "--out", str(tmp_path / "b")],
        ["compact", "--index", str(tmp_path / "b"), "--out", str(tmp_path / "c")],
    ]  # fmt: skip
    lines = [CliRunner().invoke(app, ["index", *step, "--json"]) for step in steps]
    assert [result.exit_code for result in lines] == [0, 0, 0], [result.output for result in lines]
    counts = [json.loads(result.stdout)["counts"] for result in lines]
    assert (counts[0]["appended"], counts[0]["known"]) == (1, 1)
    assert (counts[1]["ids"], counts[1]["removed"], counts[2]["ids"], counts[2]["artifacts"]) == (5, 2, 5, 4)
    again = CliRunner().invoke(app, ["index", *steps[1], "--json"])
    assert json.loads(again.stdout)["state"] == "reused"
