import polars as pl
import pytest

from culturekit.release.card_content import SourceTexts, is_passage, long_passages

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


@pytest.mark.parametrize("text", PASSAGES)
def test_a_passage_of_running_text_is_found(text: str) -> None:
    assert is_passage(text)


@pytest.mark.parametrize("text", NO_PASSAGES)
def test_names_prompts_and_lists_are_no_passages(text: str) -> None:
    assert not is_passage(text)


def test_passages_are_found_among_cells() -> None:
    cells = pl.Series([*NO_PASSAGES, *PASSAGES])
    assert long_passages(cells) == list(PASSAGES)


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
