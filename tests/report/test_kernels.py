"""Scores by kernel: one table for all prompts, and closed ones for concepts."""

from dataclasses import replace

from culturekit.report.write import breakable, render
from tests.report.pages import page
from tests.report.report_tables import columns_of, tables_of


def section(text: str) -> str:
    begin = text.index('id="kernels"')
    return text[begin : text.index("</section>", begin)]


def test_kernels_stand_side_by_side_and_concepts_are_closed() -> None:
    data = page()
    uniform = replace(data.tables[0], kernel="uniform")
    text = section(render(replace(data, tables=(data.tables[0], uniform))))
    whole, *closed = tables_of(text)
    assert [columns_of(whole)[position] for position in (1, 2, 3, 4)] == [
        {"labels": label, "kernel": kernel} for kernel in ("country", "uniform") for label in ("mapped", "truth")
    ]
    assert whole.kernel is whole.concept is None
    assert [table.kernel for table in closed] == ["country", "uniform"]
    cells = [cell for table in closed for _, row in table.rows for cell in row if not cell.header]
    assert {cell.concept for cell in cells} == {"cuisine"}
    assert text.count("<details") == 2 and "<details open" not in text


def test_scores_of_two_orders_share_no_table() -> None:
    """An artifact kernel of order 2 stood beside a country kernel of order 1, .628 beside .748."""
    data = page()
    uniform = replace(data.tables[0], kernel="uniform", order="q = 2")
    text = section(render(replace(data, tables=(uniform, data.tables[0]))))
    columns = [columns_of(table).values() for table in tables_of(text)]
    kernels = [{column["kernel"] for column in of_table if "kernel" in column} for of_table in columns]
    assert kernels[:2] == [{"country"}, {"uniform"}]
    assert [f"order q = {order}, over all prompts" in text for order in (1, 2)] == [True, True]


def test_concepts_that_were_scored_apart_have_no_table_together() -> None:
    data = page()
    table = replace(data.tables[0], concepts=("art", "cuisine"))
    (shown,) = tables_of(section(render(replace(data, tables=(table,)))))
    assert {cell.concept for _, row in shown.rows for cell in row if not cell.header} == {"art", "cuisine"}


def test_a_long_spec_breaks_between_its_options() -> None:
    assert breakable("simulated?a=1&b=JP,US") == "simulated?<wbr>a=1<wbr>&amp;b=JP,<wbr>US"
    assert breakable("<b>") == "&lt;b&gt;"
