from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.digests import digest_file
from culturekit.core.errors import CultureKitError
from culturekit.core.stage import Work
from culturekit.generation import runner
from culturekit.generation.backend import Failure, ImageReply, ImageRequest, Lane, Picture
from culturekit.generation.picture_store import FINDINGS, Maker
from culturekit.generation.runner import ImagePlan, generate, known_pace, pilot
from tests.generation.folder.folder_worlds import prompts


class Held:
    """Draws the seed of a request, remembers every call, and stops at the call it is told to."""

    version = "held-1"
    knows_truth = False
    batch_size = 3

    def __init__(self, *, stops_at: int = 10**9, lanes: int = 1) -> None:
        self.stops_at, self.many = stops_at, lanes
        self.calls: list[list[ImageRequest]] = []
        self.released = 0

    @contextmanager
    def lanes(self, workers: int) -> Iterator[Sequence[Lane]]:
        yield [self] * self.many

    def release(self) -> None:
        self.released += 1

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        self.calls.append(list(requests))
        if len(self.calls) > self.stops_at:
            raise CultureKitError("the machine was turned off")
        return [
            Failure("refused", "unsafe") if request.prompt_id == "p2"
            else Picture(np.full((4, 4, 3), request.seed % 256, np.uint8), True, provider_params={FINDINGS: ["odd"]})
            for request in requests
        ]  # fmt: skip


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
