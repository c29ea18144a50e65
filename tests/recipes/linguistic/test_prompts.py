"""Prompts of `linguistic`: groups, dialects, corpora, and WordNet."""

import csv
import gzip
import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.cli.doctor_command import wordnet
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.inputs import manifest_of
from culturekit.core.stage import Stage
from culturekit.recipes.linguistic.dialects import (
    GRAMMARS,
    DialectOptions,
    Rules,
    corpus_digest,
    dialects_stage,
    draft_stage,
    phrases_met,
)
from culturekit.recipes.linguistic.prompts import neutral_stage, specific
from culturekit.recipes.linguistic.wordnet import FILES, OF_DEBIAN, lacking, mend_wordnet, nouns_below, wordnet_folder
from tests.recipes.built import built

NOUNS = (
    "apartment, appetizer, art museum, bakery, beauty store, bookshop, boutique, breakfast, cafe, city hall, "
    "convenience store, dance club, dessert, garden, gift shop, high school, historical building, history museum, "
    "home, house of worship, library, martial arts center, massage parlor, nail salon, restaurant, street in a city, "
    "supermarket, toy store, university, vending machine"
)
PRINTED = {"a plaza in America", "an African person's home", "a street in an East Asian city in the 21st century"}


def prompts(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "prompts.parquet")


def test_thirty_nouns_of_no_group_and_of_six_are_210(tmp_path: Path) -> None:
    table = prompts(built(neutral_stage(), tmp_path / "p"))
    assert table.height == 210
    typical = table.filter(pl.col("group").is_null())
    assert sorted(typical["artifact_id"]) == NOUNS.split(", ")
    assert "a typical breakfast" in typical["text"].to_list()
    assert table.group_by("group").len().sort("group")["len"].to_list() == [30] * 7
    assert table["text"].n_unique() == 210
    said = dict(table.select("prompt_id", "text").iter_rows())
    assert said["neutral-apartment-af"] == "an African apartment"
    assert said["neutral-university-eu"] == "a European university"
    assert prompts(built(neutral_stage(nouns=2), tmp_path / "two")).height == 14
    with pytest.raises(UsageError, match=r"fewer nouns.*--nouns of at most 30, found 500"):
        built(neutral_stage(nouns=500), tmp_path / "many")


def test_nine_groups_have_42_prompts_as_many_as_the_tables_of_the_paper_say(tmp_path: Path) -> None:
    """Its mean ratings are quarters of prompts: 2.188 is 35 of 16 images, 3.22 of 36; one prompt is told nowhere."""
    table = prompts(built(specific.stage(), tmp_path / "p"))
    assert table.height == table["text"].n_unique() == 42
    assert set(table["text"]) >= PRINTED
    sizes = dict(table.group_by("group").len().iter_rows())
    assert sizes == {"Africa": 4, "America": 4, "Asia": 9, "Europe": 4, "Latin America": 5, "African American": 4,
                     "Asian": 5, "Hispanic": 3, "White": 4}  # fmt: skip
    census = table.filter(pl.col("group").is_in(["African American", "Asian", "Hispanic", "White"]))
    assert all("America" in text for text in census["text"])
    mine = tmp_path / "lists.yaml"
    mine.write_text(
        "groups: [{name: Nordic, code: 'NO', adjective: Nordic}]\n"
        "specific: [{group: Nordic, code: 'NO', prompts: [a Nordic street]}]\n"
    )
    assert prompts(built(neutral_stage(mine), tmp_path / "mine")).height == 60, "groups of a user take their place"
    assert prompts(built(specific.stage(mine), tmp_path / "q"))["text"].to_list() == ["a Nordic street"]


@pytest.mark.parametrize(("dialect", "printed"), [("AAE", ["car / whip", "home / crib"]),
                                                  ("Singlish", ["professor / professor lah"])])  # fmt: skip
