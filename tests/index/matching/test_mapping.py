import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image, PngImagePlugin

from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.run import StageRun, run_stage
from culturekit.core.schemas import DROPS, MATCHES, PROMPTS
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embed_table import EmbedSource, TextColumns
from culturekit.index.folder.index_folder import open_index
from culturekit.index.matching.comparison import MappingInputs, MappingOptions
from culturekit.index.matching.mapping import map_stage
from culturekit.index.matching.match_batch import ChannelVectors
from culturekit.index.search.search import searcher
from tests.conftest import HeardProgress, stage_here
from tests.index.matching.naive_matches import World, artifact_scores, naive_rows
from tests.index.picture_world import ENCODER, PictureWorld, image_table, made_world, write_built, write_images

EQUAL = {"image": 1.0, "text": 1.0}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> PictureWorld:
    return made_world(tmp_path_factory.mktemp("worlds") / "world")


@pytest.fixture(scope="module")
def images(world: PictureWorld) -> Path:
    ids = world.artifacts["artifact_id"].to_list()
    return world.images("fresh", ids, seed=50_000, options="confusability=0.5")


def mapped(out: Path, given: MappingInputs, options: MappingOptions | None = None) -> StageRun:
    stage = map_stage(given, options or MappingOptions())
    return stage_here(stage, out)


def rows_of(run: StageRun) -> pl.DataFrame:
    return read_table(run.folder / "matches.parquet", MATCHES)


def drops_of(run: StageRun) -> dict[str, str]:
    return dict(read_table(run.folder / "drops.parquet", DROPS).select("key", "reason").iter_rows())


def in_memory(world: PictureWorld) -> World:
    index = open_index(world.index)
    channels = {name: ChannelVectors(one.vectors, one.owners) for name, one in index.channels.items()}
    return World(channels, index.artifacts["countries"].to_list())


def expected(
    world: PictureWorld, images: Path, k: int, *, within: Sequence[bool] | None = None
) -> list[tuple[str, int, str, float, float, float]]:
    plain = in_memory(world)
    ids = world.artifacts["artifact_id"].to_list()
    rows = []
    for image_id, path in pl.read_parquet(images).select("image_id", "path").iter_rows():
        query = ENCODER.encode_images([np.asarray(Image.open(images.parent / path))])[0]
        scores = artifact_scores(plain, query, "max", EQUAL)
        inside = {one: score for one, score in scores.items() if within is None or within[one]}
        for rank, (artifact, *numbers) in enumerate(naive_rows(plain, inside, k), start=1):
            rows.append((image_id, rank, ids[artifact], *map(float, numbers)))
    return rows


def test_every_image_has_its_nearest_and_both_margins(world: PictureWorld, images: Path, tmp_path: Path) -> None:
    run = mapped(tmp_path / "matches", MappingInputs(world.index, images), MappingOptions(k=3))
    got = rows_of(run).select("image_id", "rank", "artifact_id", "score", "margin", "country_margin").rows()
    assert got == expected(world, images, 3)
    assert rows_of(run)["method"].unique().to_list() == ["nearest"]
    assert not rows_of(run)["abstained"].any()
    assert run.manifest.counts["matches"] == len(got)


def test_a_match_names_the_country_of_the_prompt_else_the_first(world: PictureWorld, tmp_path: Path) -> None:
    ids = ["Qa001", "Qa001", "Qa001"]
    images = world.images(f"{tmp_path.name}-c", ids, seed=60_000, country=["BR", None, "JP"])
    rows = rows_of(mapped(tmp_path / "matches", MappingInputs(world.index, images), MappingOptions(k=1)))
    assert rows["artifact_id"].to_list() == ids
    assert rows["country"].to_list() == ["BR", "FR", "FR"]
    assert rows["countries"].to_list() == [["FR", "BR"]] * 3
    limited = MappingOptions(k=1, countries=("BR",))
    rows = rows_of(mapped(tmp_path / "limited", MappingInputs(world.index, images), limited))
    assert rows["country"].to_list() == ["BR", "BR", "BR"]


def test_the_prompts_say_what_the_images_table_does_not(world: PictureWorld, tmp_path: Path) -> None:
    images = world.images(f"{tmp_path.name}-p", ["Qa001"], seed=60_000, prompt_id="asked", concept=None)
    prompt = dict.fromkeys(PROMPTS.schema) | {
        "prompt_id": "asked", "text": "x", "benchmark": "cube", "kind": "within-country", "concept": "art",
        "country": "BR", "language": "en", "template_id": "t",
    }  # fmt: skip
    prompts = write_table(tmp_path, PROMPTS, pl.DataFrame([prompt], schema=PROMPTS.schema))
    given = MappingInputs(world.index, images, prompts)
    rows = rows_of(mapped(tmp_path / "matches", given, MappingOptions(k=1, within="both")))
    assert rows.select("artifact_id", "country", "concept").rows() == [("Qa001", "BR", "art")]


