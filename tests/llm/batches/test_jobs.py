import zlib

import pytest

from culturekit.errors import IntegrityError
from culturekit.llm.batches import JobBook, Phase, Planned


class Facts(dict[str, bytes]):
    """Small facts in memory."""

    def remember(self, name: str, value: bytes) -> None:
        self[name] = value

    def recall(self, name: str) -> bytes | None:
        return self.get(name)


def begun(facts: Facts, *rows: Planned) -> JobBook:
    book = JobBook(facts)
    bodies = zlib.compress(b"".join(b'{"n":%d}\n' % row.attempt for row in rows))
    book.begin(rows, bodies, run="run", begun=7.0, reserved=0.25, upload="file-1")
    return book


def test_a_job_is_read_back_with_its_rows_and_how_far_it_is() -> None:
    facts, rows = Facts(), (Planned(b"a" * 32, 1), Planned(b"b" * 32, 70_000))
    book = begun(facts, *rows)
    steps: list[tuple[Phase, int]] = [("sending", 1), ("open", 1), ("collected", 0)]
    for phase, unfinished in steps:
        record = book.move(book.records[1], phase, job="batch_9")
        again = JobBook(facts)
        assert again.records == {1: record} and len(again.unfinished()) == unfinished
        assert (record.job, record.reserved, record.upload, record.tag) == (
            "batch_9",
            0.25,
            "file-1",
            "culturekit-run-1",
        )
        assert again.rows(record) == list(rows)
        assert list(again.bodies(record)) == [b'{"n":1}', b'{"n":70000}']
        assert again.next_tag("run") == "culturekit-run-2"
    assert book.move(record, "void").job == "batch_9"


@pytest.mark.parametrize("what", ["rows", "bodies"])
def test_a_job_whose_rows_or_bodies_are_gone_is_no_sound_journal(what: str) -> None:
    facts = Facts()
    book = begun(facts, Planned(b"a" * 32, 1))
    del facts[f"batch/1/{what}"]
    with pytest.raises(IntegrityError, match=f"the {what} of batch job 1 are not in the journal"):
        list(getattr(JobBook(facts), what)(book.records[1]))
