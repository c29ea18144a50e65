"""Captions: grown from seeds, sampled and counted, translated, and the objects that they name."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from culturekit.builders import shown_images
from culturekit.builders.captions import caption_files
from culturekit.builders.captions.caption_files import OTHER, objects, read_captions, sample, stats, translate
from culturekit.builders.captions.expanding import ALIKE, KEPT, SAME, TOO_MANY, culture_file, expand, load_culture
from culturekit.builders.judging.scene_judge import extract
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.schemas import (
    CAPTION_PROPOSALS,
    CAPTION_STATS,
    CAPTIONS,
    DROPS,
    JUDGMENTS,
    OBJECTS,
    PROMPTS,
    TRANSLATIONS,
)
from culturekit.core.stage import QUARANTINED, Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.generation.simulated.scenes.scenes_backend import draw_scene, scene_of, spoken
from culturekit.index.embedding.embed_table import USUAL
from culturekit.index.models.letters_encoder import LettersEncoder
from culturekit.llm.client import Request
from culturekit.llm.clients.clients import CLIENTS
from tests.builders.judging.test_image_judge import Scripted, table
from tests.builders.put import do, put
from tests.builders.spaces import rows_of
from tests.generation.simulated.scenes.scene_worlds import knowledge

CHINESE = culture_file("chinese")
SEEDS = [seed.caption for seed in load_culture(CHINESE).seeds]
CATEGORY = "stereotyping"


def expanded(work: Work, client: Any, **options: Any) -> tuple[Outcome, pl.DataFrame, pl.DataFrame]:
    outcome = put(expand, work, client, CHINESE, **options)
    captions = read_table(work.out / "captions.parquet", CAPTIONS)
    return outcome, captions, read_table(work.out / "caption_proposals.parquet", CAPTION_PROPOSALS)


def saying(*rounds: Sequence[str], category: str = CATEGORY) -> Scripted:
    """Answer each question with the next captions, and the last ones for ever."""
    left = list(rounds)

    def answer(request: Request) -> Mapping[str, object]:
        said = left.pop(0) if len(left) > 1 else left[0]
        return {"id": request.data["id"], "captions": [{"caption": each, "category": category} for each in said]}

    return Scripted(answer)


def numbered(*numbers: int) -> list[str]:
    return [f"A street musician plays song number {number}" for number in numbers]


def test_captions_grow_to_the_number_that_is_wanted(work: Work) -> None:
    client = saying(numbered(1, 2, 3, 4, 5), numbered(6, 7, 8, 9, 10))
    outcome, captions, proposals = expanded(work, client, captions=12)
    assert captions["text"].to_list() == SEEDS + numbered(1, 2, 3, 4, 5, 6, 7)
    assert captions["id"].to_list()[-1] == "chinese-00012"
    assert captions["round"].to_list() == [0] * 5 + [1] * 5 + [2] * 2
    assert captions["proposer"].to_list() == [None] * 5 + ["scripted-1"] * 7
    assert proposals["outcome"].to_list() == [KEPT] * 7 + [TOO_MANY] * 3
    assert outcome.notes["ended"] == "12 captions after 2 questions in 2 rounds"
    assert "findings" not in outcome.notes


def test_three_rounds_that_add_nothing_end_it_and_are_told(work: Work) -> None:
    outcome, captions, proposals = expanded(work, saying(numbered(1), numbered(1)), captions=12)
    assert captions.height == 6
    assert outcome.notes["findings"] == [
        "3 rounds in a row added nothing: 6 of 12 captions after 4 questions in 4 rounds"
    ]
    assert proposals["nearest"].to_list() == [None, *["chinese-00006"] * 3]
    assert outcome.drops == {SAME: 3}


def test_every_proposal_says_why_it_is_not_kept(work: Work) -> None:
    (one,) = numbered(1)
    said = [
        f"Example 1: {one}.", one.upper(), "Here are five captions:", "Dance!", "x" * 401, "A sixth caption, unasked",
    ]  # fmt: skip
    client = saying(said, ["Sure, I can help", *numbered(2)])
    outcome, _, proposals = expanded(work, client, captions=7, encoder="letters", similarity=0.8)
    assert proposals.filter(pl.col("round") < 3).select("text", "outcome", "nearest").rows() == [
        (f"{one}.", KEPT, "chinese-00004"), (one.upper(), SAME, "chinese-00006"),
        ("Here are five captions:", "talk about captions", None), ("Dance!", "too short", None),
        ("x" * 401, "too long", None), ("A sixth caption, unasked", "more than the 5 asked for", None),
        ("Sure, I can help", "talk about captions", None), (*numbered(2), ALIKE, "chinese-00006"),
    ]  # fmt: skip
    drop = read_table(work.out / "drops.parquet", DROPS).filter(key="2/1/2").row(0, named=True)
    assert drop["reason"] == ALIKE
    assert drop["detail"].startswith(f"{numbered(2)[0]} | chinese-00006 (0.8")
    assert sum(outcome.drops.values()) == proposals.filter(pl.col("outcome") != KEPT).height


def test_a_round_shows_no_caption_twice_and_only_those_of_earlier_rounds(work: Work) -> None:
    client = CLIENTS.make("simulated?repeats=0.2&prose=0.1")
    _, captions, proposals = expanded(work, client, captions=300, encoder="letters", per_round=4)
    born = dict(captions.select("id", "round").iter_rows())
    questions = proposals.unique(["round", "request"]).sort("round", "request")
    for (number,), asked in questions.group_by("round"):
        shown = asked["examples"].explode()
        assert len(shown) == 5 * asked.height == shown.n_unique()
        assert asked.height <= 4
        assert all(born[each] < number for each in shown)
    assert questions.filter(round=1).height == 1
    assert set(proposals["outcome"]) >= {KEPT, SAME, ALIKE, "talk about captions"}


def test_what_is_kept_is_unlike_all_that_came_before(work: Work) -> None:
    _, captions, proposals = expanded(work, CLIENTS.make("simulated?repeats=0.2"), captions=200, encoder="letters")
    vectors = LettersEncoder().encode_texts(captions["text"].to_list()).astype(np.float64)
    cosines = np.tril(vectors @ vectors.T, -1)
    assert cosines.max() < 0.9
    kept = proposals.filter(outcome=KEPT).select("caption_id", "nearest", "similarity")
    place = {own: number for number, own in enumerate(captions["id"])}
    for own, nearest, similarity in kept.iter_rows():
        assert cosines[place[own]].max() == pytest.approx(similarity, abs=2e-5)
        assert cosines[place[own], place[nearest]] == pytest.approx(similarity, abs=2e-5)


def changed(change: Callable[[dict[str, Any]], None], folder: Path) -> Path:
    value = yaml.safe_load(CHINESE.read_text(encoding="utf-8"))
    change(value)
    path = folder / "changed.yaml"
    path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda value: value["seeds"].pop(), "at least 5"),
        (lambda value: value["seeds"][0].update(category="stereotypes"), "did you mean 'stereotyping'"),
        (lambda value: value["seeds"][0].update(caption=SEEDS[1].upper()), "the same but for case"),
        (lambda value: value.update(categories={}), "at least one"),
        (lambda value: value.update(langauge="en"), "did you mean 'language'"),
    ],
)
def test_a_culture_that_cannot_be_meant_or_is_nowhere_is_refused(
    change: Callable[[dict[str, Any]], None], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        load_culture(changed(change, tmp_path))
    with pytest.raises(UsageError, match="chinese"):
        culture_file("klingon")


def test_seeds_may_be_typed_as_a_paper_prints_them(tmp_path: Path) -> None:
    seeds = [*SEEDS, "Fishermen mend nets on a quay before dawn"]
    culture = load_culture(changed(lambda value: value.update(seeds=seeds), tmp_path))
    named = list(culture.categories)
    assert [seed.category for seed in culture.seeds] == [*named, named[0]]


def test_seeds_that_say_the_same_to_the_encoder_are_refused(work: Work) -> None:
    with pytest.raises(UsageError, match="a seed is like an earlier caption") as raised:
        expanded(work, saying(numbered(1)), captions=6, encoder="letters", similarity=-1)
    assert SEEDS[0] in str(raised.value)


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
    assert outcome.notes["categories"]["a"] == {"captions": 69, "drawn": 6}
    prompts = read_table(work.out / "prompts.parquet", PROMPTS)
    assert prompts.select("prompt_id", "text").rows() == drawn.select("id", "text").rows()
    assert set(prompts["country"]) == {"CN"}
    found = [drawn["id"].to_list()]
    for seed in (0, 4):
        do(sample, work, path, size=10, seed=seed)
        found.append(read_table(work.out / "captions.parquet", CAPTIONS)["id"].to_list())
    assert sorted(found[0]) == found[0] == found[1] != found[2]
    with pytest.raises(UsageError, match="fewer captions"):
        do(sample, work, path, size=101)


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


def test_objects_are_counted_where_they_are_known_and_those_of_other_captions_refused(
    work: Work, tmp_path: Path
) -> None:
    path, about = captions_table(tmp_path / "c", a=2, b=1, c=1), {"text": "drum", "lister": "m"}
    rows = [{**about, "id": f"{item}#{k}", "item": item} for item, k in (("c-000", 1), ("c-000", 2))]
    objects = write_table(tmp_path, OBJECTS, rows_of(OBJECTS, *rows))
    none = {"key": "c-002", "stage": "captions.objects", "reason": "no object"}
    write_table(tmp_path, DROPS, rows_of(DROPS, none))
    _, table = counts(work, path, objects)
    assert table.select("category", "counted", "objects").rows() == [
        ("a", 1, 2.0), ("all", 2, 1.0), ("b", 1, 0.0), ("c", 0, None),
    ]  # fmt: skip
    (tmp_path / "drops.parquet").unlink()
    write_table(tmp_path, OBJECTS, rows_of(OBJECTS, {**about, "id": "x#1", "item": "x"}))
    with pytest.raises(UsageError, match="of no caption"):
        counts(work, path, objects)


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

    captions = captions_file(tmp_path, ENGLISH)
    outcome, found, drops = translated(work, Scripted(answer), captions)
    assert found == {}
    assert drops == dict.fromkeys("ab", "translation is the caption itself") | {"c": "invalid"}
    assert outcome.counts[QUARANTINED] == 1
    (tmp_path / "more").mkdir()
    with pytest.raises(UsageError, match="not there"):
        translated(work, None, captions, captions_file(tmp_path / "more", {**ENGLISH, "z": "Who knows"}))
    with pytest.raises(UsageError, match="nobody translates"):
        translated(work, None, captions)


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


def test_objects_are_of_one_source_and_one_judge(work: Work, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("image,text\nx,y\n", encoding="utf-8")
    said = {"image_id": "i", "task": "extract", "item": "drum", "dimension": "objects", "raw": "", "outcome": "ok"}
    both = rows_of(JUDGMENTS, said | {"judge": "m"}, said | {"judge": "n"})
    (tmp_path / "none").mkdir()
    wrong: list[tuple[dict[str, Path], str]] = [
        *((given, "one source") for given in ({}, {"table": tmp_path, "captions": tmp_path}, {"images": tmp_path})),
        ({"captions": captions_file(tmp_path, ENGLISH)}, "nobody looks"),
        ({"table": tmp_path / "a.csv"}, "lacks a column"),
        ({"judgments": write_table(tmp_path, JUDGMENTS, both)}, "one judge"),
        ({"judgments": write_table(tmp_path / "none", JUDGMENTS, both.clear())},
         r"no image was looked at.*drops\.parquet has the reason of each"),
    ]  # fmt: skip
    for given, message in wrong:
        with pytest.raises(UsageError, match=message):
            listed(work, **given)


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
