"""What extract writes, preview counts and explain explains: the same under every option."""

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from culturekit.kg.concepts import Concept
from culturekit.kg.extract import extract
from culturekit.kg.inspection.explain import explain
from culturekit.kg.inspection.preview import PreviewOptions, preview
from tests.effort import examples
from tests.kg.worlds import ITEMS, Said, concept_of, make_graph, work_in, worlds

values = st.one_of(st.integers(-1, 8), st.sampled_from([155, 142, 30]))
statements = worlds(["P31", "P279", "P279", "P495", "P17"], values, least=6)
concepts = st.builds(
    lambda roots, scope, rules: concept_of(
        dict.fromkeys(roots), hops=3, classes=[3], items=[6], countries=scope
    ).model_copy(update=rules),
    st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True),
    st.sampled_from([None, ["BR"], ["BR", "FR"]]),
    st.fixed_dictionaries(
        {
            "ranks": st.sampled_from(["not-deprecated", "truthy", "all"]),
            "ended": st.sampled_from(["keep", "drop"]),
            "country_choice": st.sampled_from(["union", "P495-first"]),
            "expand_artifacts": st.booleans(),
        }
    ),
)


# A root with a country lies below itself; the country that counts by P495-first is out of scope; a root is excluded.
KNOWN = [Said(2, "P279", 1), Said(1, "P279", 2), Said(1, "P17", 155), Said(4, "P31", 2)]
KNOWN += [Said(4, "P495", 142), Said(4, "P17", 155), Said(5, "P31", 2), Said(5, "P17", 155)]
RULES = concept_of({1: None, 2: None}, classes=[2], countries=["BR"]).model_copy(
    update={"country_choice": "P495-first"}
)

BRAZILIAN = concept_of({1: None}, countries=["BR"])


@pytest.mark.endtoend
@example(world=KNOWN, concept=RULES, heir=False)
@example(world=[*KNOWN[:1], Said(4, "P31", 2), Said(4, "P17", 30)], concept=BRAZILIAN, heir=True)
@settings(max_examples=examples(60), deadline=None)
@given(world=statements, concept=concepts, heir=st.booleans())
def test_extract_preview_and_explain_agree(
    world: list[Said], concept: Concept, heir: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("world")
    graph = make_graph(folder / "w", world, ITEMS)
    out = work_in(folder / "out")
    successors = {30: 155} if heir else {}
    extract(out, graph, [concept], successors=successors)
    rows = {row["qid"]: row for row in pl.read_parquet(out.out / "candidates.parquet").iter_rows(named=True)}
    options = PreviewOptions(samples=100)
    found = preview(graph, concept, wording="", options=options, successors=successors)
    assert found.candidates == len(rows)
    inside = {
        qid
        for root in found.roots
        for hop in root.hops
        for cell in hop.cells
        for qid, _ in cell.sample
        if cell.country != "out of scope"
    }
    assert inside == rows.keys()
    for number in ITEMS:
        told = explain(graph, f"Q{number}", concept, successors=successors)
        assert (told.verdict == "in") == (told.qid in rows), told
        if told.qid in rows:
            row = rows[told.qid]
            assert told.roots[0].hop == row["hop"]
            assert {root.qid for root in told.roots} == set(row["roots"])
            assert tuple(step.qid for step in told.paths[0].steps) == tuple(row["path"])
            counted = {int(c.value[1:]) for c in told.countries if c.counts and c.value}
            assert {f"Q{successors.get(n, n)}" for n in counted} == set(row["country_qids"])
