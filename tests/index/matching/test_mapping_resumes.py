"""A mapping that is cut goes on, and ends with the same bytes."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from culturekit.core.run import run_stage
from culturekit.index.matching.comparison import MappingInputs, MappingOptions
from culturekit.index.matching.mapping import map_stage
from tests.conftest import HeardProgress, Item, Result
from tests.index.picture_world import made_world


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
