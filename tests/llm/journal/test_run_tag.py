from pathlib import Path

from culturekit.llm.journal.run_tag import run_tag
from culturekit.records.work import Work
from culturekit.storage.stage_folder import Staging
from tests.storage.test_stage_folder import finish


def test_a_run_keeps_its_tag_through_kills_and_the_next_has_another(tmp_path: Path) -> None:
    place = Staging(tmp_path / "s", stage="test")
    work = Work({}, place.out, place.scratch, None, None)  # type: ignore[arg-type]
    tags = []
    for key in ("k1", "k1", "k2"):
        place.open(key)
        tags.append(run_tag(work))
        assert run_tag(work) == tags[-1]
    finish(place, "k2", b"x")
    place.open("k2")
    tags.append(run_tag(work))
    assert tags[0] == tags[1]
    assert len(set(tags)) == 3
    assert all(len(tag) == 16 for tag in tags)