def test_printed_pairs_are_kept_and_ours_wait_for_a_review(tmp_path: Path, dialect: str, printed: list[str]) -> None:
    folder = built(dialects_stage(options=DialectOptions(other=dialect)), tmp_path / "p")
    pairs = pl.read_parquet(folder / "dialect_pairs.parquet")
    kept = pairs.filter(outcome="kept")
    assert kept.select(pl.concat_str("standard", "other", separator=" / ")).to_series().to_list() == printed
    assert set(kept["proposer"]) == {"from the paper"}
    ours = pairs.filter(pl.col("outcome") != "kept")
    assert ours.height >= 6
    assert set(ours.select("proposer", "outcome").iter_rows()) == {("proposed, unreviewed", "unreviewed")}
    assert all(row["detail"].startswith(("Cheung", "Wiktionary", "OED")) for row in pairs.iter_rows(named=True))
    table = prompts(folder)
    twins = table.group_by("artifact_id", "template_id").agg(pl.col("group").sort())
    assert twins["group"].to_list() == [sorted(["SAE", dialect])] * twins.height
    more = dialects_stage(options=DialectOptions(other=dialect, unreviewed=True))
    assert prompts(built(more, tmp_path / "q")).height == 2 * pairs["frames"].list.len().sum()


def test_a_dialect_is_drafted_then_reviewed_on_a_sheet(tmp_path: Path) -> None:
    (tmp_path / "sg.txt").write_text("my kopi at the kopitiam, this handphone\n")
    draft = draft_stage(other_corpus=tmp_path / "sg.txt", dialect="Singlish", proposer="simulated?omits=0", count=10)
    folder = built(draft, tmp_path / "draft")
    assert not (folder / "prompts.parquet").exists(), "nobody has said yes yet"
    with (folder / "review.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["other"] for row in rows if row["outcome"] == "unreviewed"} == {"kopi", "kopitiam", "handphone"}
    assert [row["outcome"] for row in rows] == ["unreviewed"] * 3 + ["not in the corpus"] * (len(rows) - 3)
    sheet = tmp_path / "sheet.csv"

    def reviewed(**decisions: tuple[str, str]) -> Stage:
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            for row in rows:
                decision, new_name = decisions.get(row["other"], ("", ""))
                writer.writerow({**row, "decision": decision, "new_name": new_name, "source": "a speaker"})
        return dialects_stage(review=sheet, options=DialectOptions(other="Singlish"))

    answered = reviewed(kopi=("accept", ""), kopitiam=("reject", ""), handphone=("edit", "hp"))
    table = prompts(built(answered, tmp_path / "prompts"))
    assert {"a man drinking his kopi", "a man drinking his coffee", "a woman holding her hp"} <= set(table["text"])
    assert set(table["group"]) == {"SAE", "Singlish"}
    pairs = pl.read_parquet(tmp_path / "prompts/dialect_pairs.parquet")
    assert set(pairs.select("proposer", "outcome", "detail").iter_rows()) == {("reviewed", "kept", "a speaker")}
    with pytest.raises(UsageError, match="people accepted no pair"):
        built(reviewed(), tmp_path / "nothing")
    with pytest.raises(ConfigError, match="an edit needs the new name"):
        built(reviewed(kopi=("edit", "")), tmp_path / "nothing")


YAML = """
pairs:
  - {standard: car, other: whip, frames: ["a man driving his {}"]}
  - {standard: Car, other: Whip, frames: ["a man driving his {}"]}
  - {standard: home, other: crib, frames: ["a man at his {}"]}
  - {standard: shoes, other: kicks, frames: ["a man tying a {}"]}
  - {standard: hat, other: hat, frames: ["a man with his {}"]}
  - {standard: hat, other: lid, frames: ["a man with his hat"]}
  - {standard: hat, other: "<b>lid</b>", frames: ["a man with his {}"]}
  - {standard: hat, other: lid, frames: ["a man {0.__class__} his {}"]}
"""


def test_each_pair_that_falls_says_at_which_filter_and_why(tmp_path: Path) -> None:
    (tmp_path / "lists.yaml").write_text(YAML)
    sae, aae = tmp_path / "sae", tmp_path / "aae"
    sae.mkdir()
    aae.mkdir()
    (sae / "a.txt").write_text("My CAR is here\nno shoes, no homely home\n")
    with gzip.open(aae / "b.txt.gz", "wt") as stream:
        stream.write("look at that whip\nnew kicks\ncribs\n")
    stage = dialects_stage(tmp_path / "lists.yaml", sae, aae)
    assert set(stage.inputs) == {"lists", "standard-corpus", "other-corpus"}
    folder = built(stage, tmp_path / "p")
    rows = pl.read_parquet(folder / "dialect_pairs.parquet")
    assert rows["outcome"].to_list() == ["kept", "repeated", "not in the corpus", "not grammatical", *["malformed"] * 4]
    assert rows["detail"][2] == "'crib' in that of AAE"
    assert rows["detail"][3] == "'a' before 'kicks', which are many: 'a man tying a kicks' in AAE"
    assert prompts(folder)["text"].sort().to_list() == ["a man driving his car", "a man driving his whip"]
    before = corpus_digest(sae)
    assert manifest_of(folder).inputs["standard-corpus"].sha256 == before
    sae.rename(tmp_path / "moved")
    assert corpus_digest(tmp_path / "moved") == before
    (tmp_path / "moved/b.csv").write_text("")
    assert corpus_digest(tmp_path / "moved") != before


def test_a_model_proposes_and_what_it_talks_falls(tmp_path: Path) -> None:
    options = DialectOptions("simulated?prose=0.3&invents=0.2", count=20)
    folder = built(dialects_stage(options=options), tmp_path / "p")
    rows = pl.read_parquet(folder / "dialect_pairs.parquet")
    assert set(rows["proposer"]) == {"simulated"}
    assert {"kept", "malformed", "repeated"} <= set(rows["outcome"])
    assert rows.filter(outcome="kept")["detail"].null_count() == rows.filter(outcome="kept").height
    assert prompts(folder).height == 2 * rows.filter(outcome="kept")["frames"].list.len().sum()


def test_a_corpus_is_streamed_and_words_are_whole(tmp_path: Path) -> None:
    """Against a count over the whole text; where a long line is cut nothing is lost, and nothing is found."""
    text = "ice cubes. Ice! nice mice\nice\n" + "x " * 60_000 + "ice\n"
    (tmp_path / "c.txt").write_text(text)
    words = "".join(one if one.isalnum() else " " for one in text.casefold()).split()
    assert phrases_met(tmp_path, ["ice", "ice cubes", "no such"]) == {
        "ice": words.count("ice"), "ice cubes": 1, "no such": 0,
    }  # fmt: skip
    with pytest.raises(UsageError, match="there is no corpus"):
        phrases_met(tmp_path / "nowhere", ["ice"])
    for at in range(4):
        (tmp_path / "c.txt").write_text(" " * at + "nice ice cubes " * 10_000)
        assert phrases_met(tmp_path, ["ice", "ice cubes", "cubes nice ice"]) == {
            "ice": 10_000, "ice cubes": 10_000, "cubes nice ice": 9_999,
        }  # fmt: skip
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b broken")
    with pytest.raises(UsageError, match="cannot be read"):
        phrases_met(tmp_path, ["ice"])


def test_a_corpus_of_any_size_takes_no_more_memory(tmp_path: Path) -> None:
    """Thousands of files, and a line without end: what is held is a piece of one, and the names of one folder."""
    for folder in range(10):
        (tmp_path / f"{folder:02}").mkdir()
        for number in range(10):
            (tmp_path / f"{folder:02}/{number:02}.txt").write_text("look at that whip\n" * 20)
    (tmp_path / "00/endless.txt").write_text("no end to it " * 100_000)
    tracemalloc.start()
    try:
        assert phrases_met(tmp_path, ["whip", "crib"]) == {"whip": 2_000, "crib": 0}
        assert len(corpus_digest(tmp_path)) == 64
        assert tracemalloc.get_traced_memory()[1] < 1 << 20, "the longest line alone is larger"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("a man driving his whip", ""), ("she be working late", ""), ("he my brother", ""), ("an hour at home", ""),
        ("a university", ""), ("a apple on a table", "'a' before 'apple'"), ("the the man", "stands twice"),
        ("his the car", "follow each other"), ("this shoes are new", "which are many"), ("{x} car", "no sentence"),
    ],
)  # fmt: skip
def test_rules_hold_in_any_dialect(sentence: str, said: str) -> None:
    found = Rules().problem(sentence, sentence, "AAE")
    assert (said in found) if said else found == ""


