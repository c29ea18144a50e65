"""How many images are done: counted when the last answer about each is there, not when its question is drawn."""

import polars as pl

from culturekit.builders.shown_images import ImagesSettled
from culturekit.core.work import Work
from tests.conftest import HeardProgress


def test_an_image_is_done_when_its_last_answer_is_there(work: Work) -> None:
    heard, settled = work.progress, ImagesSettled(work)
    assert isinstance(heard, HeardProgress)
    rows = pl.DataFrame({"status": ["ok", "refused", "ok", "ok"]}).to_dicts()
    for row, questions in zip(rows, (2, 0, 0, 1), strict=True):
        settled.asked(row, questions)
    assert heard.done == 1, "the third has a picture that could not be read; the second never had one"
    counts = []
    for _ in range(3):
        settled.answered()
        counts.append(heard.done)
    assert counts == [1, 2, 3]
