import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image, PngImagePlugin

from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.run import StageRun, run_stage
from culturekit.core.schemas import CALIBRATION, DROPS, MATCHES, PROMPTS
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embed_table import EmbedSource, TextColumns
from culturekit.index.encoder import Vectors
from culturekit.index.folder.index_folder import open_index
from culturekit.index.matching.comparison import Adjustment, MappingInputs, MappingOptions
from culturekit.index.matching.mapping import map_stage
from culturekit.index.matching.match_batch import ChannelVectors
from culturekit.index.search.search import searcher
from tests.conftest import HeardProgress, Item, Result, stage_here
from tests.index.matching.naive_matches import World, artifact_scores, naive_rows, unit
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


@pytest.fixture(scope="module")
def hard(world: PictureWorld) -> Path:
    """Images that are often mistaken for those of another artifact."""
    return world.images("hard", world.artifacts["artifact_id"].to_list() * 4, seed=90_000, options="confusability=0.6")


def naive_trials(world: World) -> tuple[list[float], list[bool]]:
    """Every reference against all the others, one after the other."""
    image = world.channels["image"]
    margins, wrong = [], []
    for row, owner in enumerate(image.owners.tolist()):
        scores = artifact_scores(world, image.vectors[row], "max", EQUAL, left_out=row)
        (best, _, margin, _), *_ = naive_rows(world, scores, 1)
        margins.append(float(margin))
        wrong.append(best != owner)
    return margins, wrong


