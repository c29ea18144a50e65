"""Tables of a report page as the verification reads them."""

from culturekit.verify.tables.check_report import columns_of, tables_of

PAGE = """<div data-kernel="country"><table><caption>c</caption>
<tr><th rowspan="2">model</th><th colspan="2">all prompts</th></tr><tr><th>mapped</th><th>true</th></tr>
<tr data-model="atlas"><th>atlas</th><td data-concept="art"><span title="row 3 of scores.parquet, n = 6">0.5</span>
<span class="sub">0.4–0.6</span><span class="sub">6 images</span></td><td>–</td></tr></table></div>"""


def test_a_cell_knows_its_concept_kernel_and_each_line_under_it() -> None:
    (table,) = tables_of(PAGE)
    assert table.kernel == "country"
    model, cells = table.rows[-1]
    assert model == "atlas"
    assert cells[1].concept == "art"
    assert cells[1].title == "row 3 of scores.parquet, n = 6"
    assert cells[1].under.split("\n") == ["0.4–0.6", "6 images"]
    assert [columns_of(table)[place]["labels"] for place in (1, 2)] == ["mapped", "truth"]
