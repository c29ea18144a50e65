import re
from dataclasses import replace

from culturekit.report.write import render
from tests.report.pages import faithfulness, page


def section() -> str:
    html = render(replace(page(), faithfulness=faithfulness("mirage", "atlas")))
    return html.partition('<section aria-labelledby="faithfulness">')[2].partition("</section>")[0]


def test_a_run_without_judges_has_no_section_and_what_is_missing_is_said_where_it_would_stand() -> None:
    assert "Quality and faithfulness" not in render(page())
    text = section()
    assert "no score" in text
    assert "No scorer compared image and text." in text
    assert "2 of them got no answer" in text
    assert "95 % intervals for these prompts" in text
    assert "95 % intervals for prompts like these" in text
    assert set(re.findall(r'href="([^"]+)"', section())) == {"#shots-mirage", "#shots-atlas"}


def test_each_instrument_has_its_table_and_its_chart() -> None:
    text = section()
    assert text.count("<svg") == 2
    assert len(set(re.findall(r'<title id="([^"]+)"', text))) == 2
    assert text.count("<caption>") == 2 + 1 + 1 + 2 + 1 + 1, (
        "tables, concepts, differences, questions twice, judges, people"
    )
    row = re.search(r'<tr data-model="mirage">.*?</tr>', text)
    assert row is not None
    assert re.sub(r"<[^>]+>", " ", row[0]).split() == ["mirage", "0.500", "0.400–0.600", "12", "48", "3", "2", "1", "4"]


def test_what_people_put_right_stands_beside_what_the_judge_says() -> None:
    text = section().partition("Put right by people")[2]
    row = re.search(r'<tr data-model="mirage">.*?</tr>', text)
    assert row is not None
    words = re.sub(r"<[^>]+>", " ", row[0]).split()
    assert words[:7] == ["mirage", "art", "DSG", "seer-1", "0.700", "0.680–0.720", "0.410"]
    assert words[-3:] == ["in-region", "one", "rater"]
    assert "3: people marked too few items" in text
    assert "Every number here that people did not put right is a model" in section()