# Built as Multi-VALUE 0.3 is: a module that its package does not import, and rules that hold by chance
REAL = """
import random

class HabitualBe:
    made = 0

    def __init__(self, lexical_swaps={}, morphosyntax=True, seed=None):
        HabitualBe.made += 1

    def set_seed(self, seed):
        random.seed(seed)

    def transform(self, string):
        if string == "unread":
            assert False, "Spacy and Stanza sentence mismatch."
        always = string.replace(" is ", " be ")
        return always.replace(" the ", " da ") if random.random() < 0.6 else always

class AfricanAmericanVernacular(HabitualBe): pass
class ColloquialSingaporeDialect(HabitualBe): pass
class IrishDialect(HabitualBe): pass
class Broken(HabitualBe):
    def __init__(self):
        raise OSError("[E050] Can't find model 'en_core_web_sm'.")
"""


@pytest.fixture
def multi_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = tmp_path / "packages/multivalue"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "Dialects.py").write_text(REAL)
    monkeypatch.syspath_prepend(str(package.parent))
    yield package
    for name in ("multivalue.Dialects", "multivalue"):
        sys.modules.pop(name, None)


def test_multi_value_accepts_what_its_rules_may_make(multi_value: Path) -> None:
    checker = GRAMMARS.make("multi-value")
    assert checker.problem("a man by his whip", "a man by his car", "AAE") == ""
    assert checker.problem("the whip be new", "the car be new", "AAE") == ""
    for _ in range(5):
        assert checker.problem("in the whip", "in the car", "AAE") == "", "chance may leave it alone"
        assert checker.problem("in da whip", "in the car", "AAE") == "", "and may change it"
    assert "its rules make 'the whip be new' of it" in checker.problem("the whip is new", "the car is new", "AAE")
    assert checker.problem("a whip in a carport", "a car in a carport", "AAVE") == ""
    assert "sentence mismatch" in checker.problem("unread", "unread", "AAE")
    assert checker.problem("a x", "a y", "Singlish") == checker.problem("a x", "a y", "Irish") == ""
    assert checker.problem("he am x", "he is y", "AAE"), "what its rules leave alone they did not make"
    assert sys.modules["multivalue.Dialects"].HabitualBe.made == 4, "each dialect is loaded once"
    with pytest.raises(UsageError, match="knows no such dialect"):
        checker.problem("a", "b", "Latin")
    with pytest.raises(UsageError, match=r"cannot be loaded.*en_core_web_sm.*downloads"):
        checker.problem("a", "b", "Broken")


