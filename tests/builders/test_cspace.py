from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.cspace import release
from culturekit.builders.popularity import Sitelinks
from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept, Root
from culturekit.records.schemas import CSPACE, DROPS, KEPT
from culturekit.records.work import Work
from culturekit.storage.tables import read_table, write_table
from tests.builders.spaces import rows_of

ART = Concept(
    concept="art",
    hops=3,
    roots=(
        Root(qid="Q11460", label="clothing", subconcept="clothing"),
        Root(qid="Q2", label="dance", subconcept="dance"),
    ),
    countries=("BR", "FR", "JP"),
)


def kept(qid: str, *countries: str, **changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "qid": qid, "label": f"name of {qid}", "concept": "art", "country_qids": list(countries), "roots": ["Q11460"],
        "path": ["Q11460", qid], "verdict": "keep", "reason": "r",
    }  # fmt: skip
    return {**row, **changes}


def released(work: Work, tmp_path: Path, *rows: dict[str, object], concept: Concept = ART) -> pl.DataFrame:
    release(work, [write_table(tmp_path, KEPT, rows_of(KEPT, *rows))], [concept], Sitelinks())
    return read_table(work.out / "cspace.parquet", CSPACE)


def test_an_artifact_of_several_countries_appears_in_each(work: Work, tmp_path: Path) -> None:
    space = released(work, tmp_path, kept("Q5", "Q142", "Q29", "Q155"))
    assert space.select("artifact_id", "country", "continent", "country_order").rows() == [
        ("Q5", "BR", "South America", 1),
        ("Q5", "FR", "Europe", 0),
    ]


def test_the_subconcept_is_that_of_the_first_root_in_the_config(work: Work, tmp_path: Path) -> None:
    rows = [kept("Q5", "Q155", roots=["Q2", "Q11460"]), kept("Q6", "Q155", roots=["Q2"])]
    assert released(work, tmp_path, *rows)["subconcept"].to_list() == ["clothing", "dance"]


def test_popularity_is_a_rank_within_country_and_concept(work: Work, tmp_path: Path) -> None:
    rows = [kept(f"Q{n}", "Q155", sitelinks=s) for n, s in ((1, 0), (2, 50), (3, 7), (4, 7))]
    rows += [kept("Q9", "Q17", sitelinks=1)]
    space = released(work, tmp_path, *rows)
    assert dict(space.select("artifact_id", "popularity").iter_rows()) == {
        "Q1": 0.25, "Q2": 1.0, "Q3": 0.625, "Q4": 0.625, "Q9": 1.0,
    }  # fmt: skip


def test_what_has_no_known_country_is_dropped_by_name(work: Work, tmp_path: Path) -> None:
    everywhere = ART.model_copy(update={"countries": "all"})
    space = released(work, tmp_path, kept("Q5", "Q999999"), kept("Q6", "Q155"), concept=everywhere)
    assert space["artifact_id"].to_list() == ["Q6"]
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.row(0, named=True)["detail"] == "Q999999"


def test_an_empty_space_is_refused_with_what_to_do(work: Work, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"space would be empty; expected a kept artifact of art .*found 0 kept"):
        released(work, tmp_path)