def test_each_reference_is_held_out_of_the_index(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    run = mapped(tmp_path / "matches", MappingInputs(world.index, hard), MappingOptions(k=1, max_error=0.05))
    margins, wrong = naive_trials(in_memory(world))
    curve = read_table(run.folder / "calibration.parquet", CALIBRATION)
    for threshold, accepted, errors in curve.select("threshold", "accepted", "wrong").iter_rows():
        taken = [error for margin, error in zip(margins, wrong, strict=True) if margin >= threshold]
        assert (len(taken), sum(taken)) == (accepted, errors)
    answer = run.manifest.notes["abstention"]
    assert answer["references"] == len(margins)
    assert answer["met"]
    assert answer["threshold"] == curve.filter("chosen")["threshold"].item()


def test_images_below_the_margin_keep_their_artifact(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    """References are easy here and images hard: the threshold comes from images that are like them."""
    known = world.images(
        "known", world.artifacts["artifact_id"].to_list() * 8, seed=190_000, options="confusability=0.6"
    )
    given = MappingInputs(world.index, hard, calibration=known)
    run = mapped(tmp_path / "matches", given, MappingOptions(k=2, max_error=0.2))
    words, rows = run.manifest.notes["abstention"], rows_of(run)
    first = rows.filter(pl.col("rank") == 1)
    kept = first.filter(~pl.col("abstained"))
    assert first["abstained"].to_list() == (first["margin"] < np.float32(words["threshold"])).to_list()
    assert not rows["artifact_id"].has_nulls()
    assert rows.group_by("image_id").agg(pl.col("abstained").n_unique())["abstained"].max() == 1
    truth = pl.read_parquet(hard).select("image_id", "truth_artifact_id")
    error = (kept.join(truth, on="image_id").select(pl.col("artifact_id") != pl.col("truth_artifact_id"))).to_series()
    everything = (
        first.join(truth, on="image_id").select(pl.col("artifact_id") != pl.col("truth_artifact_id")).to_series()
    )
    assert everything.mean() > 0.15  # type: ignore[operator]
    assert error.mean() <= 0.2  # type: ignore[operator]
    assert 0.2 < words["image_coverage"] == round(kept.height / first.height, 6) < 0.95
    assert run.manifest.counts["abstained"] == first.height - kept.height
    assert words["error_low"] <= words["error"] <= words["error_high"]


def test_all_abstain_where_the_error_cannot_be_kept(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    run = mapped(tmp_path / "matches", MappingInputs(world.index, hard), MappingOptions(k=1, max_error=0.0001))
    assert rows_of(run)["abstained"].all()
    assert not run.manifest.notes["abstention"]["met"]
    assert run.manifest.notes["abstention"]["image_coverage"] == 0


def test_an_index_of_texts_needs_images_to_calibrate_on(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    rows = world.artifacts.select("artifact_id", channel=pl.lit("text"), source=pl.lit("t"))
    vectors = unit(np.random.default_rng(0).normal(size=(rows.height, ENCODER.identity.dim)))
    write_built(tmp_path / "texts", rows, vectors, world.artifacts)
    options = MappingOptions(k=1, max_error=0.9)
    with pytest.raises(UsageError, match="--calibration"):
        mapped(tmp_path / "matches", MappingInputs(tmp_path / "texts", hard), options)
    given = MappingInputs(tmp_path / "texts", hard, calibration=hard)
    assert mapped(tmp_path / "matches", given, options).manifest.notes["abstention"]["references"] == 164


def test_within_a_place_references_are_tried_within_it(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    options = MappingOptions(k=1, max_error=0.2, within="concept")
    run = mapped(tmp_path / "matches", MappingInputs(world.index, hard), options)
    plain = in_memory(world)
    concepts = world.artifacts["concepts"].list.first().to_list()
    of = world.artifacts["concepts"].to_list()
    image: ChannelVectors = plain.channels["image"]
    wrong = 0
    for row, owner in enumerate(image.owners.tolist()):
        scores = artifact_scores(plain, image.vectors[row], "max", EQUAL, left_out=row)
        inside = {one: score for one, score in scores.items() if concepts[owner] in of[one]}
        wrong += naive_rows(plain, inside, 1)[0][0] != owner
    curve = read_table(run.folder / "calibration.parquet", CALIBRATION).sort("threshold")
    assert curve["wrong"][0] == wrong
    assert drops_of(run) == {}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> PictureWorld:
    return made_world(tmp_path_factory.mktemp("worlds") / "world", each=12)


@pytest.fixture(scope="module")
def few(small: PictureWorld) -> Path:
    return small.images("fresh", small.artifacts["artifact_id"].to_list(), seed=50_000, options="confusability=0.5")


@pytest.fixture(scope="module")
def bank(small: PictureWorld) -> Path:
    return small.images("bank", small.artifacts["artifact_id"].to_list() * 2, seed=150_000, options="confusability=0.5")


def vectors_of(path: Path) -> Vectors:
    return ENCODER.encode_images([np.asarray(Image.open(path.parent / name)) for name in pl.read_parquet(path)["path"]])


@pytest.mark.parametrize("name", ["csls", "inverted-softmax"])
def test_scores_are_as_in_papers(small: PictureWorld, few: Path, bank: Path, tmp_path: Path, name: str) -> None:
    how = Adjustment(name, neighbours=7, temperature=0.1)  # type: ignore[arg-type]
    given = MappingInputs(small.index, few, adjustment=how, bank=bank)
    run = mapped(tmp_path / "matches", given, MappingOptions(k=1000))
    plain, count = in_memory(small), small.artifacts.height
    of_images, of_bank = (
        np.array([[scores[one] for one in range(count)] for scores in (artifact_scores(plain, q, "max", EQUAL)
                  for q in vectors_of(path))], np.float64)
        for path in (few, bank)
    )  # fmt: skip
    if name == "csls":
        hubs = np.sort(of_bank, axis=0)[-7:].mean(axis=0)
        mine = np.sort(of_images, axis=1)[:, -7:].mean(axis=1)
        wanted = 2 * of_images - hubs - mine[:, np.newaxis]
    else:
        wanted = of_images - 0.1 * np.log(np.exp(of_bank / 0.1).mean(axis=0))
    rows = rows_of(run)
    assert set(rows["method"]) == {f"nearest+{name}"}
    ids = small.artifacts["artifact_id"].to_list()
    got = np.full_like(wanted, np.nan)
    for image, artifact, score in rows.select("image_id", "artifact_id", "score").iter_rows():
        got[int(image[1:]), ids.index(artifact)] = score
    np.testing.assert_allclose(got, wanted, atol=2e-6)
    first = rows.filter(pl.col("rank") == 1)
    falling = np.sort(wanted, axis=1)[:, ::-1]
    np.testing.assert_allclose(first["margin"].to_numpy(), falling[:, 0] - falling[:, 1], atol=2e-6)
    assert run.manifest.notes["adjustment"]["per_artifact"] == {"fewest": 2, "most": 2}


def refused(small: PictureWorld, few: Path, bank: Path, out: Path) -> str:
    given = MappingInputs(small.index, few, adjustment=Adjustment("csls"), bank=bank)
    with pytest.raises(UsageError) as error:
        mapped(out, given)
    return str(error.value)


def test_the_images_that_are_mapped_and_the_same_pixels_in_other_files_are_no_bank(
    small: PictureWorld, few: Path, tmp_path: Path
) -> None:
    assert "25 equal files and 25 equal vectors" in refused(small, few, few, tmp_path / "matches")
    table = pl.read_parquet(few)
    (tmp_path / "again").mkdir()
    paths = [f"{number}.webp" for number in range(table.height)]
    for name, source in zip(paths, table["path"], strict=True):
        Image.open(few.parent / source).save(tmp_path / "again" / name, lossless=True)
    again = write_images(tmp_path / "again", paths, truth_artifact_id=table["truth_artifact_id"].to_list())
    assert "0 equal files and 25 equal vectors" in refused(small, few, again, tmp_path / "matches")


def test_a_bank_that_mostly_shows_few_things_is_refused(small: PictureWorld, few: Path, tmp_path: Path) -> None:
    ids = small.artifacts["artifact_id"].to_list()
    unbalanced = small.images(f"{tmp_path.name}-few", [*ids, *ids[:1] * 9], seed=250_000)
    message = refused(small, few, unbalanced, tmp_path / "matches")
    assert "not balanced" in message
    assert "artifacts 1 (Qa001) to 10 times" in message
    blind = tmp_path / "images.parquet"
    pl.read_parquet(few).drop("truth_artifact_id").write_parquet(blind)
    assert "which artifact an image shows" in refused(small, few, blind, tmp_path / "matches")


class Cut(Exception):
    """The run ends here."""


class CutEngine:
    """Does some items, then dies; counts what it did."""

    workers = 1

    def __init__(self, items: int) -> None:
        self.left, self.done = items, 0

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        for item in items:
            if not self.left:
                raise Cut
            self.left -= 1
            self.done += 1
            yield function(item)


@pytest.mark.slow
def test_a_cut_mapping_ends_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culturekit.index.matching.comparison.MATCHES_PER_SHARD", 6)
    world = made_world(tmp_path / "world", each=5)
    ids = world.artifacts["artifact_id"].to_list()
    images = world.images("fresh", ids * 2, seed=50_000)
    stage = map_stage(MappingInputs(world.index, images), MappingOptions(k=2, max_error=0.5))
    whole = CutEngine(10**6)
    wanted = run_stage(stage, tmp_path / "whole", engine=whole, progress=HeardProgress())
    assert whole.done > 10
    for cut in range(whole.done):
        out = tmp_path / f"cut-{cut}"
        with pytest.raises(Cut):
            run_stage(stage, out, engine=CutEngine(cut), progress=HeardProgress())
        rest = CutEngine(10**6)
        run = run_stage(stage, out, engine=rest, progress=HeardProgress())
        assert run.manifest.sha256 == wanted.manifest.sha256
        assert rest.done == whole.done - cut
