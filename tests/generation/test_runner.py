import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from culturekit.core.choices import PictureFormat
from culturekit.core.digests import digest_file
from culturekit.core.errors import CultureKitError, UpstreamUnavailable
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.schemas import PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.generation import runner
from culturekit.generation.backend import Failure, ImageReply, ImageRequest, Lane, Picture, Pixels
from culturekit.generation.picture_store import FINDINGS, Maker, batches, folder_of_prompt, image_id_of
from culturekit.generation.runner import ImagePlan, derive_seed, generate, known_pace, list_requests, pilot
from tests.generation.folder.folder_worlds import prompts


class Recorder:
    """Draws the seed of a request, refuses what it is told to, and remembers its calls."""

    version = "1"
    knows_truth = False
    shade = 0
    odd: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.calls: list[list[ImageRequest]] = []

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        self.calls.append(list(requests))
        return [
            Failure("refused", "unsafe") if request.prompt_id == "p2"
            else Picture(self.drawn(request), True, provider_params={FINDINGS: self.odd} if self.odd else {})
            for request in requests
        ]  # fmt: skip

    def drawn(self, request: ImageRequest) -> Pixels:
        size = (request.height or 4, request.width or 4, 3)
        return np.full(size, (request.seed + self.shade) % 256, np.uint8)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(runner, "backend_of", lambda *_: recorder)
    return recorder


def rows_of(work: Work, folder: Path, plan: ImagePlan, texts: dict[str, str] | None = None) -> pl.DataFrame:
    generate(work, prompts(folder, texts), plan, Maker("m", "any"), seed=3)
    return pl.read_parquet(work.out / "images.parquet")


@pytest.mark.parametrize("form", ["png", "webp"])
def test_each_image_is_a_row_and_pixels(work: Work, tmp_path: Path, backend: Recorder, form: PictureFormat) -> None:
    rows = rows_of(work, tmp_path, ImagePlan(2, 3, size="5x7", format=form))
    assert rows.height == 4 * 2 * 3
    refused = rows.filter(pl.col("prompt_id") == "p2")
    assert set(refused.select("status", "reason", "path").rows()) == {("refused", "unsafe", "")}
    for row in rows.filter(pl.col("status") == "ok").iter_rows(named=True):
        assert row["seed"] == derive_seed(3, row["prompt_id"], row["repeat"], row["slot"])
        assert row["path"].endswith(f".{form}")
        with Image.open(work.out / row["path"]) as picture:
            assert picture.size == (5, 7) == (row["width"], row["height"])
            assert np.array_equal(np.asarray(picture)[0, 0], [row["seed"] % 256] * 3)


def test_a_run_of_which_no_image_was_made_is_a_finding(work: Work, tmp_path: Path, backend: Recorder) -> None:
    result = generate(work, prompts(tmp_path, {"p2": "x"}), ImagePlan(2, 2), Maker("m", "any"), seed=3)
    assert result.notes["findings"] == ["none of 4 images was made: refused, unsafe"]


def test_a_subset_is_made_again_as_it_was(work: Work, tmp_path: Path, backend: Recorder) -> None:
    whole = rows_of(work, tmp_path, ImagePlan(2, 2))
    part = rows_of(elsewhere(work, tmp_path / "again"), tmp_path / "part", ImagePlan(1, 2), {"p3": "写真:抹茶 (日本)"})
    same = whole.filter(pl.col("prompt_id") == "p3", pl.col("repeat") == 0)
    columns = ["image_id", "path", "seed", "sha256"]
    assert part.select(columns).equals(same.select(columns))


def test_a_call_has_one_size_and_the_requests_of_a_prompt_side_by_side() -> None:
    asked = [
        ImageRequest(prompt, "t", None, 0, repeat, 0, None, None, None, width=size,
            height=size) for repeat in range(3) for prompt in ("b", "a") for size in (64, None, 32)
    ]  # fmt: skip
    calls = batches(asked)
    assert [len({(r.width, r.height) for r in call}) for call in calls] == [1, 1, 1]
    assert [[r.prompt_id for r in call] for call in calls] == [["a", "a", "a", "b", "b", "b"]] * 3
    assert sorted(map(repr, asked)) == sorted(repr(request) for call in calls for request in call)


