"""Which statements count: every rank and end, against a sentence for each."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.schemas import STATEMENTS
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of, mask_of

statements = st.lists(
    st.fixed_dictionaries(
        {
            "number": st.integers(1, 3), "property": st.sampled_from(["P31", "P279", "P17"]),
            "value": st.one_of(st.none(), st.integers(1, 3)),
            "rank": st.sampled_from(["preferred", "normal", "deprecated"]), "ended": st.booleans(),
        }
    ),
    max_size=12,
)  # fmt: skip


@given(
    rows=statements, ranks=st.sampled_from(["truthy", "not-deprecated", "all"]), ended=st.sampled_from(["keep", "drop"])
)
def test_a_mask_chooses_what_its_words_say(rows: list[dict[str, object]], ranks: str, ended: str) -> None:
    full = [{**row, "position": n, "snak": "value", "qualified": row["ended"]} for n, row in enumerate(rows)]
    found = flags_of(pl.DataFrame(full, schema=STATEMENTS.schema), EDGE_PROPERTIES)
    mask = mask_of(["P31", "P279"], EDGE_PROPERTIES, ranks=ranks, ended=ended)  # type: ignore[arg-type]
    chosen = sorted((row[0], row[1]) for row in found.iter_rows() if row[2] & mask)
    expected = []
    for row in rows:
        alike = [
            other["rank"] for other in rows if (other["number"], other["property"]) == (row["number"], row["property"])
        ]
        best = "preferred" if "preferred" in alike else "normal"
        good = {"truthy": row["rank"] == best, "not-deprecated": row["rank"] != "deprecated", "all": True}[ranks]
        if row["property"] != "P17" and row["value"] is not None and good and not (row["ended"] and ended == "drop"):
            expected.append((row["number"], row["value"]))
    assert chosen == sorted(expected)


@pytest.mark.parametrize("family", [EDGE_PROPERTIES, COUNTRY_PROPERTIES])
def test_properties_do_not_share_bits(family: tuple[str, ...]) -> None:
    first, second = (mask_of([name], family, ranks="all") for name in family)
    assert first & second == 0
    assert (first | second) < 2**16
