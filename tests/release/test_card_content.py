"""Pages, paths and values of a card: passages of running text, cells of Markdown, differences."""

import os
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.release.card_content import SourceTexts, differences, is_plain, long_passages
from culturekit.release.card_pages import BLOCK, block, code, escaped, table

PASSAGES = (
    # of our own making, in the manner of an encyclopedia, an atlas of etiquette, and in several scripts
    "Akara is a fritter made from peeled beans that are ground with onion and pepper and fried in palm oil, and it is "
    "sold in the morning along the streets of many towns in the south of the country.",
    "Guests are usually offered tea as soon as they sit down, and it is considered rude to refuse the first cup. "
    "When the host fills it again, one may decline by placing a hand over the cup and saying thank you.",
    "La tarte est préparée avec des pommes coupées en quartiers que l'on fait caraméliser dans le beurre et le sucre "
    "avant de les couvrir de pâte, puis elle est retournée au moment de servir.",
    "Это блюдо готовят из свёклы и капусты, подают горячим вместе со сметаной, а в некоторых деревнях его едят и "
    "холодным, когда летом стоит жара и никому не хочется долго стоять у плиты.",
    "この料理は豆を一晩水につけてから皮をむき、石臼で細かくひいて油で揚げたもので、朝になると町のあちこちの屋台で売られており、"
    "子どもから年寄りまで多くの人に親しまれている。",
    "यह व्यंजन चावल और उड़द की दाल को रात भर भिगोकर और फिर पीसकर बनाया जाता है और सुबह के समय घर के सब लोग इसे "
    "नारियल की चटनी के साथ बड़े चाव से खाते हैं।",
    "هذا الطبق يصنع من القمح المجروش الذي يطبخ مع اللحم والبصل لساعات طويلة حتى ينضج، ثم يقدم في الأعياد للضيوف "
    "الذين يأتون من القرى المجاورة ليشاركوا أهل البيت فرحتهم في ذلك اليوم.",
)

NO_PASSAGES = (
    "Feijoada",
    "A high resolution image of Moin moin from Nigerian cuisine, realistic",
    "A panoramic view of the Basilica of the National Shrine of Our Lady of Aparecida in Brazil, realistic",
    # one of the longest names of a place, and one that carries small words
    "Krung Thep Maha Nakhon Amon Rattanakosin Mahinthara Ayuthaya Mahadilok Phop Noppharat Ratchathani Burirom "
    "Udomratchaniwet Mahasathan Amon Phiman Awatan Sathit Sakkathattiya Witsanukam Prasit St. Mary Sq. No. 1",
    "Metropolitan Cathedral of the Assumption of the Most Blessed Virgin Mary into Heavens of the Archdiocese of "
    "Mexico with the Chapel of the Kings and the Tabernacle of the Holy Sacrament, Historic Centre of Mexico City.",
    "lowres, bad anatomy, bad hands, text, error, missing fingers, extra digit, fewer digits, cropped, worst quality, "
    "low quality, normal quality, jpeg artifacts, signature, watermark, username, blurry, deformed, ugly, duplicate.",
    "Q2095 Q746549 Q1492 Q2 Q5 Q11460 Q9053464 Q3172759 Q107357104 Q45971958 Q17399019 Q1153484 Q570116 Q811979.",
    "श्री श्री रामकृष्ण परमहंस देव स्मृति मंदिर तथा विवेकानंद सभागृह एवं संग्रहालय परिसर, बेलूर।",
    "東京都庭園美術館本館",
    "กรุงเทพมหานคร อมรรัตนโกสินทร์ มหินทรายุธยา",
    "https://example.org/a/very/long/address/that/goes/on/and/on/and/on?with=parameters&more=of&them=all&the=way.",
    '{"temperature": 0.0, "seed": 7, "model": "a-model", "max_tokens": 512, "stop": ["end"], "user": "nobody"}',
    "clothing; costume; traditional costume; type of dance; performing arts genre; style of painting; folk art; "
    "dress; garment; textile; weaving; embroidery; mask; puppet; theatre; song; drum; lute; flute; opera; ballet.",
)


def test_passages_are_found_among_names_prompts_and_lists() -> None:
    assert long_passages(pl.Series([*NO_PASSAGES, *PASSAGES])) == list(PASSAGES)


def test_words_of_a_source_are_found_whatever_their_markup_case_and_script() -> None:
    known = SourceTexts([f"<p>{PASSAGES[1].replace('rude', '<b>rude</b>')}</p><script>var hidden = 1</script>"])
    assert known.found_in(PASSAGES[1].upper())
    assert known.found_in("They say that it is considered rude to refuse the first cup when the host fills it.")
    assert known.found_in("It is considered rude to refuse a first cup of tea in that place, as one hears.") is None
    assert known.found_in("var hidden = 1") is None
    known = SourceTexts([PASSAGES[4]])
    assert known.found_in(PASSAGES[4][5:50])
    assert known.found_in(PASSAGES[4][5:20]) is None


def test_a_long_name_that_a_source_mentions_may_be_released() -> None:
    name = "Basilica of the National Shrine of Our Lady of Aparecida in the State of São Paulo"
    known = SourceTexts([f"We went to the {name} and came back."])
    assert list(known.cells_found(pl.Series([name]), least=20)) == []
    assert list(known.cells_found(pl.Series([name])))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text())
def test_a_cell_stays_one_cell_in_one_line(text: str) -> None:
    for written in (escaped(text), code(text)):
        assert len(written.splitlines()) <= 1
        assert not re.search(r"(?<!\\)(?:\\\\)*\|", written)
        assert "<" not in written
        assert written.isprintable()


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_a_block_is_found_whole_whatever_is_in_it(labels: list[str]) -> None:
    text = table(("label",), [(escaped(label),) for label in labels])
    page = f"{block('one', text)}\n\n{block('two', text)}"
    assert [(found["name"], found["text"]) for found in BLOCK.finditer(page)] == [("one", text), ("two", text)]


@pytest.mark.parametrize(("label", "shown"), [
    ("a|b", r"a\|b"), ("<b>", "&lt;b&gt;"), ("a\nb", r"a\\nb"), ("see https://x.example", r"see https\://x.example"),
    ("x" * 200, "x" * 160 + "… \\(200 characters\\)"),
])  # fmt: skip
def test_how_labels_are_shown(label: str, shown: str) -> None:
    assert escaped(label) == shown


@given(st.text(alphabet=st.sampled_from("ab./\\:~% \n\0") | st.characters(), max_size=40))
def test_a_plain_path_stays_in_its_folder(text: str) -> None:
    if is_plain(text):
        folder = Path("/somewhere/card")
        assert Path(os.path.normpath(folder / text)).is_relative_to(folder)


@pytest.mark.parametrize("path", [
    "../x", "a/../b", "/etc/passwd", "", ".", "a//b", "./a", "a/", "C:/x", "c:x", "\\\\host\\x", "a\\..\\b", "~/x",
    "~root", "file:///etc/passwd", "https://x.example/y", "%2e%2e/x", "a\0b", "a\nb", "a\ud800b", "a\udcff", None, 3,
    ["a"],
])  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_refused_and_a_plain_one_taken(path: object) -> None:
    assert not is_plain(path)
    assert all(map(is_plain, ("README.md", "data/cspace/art.parquet", "a..b/c", "data/cspace/*.parquet", "...x")))


@given(JSON, JSON)
def test_values_that_differ_are_told_apart(one: object, other: object) -> None:
    assert list(differences(one, one)) == []
    if one != other:
        assert list(differences(one, other))