@pytest.mark.parametrize(("first", "said"), [
    ("raise SystemExit(1)", "cannot be loaded"), ("import geopy_of_nowhere", "cannot be loaded"),
    ("raise ModuleNotFoundError(name='multivalue')", "is not installed"),
])  # fmt: skip
def test_multi_value_that_cannot_be_loaded_says_so(multi_value: Path, first: str, said: str) -> None:
    (multi_value / "__init__.py").write_text(first)
    with pytest.raises(UsageError, match=f"Multi-VALUE {said}"):
        GRAMMARS.make("multi-value")


def test_multi_value_itself_may_leave_a_sentence_alone_and_turns_none_around() -> None:
    pytest.importorskip("multivalue", reason="needs pip install value-nlp")
    try:
        checker = GRAMMARS.make("multi-value")
        assert checker.problem("a man driving his whip", "a man driving his car", "AAE") == ""
    except UsageError as error:  # it downloads what it reads with
        pytest.skip(str(error))
    assert "its rules make" in checker.problem("whip his driving man a", "a man driving his car", "AAE")


def test_prompts_are_about_what_people_accept(tmp_path: Path) -> None:
    sheet = tmp_path / "review.csv"
    sheet.write_text(
        "synset,noun,term,definition,decision,new_name\nbakery.n.01,bakery,shop.n.01,d,accept,\n"
        "bazaar.n.01,bazaar,shop.n.01,d,reject,\nbistro.n.01,bistro,r.n.01,d,edit,small restaurant\n"
        "bar.n.01,bar,r.n.01,d,,\n"
    )
    table = prompts(built(neutral_stage(review=sheet), tmp_path / "p"))
    assert sorted(set(table["artifact_id"])) == ["bakery", "small restaurant"]
    assert table.height == 14
    sheet.write_text("synset,noun,decision\nbakery.n.01,bakery,perhaps\n")
    with pytest.raises(ConfigError, match="'perhaps' is no decision"):
        built(neutral_stage(review=sheet), tmp_path / "q")
    sheet.write_text("synset,noun,decision\nbakery.n.01,bakery,reject\n")
    with pytest.raises(UsageError, match="accepted no noun"):
        built(neutral_stage(review=sheet), tmp_path / "r")


