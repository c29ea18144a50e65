"""What a model names in a picture, and the artifact of the space that it means."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.country_names import country_code, folded, without_accents
from culturekit.builders.judging.geo_tag import GeoTag, KnownArtifacts, tag
from culturekit.core.errors import NothingScored
from culturekit.core.schemas import CSPACE, JUDGMENTS, MATCHES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.kg.countries import countries
from culturekit.llm.client import Reply, Request
from culturekit.llm.reply_schema import TARGETS, Target, schema_of
from tests.builders.judging.test_image_judge import Scripted, png, table
from tests.builders.put import put
from tests.builders.spaces import artifact, cspace

Said = tuple[str, str | None, int]


def saying(shown: str, *artifacts: Said) -> Callable[[Request], Mapping[str, object]]:
    named = [{"name": name, "country": country, "sure": sure} for name, country, sure in artifacts]
    return lambda request: {"id": request.data["id"], "shown": shown, "artifacts": named}


@pytest.fixture
def space(tmp_path: Path) -> Path:
    folder = tmp_path / "space"
    folder.mkdir()
    rows = [
        artifact(1, name="Feijoada"),
        artifact(1, name="Feijoada", country="PT", country_name="Portugal", continent="Europe"),
        artifact(2, name="Dolma", country="TR", country_name="Turkey", continent="Asia"),
    ]
    return write_table(folder, CSPACE, cspace(*rows))


def tagged(
    work: Work, tmp_path: Path, client: Scripted, space: Path | None, **changes: object
) -> tuple[Outcome, pl.DataFrame]:
    path = table(tmp_path / "images", {"Brazil_feijoada_1": png()}, **changes)
    outcome = put(tag, work, client, path, space)
    return outcome, read_table(work.out / "matches.parquet", MATCHES)


def test_what_is_named_becomes_rows_in_the_order_of_certainty(work: Work, tmp_path: Path, space: Path) -> None:
    client = Scripted(saying("yes", ("dolma", "Turkey", 30), ("feijoada", "Portugal", 90), ("Bigos", "Poland", 5)))
    outcome, rows = tagged(work, tmp_path, client, space)
    assert rows.select("rank", "artifact_id", "artifact", "country", "countries", "continent").rows() == [
        (1, "Q1", "Feijoada", "PT", ["BR", "PT"], "Europe"),
        (2, "Q2", "Dolma", "TR", ["TR"], "Asia"),
        (3, None, "Bigos", "PL", ["PL"], None),
    ]
    assert rows["score"].to_list() == pytest.approx([0.9, 0.3, 0.05])
    assert rows["margin"].to_list() == pytest.approx([0.6, -0.6, -0.85])
    assert rows["country_margin"].to_list() == pytest.approx([0.6, -0.6, -0.85])
    assert (set(rows["method"]), set(rows["abstained"])) == ({"vlm"}, {False})
    assert outcome.notes["reconciling"] == {"reconciled": 2, "unknown name": 1}
    assert outcome.counts["abstained"] == 0


def test_the_country_margin_leaves_out_what_shares_a_country(work: Work, tmp_path: Path, space: Path) -> None:
    named: list[Said] = [
        ("feijoada", None, 80), ("Soup", None, 70), ("Bacalhau", "Portugal", 60), ("dolma", None, 10)
    ]  # fmt: skip
    _, rows = tagged(work, tmp_path, Scripted(saying("yes", *named)), space)
    assert rows["margin"].to_list() == pytest.approx([0.1, -0.1, -0.2, -0.7])
    assert rows["country_margin"].to_list() == pytest.approx([0.7, -0.1, 0.5, -0.7]), "a soup of nowhere is none"


def test_an_artifact_named_twice_is_one_row_and_a_country_of_another_is_not_taken_for_its_own(
    work: Work, tmp_path: Path, space: Path
) -> None:
    twice: list[Said] = [("Feijoada", "Brazil", 50), ("FEIJOADA", None, 60), ("x y", None, 9), ("X-Y", None, 8)]
    _, rows = tagged(work, tmp_path, Scripted(saying("yes", *twice)), space)
    assert rows.select("artifact", "score").rows() == [("Feijoada", pytest.approx(0.6)), ("x y", pytest.approx(0.09))]
    outcome, rows = tagged(work, tmp_path, Scripted(saying("yes", ("Dolma", "Greece", 70))), space)
    assert rows.select("artifact_id", "artifact", "country").rows() == [(None, "Dolma", "GR")]
    assert outcome.notes["reconciling"] == {"country of another": 1}


@pytest.mark.parametrize(
    ("prompt", "said", "country"),
    [
        ("PT", "Brazil", "PT"), ("TR", "Portugal", "PT"), (None, None, "BR"), ("TR", None, "BR"),
        (None, "Atlantis", "BR"),
    ],
)  # fmt: skip
def test_the_country_is_the_prompts_else_the_replys_else_the_artifacts_first(
    work: Work, tmp_path: Path, space: Path, prompt: str | None, said: str | None, country: str
) -> None:
    path = table(tmp_path / "images", {"a": png()})
    pl.read_parquet(path).with_columns(country=pl.lit(prompt, pl.String)).write_parquet(path)
    put(tag, work, Scripted(saying("yes", ("feijoada", said, 70))), path, space)
    assert pl.read_parquet(work.out / "matches.parquet")["country"].to_list() == [country]


@pytest.mark.parametrize(
    ("reply", "outcome", "named"),
    [
        (saying("no"), "ok", []), (saying("no", ("Dolma", "TR", 99)), "ok", []), (saying("yes"), "ok", []),
        (saying("unsure", ("Dolma", "TR", 20)), "ok", ["Dolma"]), (saying("unsure"), "ok", []),
        (lambda _: Reply("I cannot help with that.", stop="refusal"), "refused", []),
        (lambda _: Reply("", stop="blocked"), "blocked", []), (lambda _: Reply("It is a dolma."), "invalid", []),
        (saying("perhaps"), "invalid", []), (saying("yes", ("Dolma", "TR", 101)), "invalid", []),
        (saying("yes", *[("Dolma", "TR", 1)] * 6), "invalid", []), (saying("yes", ("", "TR", 1)), "invalid", []),
        (lambda request: {**saying("no")(request), "why": "x"}, "invalid", []),
        (lambda request: {**saying("no")(request), "id": "Brazil_feijoada_1"}, "invalid", []),
    ],
)  # fmt: skip
def test_where_nothing_sure_is_said_the_row_abstains_and_the_words_are_kept(
    work: Work, tmp_path: Path, space: Path, reply: Callable[[Request], Mapping[str, object] | Reply],
    outcome: str, named: list[str],
) -> None:  # fmt: skip
    ended, rows = tagged(work, tmp_path, Scripted(reply), space)
    assert rows["abstained"].to_list() == [True]
    assert rows["artifact"].drop_nulls().to_list() == named
    said = read_table(work.out / "judgments.parquet", JUDGMENTS)
    assert said["outcome"].to_list() == [outcome]
    if outcome != "blocked":
        assert said["raw"][0]
    assert ended.counts["abstained"] == 1
    assert ended.counts.get("quarantined", 0) == (0 if outcome == "ok" else 1)


def test_without_a_space_the_names_stay_as_said_and_the_notes_say_so(work: Work, tmp_path: Path) -> None:
    outcome, rows = tagged(work, tmp_path, Scripted(saying("yes", ("Feijoada", "Brazil", 80))), None)
    assert rows.select("artifact_id", "artifact", "country", "continent").rows() == [
        (None, "Feijoada", "BR", "South America")
    ]
    assert "No cultural space was given" in str(outcome.notes["caveat"])
    assert outcome.notes["reconciling"] == {"no space given": 1}


@pytest.mark.parametrize("target", TARGETS)
def test_the_reply_can_be_asked_for_from_everyone(target: Target) -> None:
    assert set(schema_of(GeoTag, target)["properties"]) == set(GeoTag.__struct_fields__)


def test_a_command_that_can_ask_about_no_image_is_refused(work: Work, tmp_path: Path) -> None:
    client = Scripted(saying("no"))
    with pytest.raises(NothingScored, match=r"images: nothing is asked about any image; found no rows"):
        put(tag, work, client, table(tmp_path / "images", {}))
    unread = table(tmp_path / "unread", {"b": b"words", "c": None, "d": None})
    with pytest.raises(NothingScored, match="found 2 × no picture file, 1 picture format not read"):
        put(tag, work, client, unread)
    outcome = put(tag, replace(work, in_run=True), client, unread)
    assert outcome.counts["judgments"] == 0, "a run goes on: other models have images"


@pytest.fixture
def known(tmp_path: Path) -> KnownArtifacts:
    rows = [
        artifact(1, name="Feijoada"),
        artifact(1, name="Feijoada", country="PT", country_name="Portugal", continent="Europe", country_order=1),
        artifact(2, name="Açaí", aliases=["acai bowl", "Açaí na tigela"]),
        artifact(3, name="Dolma", country="TR", country_name="Turkey", continent="Asia"),
        artifact(4, name="dolma", country="GR", country_name="Greece", continent="Europe"),
        artifact(5, name="Kente", concept="art", country="GH", continent="Africa"),
        artifact(6, name="Kente", concept="clothing", country="GH", continent="Africa"),
        artifact(7, name="キムチ", country="KR", continent="Asia"),
    ]
    frame = cspace(*rows)
    orders = [row.get("country_order", 0) for row in rows]
    aliases = [row.get("aliases") for row in rows]
    frame = frame.with_columns(
        country_order=pl.Series(orders, dtype=pl.UInt16), aliases=pl.Series(aliases, dtype=pl.List(pl.String))
    )
    return KnownArtifacts(write_table(tmp_path, CSPACE, frame))


@pytest.mark.parametrize(
    ("name", "country", "concept", "found"),
    [
        ("feijoada", None, None, "Q1"), ("  FEIJOADA! ", "BR", None, "Q1"), ("feijoada", "PT", None, "Q1"),
        ("feijoada", "FR", None, "country of another"), ("Acai", None, None, "Q2"), ("acai  bowl", None, None, "Q2"),
        ("ACAI NA TIGELA", "BR", None, "Q2"), ("dolma", "GR", None, "Q4"), ("Dolma", "TR", None, "Q3"),
        ("dolma", None, None, "name of several"), ("dolma", "FR", None, "country of another"),
        ("kente", "GH", None, "name of several"), ("kente", "GH", "clothing", "Q6"), ("kente", None, "art", "Q5"),
        ("kente", "GH", "cuisine", "name of several"), ("ｷﾑﾁ", None, None, "Q7"),
        ("pizza", None, None, "unknown name"), ("!?", None, None, "unknown name"),
    ],
)  # fmt: skip
def test_a_name_finds_its_artifact_or_the_reason_why_not(
    known: KnownArtifacts, name: str, country: str | None, concept: str | None, found: str
) -> None:
    artifact, how = known.find(name, country=country, concept=concept)
    assert (artifact.artifact_id if artifact else how) == found
    assert (how == "reconciled") == (artifact is not None)


def test_of_several_countries_the_first_wanted_one_is_chosen_else_the_one_stated_first(known: KnownArtifacts) -> None:
    found, _ = known.find("feijoada", country=None)
    assert found is not None
    assert found.country("PT", "BR") == ("PT", "Europe")
    assert found.country("FR", "PT") == ("PT", "Europe")
    assert found.country(None, "FR") == ("BR", "South America")


def test_every_country_that_culturekit_knows_is_found_by_all_its_names() -> None:
    for iso, country in countries().items():
        for name in (iso, country.iso3, country.name, country.adjective, country.name.lower()):
            assert country_code(name) == iso
    assert [country_code(said) for said in (None, "", "ZZ", "Mars")] == [None] * 4


def test_only_accents_are_left_out_and_no_marks_of_a_script() -> None:
    assert without_accents("crème brûlée") == "creme brulee"
    assert without_accents("बिरयानी") == "बिरयानी"
    assert without_accents(folded("がっこう")) == folded("がっこう")