@pytest.mark.parametrize("prompt_id", ["../../up", "a/b", "..", ".hidden", "x" * 300, "日本", "a\0b"])
def test_no_prompt_id_leads_out_of_the_folder(work: Work, tmp_path: Path, backend: Recorder, prompt_id: str) -> None:
    assert folder_of_prompt("cube-art-00d14b10bb") == "cube-art-00d14b10bb"
    name = folder_of_prompt(prompt_id)
    assert name.startswith("prompt-")
    assert len(name) < 40
    rows = rows_of(work, tmp_path, ImagePlan(), {prompt_id: "text"})
    assert rows["path"].to_list() == [f"files/{name}/0000-00.png"]
    assert (work.out / rows["path"][0]).resolve().is_relative_to(work.out.resolve())


def test_both_forms_keep_every_pixel_of_noise() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (31, 17, 3), dtype=np.uint8)
    forms: tuple[PictureFormat, ...] = ("png", "webp")
    for form in forms:
        with Image.open(io.BytesIO(encoded(pixels, form))) as picture:
            assert np.array_equal(np.asarray(picture.convert("RGB")), pixels)


def test_a_failure_is_named(work: Work, tmp_path: Path, backend: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: Sequence[ImageRequest]) -> list[ImageReply]:
        raise TimeoutError("the card did not answer in 5 s")

    monkeypatch.setattr(backend, "generate", gone)
    with pytest.raises(UpstreamUnavailable, match="the backend any: TimeoutError: the card did not answer in 5 s"):
        rows_of(work, tmp_path, ImagePlan(1, 1))


def test_another_picture_in_the_place_of_one_has_another_id(tmp_path: Path) -> None:
    (request,) = list_requests(read_table(prompts(tmp_path, {"p": "x"}), PROMPTS), ImagePlan(1, 1), 3)
    assert (request.width, request.height) == (None, None), "the backend chooses"
    drawn = np.zeros((4, 6, 3), np.uint8)
    others = [drawn + 1, drawn.reshape(6, 4, 3), None]
    assert image_id_of("m", request, drawn) == image_id_of("m", request, drawn.copy())
    assert image_id_of("m", request, drawn) not in {image_id_of("m", request, other) for other in others}


def test_what_draws_otherwise_makes_other_images(work: Work, tmp_path: Path, backend: Recorder) -> None:
    before = rows_of(work, tmp_path, ImagePlan(1, 2))
    backend.shade = 1
    again = rows_of(elsewhere(work, tmp_path / "again"), tmp_path, ImagePlan(1, 2))
    ok = pl.col("status") == "ok"
    assert before.filter(ok).join(again.filter(ok), on="image_id").is_empty()
    assert before.filter(~ok).join(again.filter(~ok), on="image_id").height == 2


class Held(Recorder):
    """A model on this machine, which stops at the call it is told to."""

    version = "held-1"
    batch_size = 3
    odd = ("odd",)

    def __init__(self, *, stops_at: int = 10**9, lanes: int = 1) -> None:
        super().__init__()
        self.stops_at, self.many, self.released = stops_at, lanes, 0

    @contextmanager
    def lanes(self, workers: int) -> Iterator[Sequence[Lane]]:
        yield [self] * self.many

    def release(self) -> None:
        self.released += 1

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        if len(self.calls) >= self.stops_at:
            raise CultureKitError("the machine was turned off")
        return super().generate(requests)


Use = Callable[[Held], Held]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    def put(held: Held) -> Held:
        monkeypatch.setattr(runner, "backend_of", lambda *_: held)
        return held

    return put


PLAN = ImagePlan(repeats=4, slots=5)

MAKER = Maker("m", "any")


def files_of(out: Path) -> dict[str, str]:
    return {path.relative_to(out).as_posix(): digest_file(path) for path in sorted(out.rglob("*")) if path.is_file()}