DEBIAN = Path(os.environ.get("CULTUREKIT_WORDNET", "/usr/share/wordnet"))
NO_WORDNET = "needs Debian's wordnet-base: apt install wordnet-base, or CULTUREKIT_WORDNET=FOLDER"
WORDNET_NOUNS = """  1 This stands for the licence.
00000100 06 n 01 shop 0 002 ~ 00000200 n 0000 ~ 00000300 n 0000 | a place
00000200 06 n 02 book_shop 0 bookshop 0 001 @ 00000100 n 0000 | a shop for books
00000300 06 n 01 Bakery 1 001 @ 00000100 n 0000 | a shop for bread
"""
INDEX = """  1 This stands for the licence.
bakery n 1 1 @ 1 0 00000300
book_shop n 1 1 @ 1 0 00000200
bookshop n 1 1 @ 1 0 00000200
shop n 1 1 ~ 1 1 00000100
"""
ADJECTIVES = """00000010 00 a 01 fast 0 001 & 00000020 a 0000 | quick
00000020 00 s 01 hasty 0 001 & 00000010 a 0000 | too quick
"""


def tiny(folder: Path, leave_out: frozenset[str] = OF_DEBIAN) -> Path:
    """Write a WordNet of three nouns, without some files."""
    folder.mkdir(parents=True)
    content = {"data.noun": WORDNET_NOUNS, "index.noun": INDEX, "data.adj": ADJECTIVES,
               "index.adj": "fast a 1 1 & 1 0 00000010\nhasty a 1 1 & 1 0 00000020\n",
               "cntlist.rev": "shop%1:06:00:: 1 7\n"}  # fmt: skip
    for name in FILES - leave_out:
        (folder / name).write_text(content.get(name, ""))
    return folder


