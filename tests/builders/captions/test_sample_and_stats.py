"""Samples hold the shares of categories; captions of any file are counted."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.captions.caption_files import OTHER, read_captions, sample, stats
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CAPTION_STATS, CAPTIONS, DROPS, OBJECTS, PROMPTS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embed_table import USUAL
from tests.builders.put import do
from tests.builders.spaces import rows_of


def captions_table(folder: Path, **categories: int) -> Path:
    folder.mkdir(exist_ok=True)
    named = [category for category, count in categories.items() for _ in range(count)]
    known = {"culture": "Chinese", "language": "en", "round": 0}
    rows = [
        {"id": f"c-{number:03d}", "text": f"Caption number {number}", "category": category, **known}
        for number, category in enumerate(named)
    ]
    return write_table(folder, CAPTIONS, rows_of(CAPTIONS, *rows))


def test_a_sample_gives_each_category_one_and_then_its_share(work: Work, tmp_path: Path) -> None:
    # Exactly 6.9, 2.1, .8 and .2 of ten; one each leaves six places: a lacks most until it has six, then b lacks 1.1.
    path = captions_table(tmp_path / "c", a=69, b=21, c=8, d=2)
    outcome = do(sample, work, path, size=10)
    drawn = read_table(work.out / "captions.parquet", CAPTIONS)
    assert Counter(drawn["category"]) == {"a": 6, "b": 2, "c": 1, "d": 1}
    drawn_of = outcome.notes["categories"]
    assert isinstance(drawn_of, dict)
    assert drawn_of["a"] == {"captions": 69, "drawn": 6}
    prompts = read_table(work.out / "prompts.parquet", PROMPTS)
    assert prompts.select("prompt_id", "text").rows() == drawn.select("id", "text").rows()
    assert set(prompts["country"]) == {"CN"}


def test_a_sample_is_its_seed_s(work: Work, tmp_path: Path) -> None:
    path = captions_table(tmp_path / "c", a=30, b=30)
    found = []
    for seed in (3, 3, 4):
        do(sample, work, path, size=20, seed=seed)
        found.append(read_table(work.out / "captions.parquet", CAPTIONS)["id"].to_list())
    assert found[0] == found[1] != found[2]
    assert found[0] == sorted(found[0])


def test_a_sample_of_more_than_there_are_is_refused(work: Work, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fewer captions"):
        do(sample, work, captions_table(tmp_path / "c", a=3), size=4)


def counts(work: Work, path: Path, objects: Path | None = None) -> tuple[Outcome, pl.DataFrame]:
    outcome = do(stats, work, path, objects)
    return outcome, read_table(work.out / "caption_stats.parquet", CAPTION_STATS)


def files(folder: Path) -> dict[str, Path]:
    """Write two captions, and one that is empty, in every form that is read."""
    texts = ["A man rides a wave.", "Two  dogs - asleep", " "]
    rows = [{"id": str(number), "text": text} for number, text in enumerate(texts, start=1)]
    made = {name: folder / f"captions.{name}" for name in ("txt", "json", "csv", "jsonl", "parquet")}
    made["txt"].write_text("\n".join(texts), encoding="utf-8")
    annotations = [{"id": int(row["id"]), "image_id": 9, "caption": row["text"]} for row in rows]
    made["json"].write_text(json.dumps({"info": {}, "images": [], "annotations": annotations}), encoding="utf-8")
    pl.DataFrame(rows).write_csv(made["csv"])
    pl.DataFrame(rows).rename({"text": "caption"}).write_ndjson(made["jsonl"])
    pl.DataFrame(rows).write_parquet(made["parquet"])
    return made


@pytest.mark.parametrize("form", ["txt", "json", "csv", "jsonl", "parquet"])
def test_captions_are_counted_and_drawn_whatever_file_they_come_in(form: str, work: Work, tmp_path: Path) -> None:
    path = files(tmp_path)[form]
    outcome, table = counts(work, path)
    assert table.rows() == [("all", 2, 4.0, 3, 5, 0, None)]
    assert outcome.drops == {"empty text": 1}
    assert read_table(work.out / "drops.parquet", DROPS)["key"].to_list() == ["3"]
    do(sample, work, path, size=1, seed=5)
    (row,) = read_table(work.out / "prompts.parquet", PROMPTS).rows(named=True)
    assert row["text"] in {"A man rides a wave.", "Two  dogs - asleep"}
    assert (row["concept"], row["country"], row["benchmark"]) == (OTHER, None, "c3")


def test_objects_are_counted_where_they_are_known(work: Work, tmp_path: Path) -> None:
    path = captions_table(tmp_path / "c", a=2, b=1, c=1)
    rows = [
        {"id": f"{item}#{k}", "item": item, "text": "drum", "lister": "m"} for item, k in (("c-000", 1), ("c-000", 2))
    ]
    objects = write_table(tmp_path, OBJECTS, rows_of(OBJECTS, *rows))
    none = {"key": "c-002", "stage": "captions.objects", "reason": "no object"}
    write_table(tmp_path, DROPS, rows_of(DROPS, none))
    _, table = counts(work, path, objects)
    assert table.select("category", "counted", "objects").rows() == [
        ("a", 1, 2.0), ("all", 2, 1.0), ("b", 1, 0.0), ("c", 0, None),
    ]  # fmt: skip


def test_objects_of_other_captions_are_refused(work: Work, tmp_path: Path) -> None:
    objects = write_table(tmp_path, OBJECTS, rows_of(OBJECTS, {"id": "x#1", "item": "x", "text": "y", "lister": "m"}))
    with pytest.raises(UsageError, match="of no caption"):
        counts(work, captions_table(tmp_path / "c", a=2), objects)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", '{"annotations": [{"id": 1}]}', "cannot be read"),
        ("a.csv", "id,words\n1,two\n", "no such columns"),
        ("a.csv", "id,text\n1,two\n1,three\n", "stands for two texts"),
        ("a.txt", "", "no text"),
        ("b.csv", None, "no such file"),
    ],
)
def test_a_file_that_is_no_file_of_captions_is_refused(
    name: str, content: str | None, said: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        list(read_captions(tmp_path / name, USUAL))
    assert said in str(raised.value)
