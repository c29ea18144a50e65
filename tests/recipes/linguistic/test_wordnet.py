"""WordNet: absent, half there, Debian's, mended; and hyponyms by NLTK against a walk through the file itself.

Needs NLTK and, for the walk, `CULTUREKIT_WORDNET` with the folder of Debian's package wordnet-base.
"""

import os
from pathlib import Path

import pytest

from culturekit.cli.doctor_command import wordnet
from culturekit.core.errors import UsageError
from culturekit.recipes.linguistic.wordnet import FILES, OF_DEBIAN, lacking, mend_wordnet, nouns_below, wordnet_folder

DEBIAN = Path(os.environ.get("CULTUREKIT_WORDNET", "/usr/share/wordnet"))
NO_WORDNET = "needs Debian's wordnet-base: apt install wordnet-base, or CULTUREKIT_WORDNET=FOLDER"

NOUNS = """  1 This stands for the licence.
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
    content = {"data.noun": NOUNS, "index.noun": INDEX, "data.adj": ADJECTIVES,
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