def elsewhere(work: Work, folder: Path) -> Work:
    (folder / "out").mkdir(parents=True)
    (folder / "scratch").mkdir()
    return replace(work, out=folder / "out", scratch=folder / "scratch")


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("stops_at", [0, 1, 5, 13, 26])
def test_a_stopped_run_makes_no_slot_twice(work: Work, tmp_path: Path, use: Use, stops_at: int, lanes: int) -> None:
    table = prompts(tmp_path)
    whole = elsewhere(work, tmp_path / "whole")
    use(Held())
    generate(whole, table, PLAN, MAKER, seed=3)
    first = use(Held(stops_at=stops_at, lanes=lanes))
    with pytest.raises(CultureKitError, match="turned off"):
        generate(work, table, PLAN, MAKER, seed=3)
    second = use(Held(lanes=lanes))
    outcome = generate(work, table, PLAN, MAKER, seed=3)
    assert files_of(work.out) == files_of(whole.out)
    assert (first.released, second.released) == (1, 1), "the next model needs the memory"
    assert outcome.counts == {"images": 80, "ok": 60}
    assert outcome.drops == {"refused": 20}
    assert outcome.notes["findings"] == ["60 images: odd"]
    answered = [request for call in first.calls[:stops_at] for request in call]
    again = [request for call in second.calls for request in call]
    in_flight = 3 * 2 * lanes
    assert len(answered) + len(again) <= 80 + in_flight


def test_a_half_kept_batch_is_called_as_it_was_and_files_stay(work: Work, tmp_path: Path, use: Use) -> None:
    table = prompts(tmp_path)
    use(Held(stops_at=1))
    with pytest.raises(CultureKitError):
        generate(work, table, PLAN, MAKER, seed=3)
    journal = next(work.scratch.glob("*.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]) + lines[2][:30])
    kept = sorted((work.out / "files").rglob("*.png"))
    times = {path: path.stat().st_mtime_ns for path in kept[:2]}
    again = use(Held())
    generate(work, table, PLAN, MAKER, seed=3)
    assert [request.slot for request in again.calls[0]] == [0, 1, 2]
    assert {path: path.stat().st_mtime_ns for path in kept[:2]} == times


def test_a_row_whose_file_is_gone_or_changed_is_made_again(work: Work, tmp_path: Path, use: Use) -> None:
    table = prompts(tmp_path)
    whole = elsewhere(work, tmp_path / "whole")
    use(Held())
    generate(whole, table, PLAN, MAKER, seed=3)
    use(Held(stops_at=3))
    with pytest.raises(CultureKitError):
        generate(work, table, PLAN, MAKER, seed=3)
    pictures = sorted((work.out / "files").rglob("*.png"))
    pictures[0].unlink()
    pictures[1].write_bytes(b"half")
    use(Held())
    generate(work, table, PLAN, MAKER, seed=3)
    assert files_of(work.out) == files_of(whole.out)


def test_rows_of_another_version_are_not_mixed_in(work: Work, tmp_path: Path, use: Use) -> None:
    table = prompts(tmp_path)
    use(Held(stops_at=3))
    with pytest.raises(CultureKitError):
        generate(work, table, PLAN, MAKER, seed=3)
    newer = Held()
    newer.version = "held-2"
    use(newer)
    generate(work, table, PLAN, MAKER, seed=3)
    assert set(pl.read_parquet(work.out / "images.parquet")["model_version"]) == {"held-2"}


def test_a_pilot_makes_two_images_that_the_run_keeps(work: Work, tmp_path: Path, use: Use) -> None:
    table = prompts(tmp_path)
    partial = elsewhere(work, tmp_path / ".images.partial")
    tried = use(Held())
    pace = pilot(partial, table, PLAN, MAKER, seed=3)
    assert pace is not None
    assert pace.left == 78
    assert known_pace(tmp_path / "images") == pace.seconds_per_image > 0
    assert len(sorted((partial.out / "files").rglob("*.png"))) == 2
    assert [len(call) for call in tried.calls] == [3, 3]
    use(Held())
    generate(partial, table, PLAN, MAKER, seed=3)
    whole = elsewhere(work, tmp_path / "whole")
    generate(whole, table, PLAN, MAKER, seed=3)
    assert files_of(partial.out) == files_of(whole.out)
    assert pilot(partial, table, PLAN, MAKER, seed=3) is None


def test_prompts_with_and_without_a_negative_text_are_not_in_one_batch(work: Work, tmp_path: Path, use: Use) -> None:
    table = prompts(tmp_path)
    frame = pl.read_parquet(table)
    some = pl.when(pl.col("prompt_id") == "p1").then(pl.lit("blurred")).alias("negative_text")
    frame.with_columns(some.cast(pl.String)).write_parquet(table)
    held = use(Held())
    generate(work, table, PLAN, MAKER, seed=3)
    assert all(len({request.negative_text is None for request in call}) == 1 for call in held.calls)
