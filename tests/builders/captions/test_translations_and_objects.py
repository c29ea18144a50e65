"""Translations and objects: what is none says why, whoever says it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.builders import shown_images
from culturekit.builders.captions import caption_files
from culturekit.builders.captions.caption_files import objects, stats, translate
from culturekit.builders.judging.scene_judge import extract
from culturekit.core.errors import UsageError
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.schemas import CAPTION_STATS, DROPS, JUDGMENTS, OBJECTS, TRANSLATIONS
from culturekit.core.stage import QUARANTINED, Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.generation.simulated.scenes.scenes_backend import draw_scene, scene_of, spoken
from culturekit.llm.clients.clients import CLIENTS
from tests.builders.judging.test_image_judge import Scripted, table
from tests.builders.put import do, put
from tests.builders.spaces import rows_of
from tests.generation.simulated.scenes.scene_worlds import knowledge

ENGLISH = {"a": "Students in qipao dress with red envelopes", "b": "A wedding with tiered cake", "c": "An empty street"}


def scene_png(seed: int) -> bytes:
    """Draw a mask dance in Iran."""
    scene = scene_of("dances", "mask dance", "IR", knowledge(), prompt="p", seed=seed)
    return encoded(draw_scene(scene, size=128, seed=seed))


def captions_file(folder: Path, texts: dict[str, str]) -> Path:
    path = folder / "captions.csv"
    pl.DataFrame({"id": list(texts), "text": list(texts.values())}).write_csv(path)
    return path


def translated(
    work: Work, client: Any, captions: Path, table: Path | None = None
) -> tuple[Outcome, dict[str, str], dict[str, str]]:
    outcome = put(translate, work, client, captions, table)
    found = read_table(work.out / "translations.parquet", TRANSLATIONS)
    drops = read_table(work.out / "drops.parquet", DROPS)
    return outcome, dict(found.select("id", "text").iter_rows()), dict(drops.select("key", "reason").iter_rows())


def test_a_faithful_model_translates_every_caption_and_a_careless_one_errs(work: Work, tmp_path: Path) -> None:
    given = captions_file(tmp_path, {key: spoken(text) for key, text in ENGLISH.items()})
    outcome, found, drops = translated(work, CLIENTS.make("simulated"), given)
    assert (found, drops) == (ENGLISH, {})
    assert outcome.counts == {"captions": 3, "translations": 3}
    assert translated(work, CLIENTS.make("simulated?omits=1"), given)[1]["a"] == "Students in with"
    other = translated(work, CLIENTS.make("simulated?invents=1"), given)[1]["a"]
    assert other.startswith("Students in ")
    assert "red envelopes" not in other


@pytest.mark.parametrize("given", [False, True])
def test_blocks_of_captions_are_translated_as_the_whole_is(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    texts = {f"{number:02}": spoken(text) for number, text in enumerate([*ENGLISH.values()] * 4)} | {"05": " "}
    captions, table = tmp_path / "captions.parquet", tmp_path / "given.parquet" if given else None
    pl.DataFrame({"id": sorted(texts), "text": [texts[key] for key in sorted(texts)]}).write_parquet(captions)
    pl.DataFrame({"id": ["11", "03", "08"], "text": ["two", "one", ""]}).write_parquet(tmp_path / "given.parquet")
    client = None if given else CLIENTS.make("simulated")
    whole = translated(work, client, captions, table)
    monkeypatch.setattr(caption_files, "ROWS_PER_BLOCK", 5)
    blocks = translated(work, client, captions, table)
    assert blocks[1:] == whole[1:]
    assert (blocks[0].counts, blocks[0].notes.get("findings")) == (whole[0].counts, whole[0].notes.get("findings"))
    assert len(whole[1]) == (2 if given else 11)


def test_blocks_of_rows_are_listed_judged_and_counted_as_the_whole_is(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"{number:02}": text for number, text in enumerate([*ENGLISH.values()] * 4)} | {"05": " "}
    captions, given = tmp_path / "captions.parquet", tmp_path / "given.csv"
    kinds = ["one", "other"] * 6
    pl.DataFrame({"id": list(texts), "text": texts.values(), "category": kinds}).write_parquet(captions)
    rows = [(f"{number % 5}", f"drum {number % 4}", number / 20) for number in range(20)]
    pl.DataFrame(rows, schema=["item", "text", "probability"], orient="row").write_csv(given)
    shown = table(tmp_path / "images", {f"image-{seed}": scene_png(seed) for seed in range(6)} | {"none": b"text"})

    simulated = CLIENTS.make("simulated")
    steps: list[tuple[str, Callable[[], Outcome]]] = [
        ("objects", lambda: put(objects, work, None, table=given)),
        ("objects", lambda: put(objects, work, simulated, captions=captions)),
        ("caption_stats", lambda: do(stats, work, captions, work.out / "objects.parquet")),
        ("judgments", lambda: put(extract, work, simulated, shown, dimensions=("objects",))),
        ("objects", lambda: put(objects, work, None, judgments=work.out / "judgments.parquet")),
    ]

    def written() -> list[bytes]:
        found = []
        for name, do_it in steps:
            assert do_it().counts
            found += [(work.out / f"{one}.parquet").read_bytes() for one in (name, "drops")]
        return found

    whole = written()
    monkeypatch.setattr(caption_files, "ROWS_PER_BLOCK", 5)
    monkeypatch.setattr(shown_images, "ROWS_PER_BLOCK", 2)
    assert written() == whole


def test_translations_that_are_none_say_why(work: Work, tmp_path: Path) -> None:
    source = {"a": "Rotes Tor", "b": "Blaues Haus", "c": "Grünes Dach", "d": " ", "e": "Weiße Wand"}
    said = tmp_path / "said.jsonl"
    rows = {"id": ["a", "b", "c"], "text": ["A red gate", "", "grünes  DACH!"]}
    pl.DataFrame(rows).write_ndjson(said)
    outcome, found, drops = translated(work, None, captions_file(tmp_path, source), said)
    assert found == {"a": "A red gate"}
    assert drops == {
        "b": "empty translation", "c": "translation is the caption itself", "d": "empty text", "e": "no translation",
    }  # fmt: skip
    assert outcome.notes["findings"] == ["3 of 4 captions have no translation"]
    row = read_table(work.out / "translations.parquet", TRANSLATIONS).row(0, named=True)
    assert row == {"id": "a", "text": "A red gate", "source": "Rotes Tor", "language": "en", "translator": "given"}


def test_a_model_that_does_not_translate_leaves_captions_without(work: Work, tmp_path: Path) -> None:
    def answer(request: Any) -> Any:
        caption = request.data["caption"]
        return {"id": "another"} if caption == ENGLISH["c"] else {"id": request.data["id"], "translation": caption}

    outcome, found, drops = translated(work, Scripted(answer), captions_file(tmp_path, ENGLISH))
    assert found == {}
    assert drops == dict.fromkeys("ab", "translation is the caption itself") | {"c": "invalid"}
    assert outcome.counts[QUARANTINED] == 1


def test_translations_of_other_captions_are_refused(work: Work, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    said = captions_file(tmp_path / "more", {**ENGLISH, "z": "Who knows"})
    with pytest.raises(UsageError, match="not there"):
        translated(work, None, captions_file(tmp_path, ENGLISH), said)
    with pytest.raises(UsageError, match="nobody translates"):
        translated(work, None, captions_file(tmp_path, ENGLISH))


def listed(work: Work, client: Any = None, **given: Any) -> tuple[list[Any], dict[str, str]]:
    put(objects, work, client, **given)
    found = read_table(work.out / "objects.parquet", OBJECTS).select("id", "text", "probability").rows()
    return found, dict(read_table(work.out / "drops.parquet", DROPS).select("key", "reason").iter_rows())


def test_objects_of_a_table_count_above_the_threshold_once_each(work: Work, tmp_path: Path) -> None:
    rows = [("x", "drum", 0.9), ("x", " Drum ", 0.8), ("x", "gong", 0.5), ("y", "", None), ("z", "gate", None)]
    path = tmp_path / "said.parquet"
    pl.DataFrame(rows, schema=["item", "text", "probability"], orient="row").write_parquet(path)
    found, drops = listed(work, table=path)
    assert found == [("x#1", "drum", 0.9), ("z#1", "gate", None)]
    assert drops == {"x/gong": "probability not above the threshold", "y": "no object"}


def test_a_vision_model_lists_objects_and_what_it_omits_is_dialled(work: Work, tmp_path: Path) -> None:
    images = table(tmp_path / "images", {f"image-{seed}": scene_png(seed) for seed in range(3)})
    counts = []
    for spec in ("simulated", "simulated?omits=0.6"):
        put(extract, work, CLIENTS.make(spec), images, dimensions=("objects",))
        judgments = work.out / "judgments.parquet"
        assert set(read_table(judgments, JUDGMENTS)["dimension"]) == {"objects"}
        found, _ = listed(work, judgments=judgments)
        counts.append(len(found))
        assert {own.partition("#")[0] for own, _, _ in found} <= {f"image-{seed}" for seed in range(3)}
    assert counts[0] > counts[1] > 0


def test_objects_that_captions_name_are_counted_and_captions_without_any_count_too(work: Work, tmp_path: Path) -> None:
    captions = captions_file(tmp_path, ENGLISH)
    found, drops = listed(work, CLIENTS.make("simulated"), captions=captions)
    assert [(own, text) for own, text, _ in found] == [
        ("a#1", "red envelopes"), ("a#2", "qipao dress"), ("b#1", "tiered cake"),
    ]  # fmt: skip
    assert drops == {"c": "no object"}
    do(stats, work, captions, work.out / "objects.parquet")
    assert read_table(work.out / "caption_stats.parquet", CAPTION_STATS).select("counted", "objects").row(0) == (3, 1.0)


def test_objects_are_of_one_source(work: Work, tmp_path: Path) -> None:
    for wrong in ({}, {"table": tmp_path, "captions": tmp_path}, {"images": tmp_path}):
        with pytest.raises(UsageError, match="one source"):
            listed(work, **wrong)
    with pytest.raises(UsageError, match="nobody looks"):
        listed(work, captions=captions_file(tmp_path, ENGLISH))
    (tmp_path / "a.csv").write_text("image,text\nx,y\n", encoding="utf-8")
    with pytest.raises(UsageError, match="lacks a column"):
        listed(work, table=tmp_path / "a.csv")


def test_judgments_of_two_judges_are_refused(work: Work, tmp_path: Path) -> None:
    said = {"image_id": "i", "task": "extract", "item": "drum", "dimension": "objects", "raw": "", "outcome": "ok"}
    both = rows_of(JUDGMENTS, said | {"judge": "m"}, said | {"judge": "n"})
    with pytest.raises(UsageError, match="one judge"):
        listed(work, judgments=write_table(tmp_path, JUDGMENTS, both))
    nothing = write_table(tmp_path, JUDGMENTS, both.clear())
    with pytest.raises(UsageError, match=r"no image was looked at.*drops\.parquet has the reason of each"):
        listed(work, judgments=nothing)