@pytest.mark.parametrize("within", ["concept", "country", "both"])
def test_an_image_is_compared_within_its_prompts_place(world: PictureWorld, tmp_path: Path, within: str) -> None:
    """The artifact of two concepts and countries is found under each of them."""
    ids = ["Qz000"] * 4
    concepts, countries = ["art", "art", "cuisine", "cuisine"], ["US", "JP", "US", "JP"]
    images = world.images(f"{tmp_path.name}-w", ids, seed=70_000, concept=concepts, country=countries)
    run = mapped(tmp_path / "matches", MappingInputs(world.index, images), MappingOptions(k=1000, within=within))  # type: ignore[arg-type]
    rows = rows_of(run)
    assert rows.filter(pl.col("rank") == 1)["artifact_id"].to_list() == ids
    for number, (concept, country) in enumerate(zip(concepts, countries, strict=True)):
        inside = world.artifacts.filter(
            pl.lit(within == "country") | pl.col("concepts").list.contains(concept),
            pl.lit(within == "concept") | pl.col("countries").list.contains(country),
        )
        found = rows.filter(pl.col("image_id") == f"i{number:05d}")["artifact_id"]
        assert sorted(found) == inside["artifact_id"].to_list()


def test_a_filter_limits_all_images_and_margins(world: PictureWorld, images: Path, tmp_path: Path) -> None:
    options = MappingOptions(k=2, concepts=("art",), countries=("JP", "US"))
    got = rows_of(mapped(tmp_path / "matches", MappingInputs(world.index, images), options))
    within = [
        "art" in concepts and bool({"JP", "US"} & set(countries))
        for concepts, countries in world.artifacts.select("concepts", "countries").iter_rows()
    ]
    numbers = got.select("image_id", "rank", "artifact_id", "score", "margin", "country_margin").rows()
    assert numbers == expected(world, images, 2, within=within)


def test_an_image_with_nothing_to_compare_with_is_a_drop(world: PictureWorld, tmp_path: Path) -> None:
    images = world.images(
        f"{tmp_path.name}-n", ["Qc000"] * 4, seed=1, concept=["cuisine", None, "cuisine", "music"],
        country=["BR", "BR", None, "BR"],
    )  # fmt: skip
    run = mapped(tmp_path / "matches", MappingInputs(world.index, images), MappingOptions(within="both"))
    assert rows_of(run)["image_id"].unique().to_list() == ["i00000"]
    assert drops_of(run) == {
        "i00001": "no concept of a prompt to map within",
        "i00002": "no country of a prompt to map within",
        "i00003": "no artifact to map to within the prompt's place",
    }
    assert dict(run.manifest.drops) == dict.fromkeys(drops_of(run).values(), 1)


def test_images_of_a_concept_that_the_index_lacks_are_not_mapped(world: PictureWorld, tmp_path: Path) -> None:
    some = world.images(f"{tmp_path.name}-s", ["Qc000"] * 2, seed=1, concept=["cuisine", "instruments"])
    run = mapped(tmp_path / "matches", MappingInputs(world.index, some))
    assert rows_of(run)["image_id"].unique().to_list() == ["i00000"]
    assert read_table(run.folder / "drops.parquet", DROPS).select("key", "reason", "detail").rows() == [
        ("i00001", "the index has no artifact of the prompt's concept", "instruments")
    ]
    every = world.images(f"{tmp_path.name}-e", ["Qc000"] * 2, seed=1, concept=["instruments"] * 2)
    with pytest.raises(UsageError, match=r"no artifact of the prompt's concept.*found instruments"):
        mapped(tmp_path / "none", MappingInputs(world.index, every))


@pytest.mark.parametrize(("options", "words"), [
    (MappingOptions(concepts=("cuisin",)), "one of cuisine, art"),
    (MappingOptions(countries=("fr",)), "one of FR, BR, JP, US"),
    (MappingOptions(concepts=("art",), countries=("BR",), weights={"text": 1.0}), "no channel text"),
    (MappingOptions(weights={"image": 0.0}), "no channel has a weight above 0"),
])  # fmt: skip
def test_what_the_index_lacks_is_refused(
    world: PictureWorld, images: Path, tmp_path: Path, options: MappingOptions, words: str
) -> None:
    with pytest.raises(UsageError) as error:
        mapped(tmp_path / "matches", MappingInputs(world.index, images), options)
    assert words in str(error.value)


