"""Scores by kernel: one table for all prompts, and closed ones for concepts."""

from dataclasses import replace

from culturekit.report.write import breakable, render
from tests.report.pages import page
from tests.report.report_tables import columns_of, tables_of


def section(text: str) -> str:
    """Give the section of kernels."""
    begin = text.index('id="kernels"')
    return text[begin : text.index("</section>", begin)]


def test_kernels_stand_side_by_side_and_concepts_are_closed() -> None:
    data = page()
    uniform = replace(data.tables[0], kernel="uniform", title="Diversity VS/8, order q = 2")
    text = section(render(replace(data, tables=(data.tables[0], uniform))))
    whole, *closed = tables_of(text)
    assert [columns_of(whole)[place] for place in (1, 2, 3, 4)] == [
        {"labels": label, "kernel": kernel} for kernel in ("country", "uniform") for label in ("mapped", "truth")
    ]
    assert whole.kernel is whole.concept is None
    assert '<span class="sub">q = 2</span>' in text
    assert [table.kernel for table in closed] == ["country", "uniform"]
    cells = [cell for table in closed for _, row in table.rows for cell in row if not cell.header]
    assert {cell.concept for cell in cells} == {"cuisine"}
    assert text.count("<details") == 2 and "<details open" not in text


def test_concepts_that_were_scored_apart_have_no_table_together() -> None:
    data = page()
    table = replace(data.tables[0], concepts=("art", "cuisine"))
    (shown,) = tables_of(section(render(replace(data, tables=(table,)))))
    assert {cell.concept for _, row in shown.rows for cell in row if not cell.header} == {"art", "cuisine"}


def test_a_long_spec_breaks_between_its_options() -> None:
    assert breakable("simulated?a=1&b=JP,US") == "simulated?<wbr>a=1<wbr>&amp;b=JP,<wbr>US"
    assert breakable("<b>") == "&lt;b&gt;"