def test_absent_half_there_and_debians_are_told_apart(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    absent.mkdir()
    half = tiny(tmp_path / "half/corpora/wordnet", frozenset(("data.verb", "lexnames"))).parents[1]
    debian = tiny(tmp_path / "debian")
    said = {"absent": "there is no WordNet", "half": "not whole", "debian": "Debian's wordnet-base"}
    hints = {"absent": "nltk.downloader", "half": "nltk.downloader", "debian": "culturekit prompts wordnet --source"}
    for name, folder in (("absent", absent), ("half", half), ("debian", debian)):
        with pytest.raises(UsageError, match=said[name]) as raised:
            wordnet_folder(folder)
        assert hints[name] in str(raised.value)
    (absent / "corpora").mkdir()
    (absent / "corpora/wordnet.zip").write_bytes(b"")
    with pytest.raises(UsageError, match=r"Unzip wordnet\.zip"):
        wordnet_folder(absent)


def test_the_doctor_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culturekit.recipes.linguistic.wordnet.DEBIAN", tmp_path / "nowhere")
    assert wordnet([tmp_path]).level == "absent"
    assert "nltk.downloader" in wordnet([tmp_path]).hint
    monkeypatch.setattr("culturekit.recipes.linguistic.wordnet.DEBIAN", tiny(tmp_path / "debian"))
    assert wordnet([]).hint.startswith("culturekit prompts wordnet")
    half = tiny(tmp_path / "half/corpora/wordnet", frozenset(("data.verb",))).parents[1]
    assert (wordnet([half]).level, "data.verb" in wordnet([half]).found) == ("broken", True)
    whole = tiny(tmp_path / "whole/corpora/wordnet", frozenset()).parents[1]
    assert wordnet([whole]).level == "ok"


def test_what_debian_leaves_out_is_written(tmp_path: Path) -> None:
    assert mend_wordnet(tiny(tmp_path / "debian"), tmp_path) == 6
    place = tmp_path / "corpora/wordnet"
    assert lacking(tmp_path) == (place, frozenset())
    assert (place / "index.sense").read_text().splitlines() == [
        "bakery%1:06:01:: 00000300 1 0", "book_shop%1:06:00:: 00000200 1 0", "bookshop%1:06:00:: 00000200 1 0",
        "fast%3:00:00:: 00000010 1 0", "hasty%5:00:00:fast:00 00000020 1 0", "shop%1:06:00:: 00000100 1 7",
    ]  # fmt: skip
    names = (place / "lexnames").read_text().splitlines()
    assert len(names) == 45
    assert names[6] == "06\tnoun.artifact\t1"


def walk(place: Path, offset: str) -> set[str]:
    """Follow the pointers of hyponyms through the file, with a list of what is still to be seen."""
    lines = {line[:8]: line.split(" | ")[0].split() for line in (place / "data.noun").read_text().splitlines()}
    seen: set[str] = set()
    waiting = [offset]
    while waiting:
        fields = lines[waiting.pop()]
        at = 4 + 2 * int(fields[3], 16) + 1
        below = {fields[n + 1] for n in range(at, len(fields), 4) if fields[n] == "~"} - seen
        seen |= below
        waiting += below
    return {" ".join(lines[one][4].split("_")) for one in seen}


@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason=NO_WORDNET)
def test_hyponyms_by_nltk_are_those_of_a_plain_walk(tmp_path: Path) -> None:
    """WordNet 3.0 has 206,941 pairs of a word and a sense."""
    pytest.importorskip("nltk", reason="needs the extra sources")
    assert mend_wordnet(DEBIAN, tmp_path) == 206_941
    for term, word in (("shop.n.01", "shop"), ("meal.n.01", "meal"), ("building.n.01", "building")):
        index = (DEBIAN / "index.noun").read_text().splitlines()
        fields = next(line.split() for line in index if line.startswith(f"{word} "))
        offset = fields[-int(fields[2])]
        found = nouns_below(tmp_path, [term])
        assert {noun["noun"] for noun in found} == walk(DEBIAN, offset)
        assert {noun["term"] for noun in found} == {term}
        assert len(found) > 20
    with pytest.raises(UsageError, match="no such synset"):
        nouns_below(tmp_path, ["nosuchthing.n.01"])