def test_images_without_a_readable_picture_are_drops(world: PictureWorld, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    image_table(folder, world.drawn(["Qc000", "Qc001"], seed=80_000))
    (folder / "broken.png").write_bytes(b"no picture at all")
    paths = ["00000.png", "broken.png", "00001.png", ""]
    table = write_images(
        folder, paths, status=["ok", "ok", "ok", "refused"], reason=[None, None, None, "safety"], country=None
    )
    run = mapped(tmp_path / "matches", MappingInputs(world.index, table), MappingOptions(k=1))
    assert rows_of(run)["image_id"].to_list() == ["i00000", "i00002"]
    found = read_table(run.folder / "drops.parquet", DROPS).sort("key")
    assert found["key"].to_list() == ["i00001", "i00003"]
    assert found["detail"].to_list()[1] == "refused: safety"
    assert sum(run.manifest.drops.values()) == 2


def test_the_mapping_looks_at_pixels_only(world: PictureWorld, images: Path, tmp_path: Path) -> None:
    before = rows_of(mapped(tmp_path / "before", MappingInputs(world.index, images)))
    table = pl.read_parquet(images)
    folder, paths = tmp_path / "again", []
    folder.mkdir()
    for number, path in enumerate(table["path"].to_list()):
        notes = PngImagePlugin.PngInfo()
        notes.add_text("artifact", "moqueca")
        paths.append(f"{'unicodé'[: number % 8]}{number}.{'png' if number % 2 else 'webp'}")
        with Image.open(images.parent / path) as picture:
            if number % 2:
                picture.save(folder / paths[-1], pnginfo=notes, compress_level=1)
            else:
                picture.save(folder / paths[-1], lossless=True)
    renamed = write_images(folder, paths, image_id=table["image_id"].to_list())
    after = rows_of(mapped(tmp_path / "after", MappingInputs(world.index, renamed)))
    assert after.equals(before)


def installed(search: str) -> bool:
    """Tell whether a searcher's package is here; NumPy's always is."""
    if search in {"numpy", "auto"}:
        return True
    try:
        searcher(np.eye(1, dtype=np.float32), engine=search)
    except UsageError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", ["max", "top3"])
def test_workers_searchers_and_cuts_change_no_byte(
    world: PictureWorld, images: Path, tmp_path: Path, aggregate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = MappingOptions(k=3, aggregate=aggregate, max_error=0.3)  # type: ignore[arg-type]
    stage = map_stage(MappingInputs(world.index, images), options)
    with LocalEngine(2) as engine:
        first = run_stage(stage, tmp_path / "two", engine=engine, progress=HeardProgress())
    monkeypatch.setattr("culturekit.index.matching.comparison.IMAGES_AT_ONCE", 7)
    hashes = {first.manifest.sha256}
    for search in filter(installed, ("numpy", "auto", "faiss", "torch")):
        again = mapped(tmp_path / search, MappingInputs(world.index, images, search=search), options)
        assert again.manifest.key == first.manifest.key
        hashes.add(again.manifest.sha256)
    assert len(hashes) == 1


def test_what_nothing_would_look_at_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="images to calibrate on serve a stated error; expected --max-error"):
        map_stage(MappingInputs(tmp_path, tmp_path, calibration=tmp_path), MappingOptions())
    with pytest.raises(UsageError, match="--id-column and --text-column are of texts"):
        EmbedSource(tmp_path, columns=TextColumns("key"))


def test_an_index_that_was_built_again_in_its_place_is_the_one_that_is_searched(tmp_path: Path) -> None:
    """A worker, or a notebook, outlives what it once opened."""
    world = made_world(tmp_path / "world", each=4)
    ids = world.artifacts["artifact_id"].to_list()
    images = world.images("fresh", ids, seed=50_000, options="confusability=0.1")
    before = rows_of(mapped(tmp_path / "before", MappingInputs(world.index, images)))
    rows, vectors = pl.read_parquet(world.index / "ids.parquet"), np.load(world.index / "vectors.npy")
    other = dict(zip(ids, [*ids[1:], ids[0]], strict=True))  # every reference now shows its neighbour
    shutil.rmtree(world.index)
    renamed = rows.select("channel", "source", artifact_id=pl.col("id").replace_strict(other))
    write_built(world.index, renamed, vectors, world.artifacts)
    after = rows_of(mapped(tmp_path / "after", MappingInputs(world.index, images)))
    expected = before["artifact_id"].replace_strict(other)
    assert after.sort("image_id")["artifact_id"].equals(expected)
    fresh = mapped(tmp_path / "fresh", MappingInputs(world.index.rename(tmp_path / "moved"), images))
    assert rows_of(fresh).equals(after)
