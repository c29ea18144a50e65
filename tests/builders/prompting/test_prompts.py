import csv
import io
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from culturekit.builders.prompting.prompts import DRAW_PLACE, PromptOptions, build_prompts, in_draw_order, prompts_stage
from culturekit.config.kinds import wired
from culturekit.core.atomic import clear_folder
from culturekit.core.errors import ConfigError, IntegrityError, UsageError
from culturekit.core.schemas import CSPACE, DROPS, PROMPTS, QUOTAS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import load_concept
from culturekit.kg.exchange.extract_stage import described
from culturekit.recipes.cube.keys import load_recipe
from tests.builders.prompting.test_translations import GERMAN, saved
from tests.builders.spaces import artifact, cspace


def built(work: Work, tmp_path: Path, options: PromptOptions, *rows: dict[str, object]) -> pl.DataFrame:
    build_prompts(work, write_table(tmp_path, CSPACE, cspace(*rows)), options, seed=5)
    return read_table(work.out / "prompts.parquet", PROMPTS)


CLOTHING = artifact(2, concept="art", subconcept="clothing", country="NG")
USA = {"country": "US", "country_name": "United States", "concept": "landmarks"}
WORDED: dict[str, tuple[tuple[Any, ...], list[dict[str, object]], list[str]]] = {
    "released": (
        ("cube",),
        [
            artifact(1, name="feijoada"), artifact(2, name="White House", **USA),
            artifact(3, name="frevo", concept="art", subconcept="performance"), {**CLOTHING, "name": "agbada"},
            artifact(5, name="cordel", concept="art", subconcept="folk art"),
            artifact(6, name="Madhubani", concept="art", subconcept="painting", country="IN"),
        ],
        [
            "A high resolution image of feijoada from Brazilian cuisine, realistic",
            "A panoramic view of White House in United States, realistic",
            "An image of Madhubani painting from India, realistic",
            "An image of agbada from Nigerian clothing, realistic",
            "An image of frevo performance from Brazil, realistic",
            "Image of cordel art from Brazil, realistic",
        ],
    ),
    "neither artifact nor country": (
        ("underspecified",), [artifact(1), CLOTHING], ["Image of traditional clothing", "Image of traditional food"],
    ),
    "the country": (
        ("within-country",), [artifact(1), artifact(2, country="JP")],
        ["Image of traditional food from Brazil", "Image of traditional food from Japan"],
    ),
    "an article in our sentences alone": (
        ("cube", "within-country"), [artifact(1, name="Yosemite", **USA)],
        ["A panoramic view of Yosemite in United States, realistic", "Image of a famous landmark in the United States"],
    ),
    "a concept without words": (
        ("cube", "underspecified", "within-country"), [artifact(1, concept="board-games", country="NG")],
        ["Image of traditional board games", "Image of traditional board games from Nigeria"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDED)
def test_prompts_read_as_their_kind_says(work: Work, tmp_path: Path, name: str) -> None:
    kinds, rows, texts = WORDED[name]
    prompts = built(work, tmp_path, PromptOptions(kinds), *rows)
    assert sorted(prompts["text"]) == texts
    if kinds == ("underspecified",):
        assert prompts["country"].null_count() == prompts["artifact_id"].null_count() == 2
    if name == "a concept without words":
        assert read_table(work.out / "drops.parquet", DROPS)["reason"].to_list() == ["no released template"]


def test_the_papers_words_come_with_its_negative_prompt_and_without_folk_art(work: Work, tmp_path: Path) -> None:
    rows = [artifact(1, name="feijoada"), artifact(5, concept="art", subconcept="folk art")]
    prompts = built(work, tmp_path, PromptOptions(templates="paper"), *rows)
    assert prompts["text"].to_list() == ["A high resolution image of feijoada from Brazil cuisine."]
    assert str(prompts["negative_text"][0]).startswith("multiple items, blurry")
    drop = read_table(work.out / "drops.parquet", DROPS).row(0, named=True)
    assert (drop["key"], drop["reason"]) == ("Q5", "no paper template")


def test_prompt_ids_depend_on_what_a_prompt_is_about_only_and_unknown_countries_are_named(
    work: Work, tmp_path: Path
) -> None:
    spaces = (built(work, tmp_path, PromptOptions(), artifact(other), artifact(2)) for other in (1, 3))
    one, two = (dict(prompts.select("artifact_id", "prompt_id").iter_rows()) for prompts in spaces)
    assert one["Q2"] == two["Q2"]
    with pytest.raises(UsageError, match=r"unknown country.*'XX'"):
        built(work, tmp_path, PromptOptions(), artifact(1, country="XX"))


INSTRUMENTS = """
concept: instruments
hops: 3
roots:
  - {qid: Q34379, label: musical instrument}
  - {qid: Q11404, label: drum, subconcept: drum}
"""
WORDS = """
prompts:
  en:
    artifact: A photo of {name}, a musical instrument from {country}
    subconcepts: {drum: "A photo of a {adjective} drum, the {name}"}
    underspecified: [A traditional musical instrument]
    within_country: ["A musical instrument from {country}"]
  de:
    artifact: Ein Foto von {name}, einem Musikinstrument aus {country}
    underspecified: [Ein Musikinstrument]
    within_country: ["Ein Musikinstrument aus {country}"]
    verified: {by: Erika Mustermann, on: 2026-11-01}
"""


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "instruments.yaml"
    path.write_text(INSTRUMENTS + text, encoding="utf-8")
    return str(path)


def test_a_concept_brings_the_words_of_its_prompts(work: Work, tmp_path: Path) -> None:
    rows = [
        artifact(5, name="berimbau", concept="instruments"),
        artifact(2, name="atabaque", concept="instruments", subconcept="drum"),
        artifact(3, name="feijoada"),
    ]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    options = PromptOptions(
        ("cube", "underspecified", "within-country"), languages=("en", "de"), translations=(saved(tmp_path, GERMAN),)
    )
    build_prompts(work, space, options, seed=0, concepts=[load_concept(config(tmp_path, WORDS))])
    prompts = read_table(work.out / "prompts.parquet", PROMPTS)
    assert set(prompts["text"]) == {
        "A photo of berimbau, a musical instrument from Brazil", "A photo of a Brazilian drum, the atabaque",
        "A high resolution image of feijoada from Brazilian cuisine, realistic", "A traditional musical instrument",
        "Image of traditional food", "A musical instrument from Brazil", "Image of traditional food from Brazil",
        "Ein Foto von berimbau, einem Musikinstrument aus Brasilien",
        "Ein Foto von atabaque, einem Musikinstrument aus Brasilien",
        "Ein Bild von feijoada aus der brasilianischen Küche", "Ein Musikinstrument", "Bild von traditionellem Essen",
        "Ein Musikinstrument aus Brasilien", "Bild von traditionellem Essen aus Brasilien",
    }  # fmt: skip


def test_words_decide_prompts_and_nothing_before_them(tmp_path: Path) -> None:
    plain, worded = (load_concept(config(tmp_path, text)) for text in ("", WORDS))
    assert described([plain]) == described([worded])
    space = write_table(tmp_path, CSPACE, cspace(artifact(1, concept="instruments")))
    one, other = (
        prompts_stage(space, PromptOptions(), seed=0, concepts=[load_concept(config(tmp_path, text))])
        for text in (WORDS, WORDS.replace("A photo of {name}, a", "A picture of {name}, a"))
    )
    assert one.options != other.options


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("A photo of {name}, a", "A photo of a", "does not name the artifact"),
        ("{country}", "{place}", "asks for place; accepted: adjective, country, name"),
        ('["A musical instrument from {country}"]', "[A musical instrument]", "does not name the country"),
        ("    verified: {by: Erika Mustermann, on: 2026-11-01}\n", "", "de: nobody has verified this translation"),
        ("  en:", "  English:", "prompts.English"),
    ],
)
def test_words_that_cannot_be_used_name_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in WORDS
    with pytest.raises(ConfigError) as told:
        load_concept(config(tmp_path, WORDS.replace(old, new)))
    assert message in str(told.value)
    assert "instruments.yaml:" in str(told.value)


def test_a_concept_without_words_is_refused_before_anything_runs(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    text = Path("recipes/cube.yaml").read_text(encoding="utf-8")
    recipe.write_text(text.replace("[cuisine, landmarks, art]", f"[cuisine, {config(tmp_path, '')}]"), encoding="utf-8")
    with pytest.raises(ConfigError) as told:
        load_recipe(recipe)
    assert str(told.value) == (
        f"{recipe}:5: "
        "no en template for prompts of the kind cube about instruments; expected `prompts: {en: {artifact: ...}}` in "
        "the root config of the concept. Give that config in `concepts` or with --roots, or templates with "
        "--translations or in `prompts: {translations: ...}`."
    )
    config(tmp_path, WORDS)
    assert wired(load_recipe(recipe), tmp_path / "run").steps


WEIGHTS = (1.0, 2.0, 3.0, 6.0)


def weighted(*weights: float | None) -> pl.DataFrame:
    return cspace(*(artifact(n, popularity=weight) for n, weight in enumerate(weights, 1)))


def drawn(space: pl.DataFrame, *, per: int, seed: int) -> pl.DataFrame:
    return in_draw_order(space, seed=seed).filter(pl.col(DRAW_PLACE) <= per)


def drawn_orders(times: int, size: int) -> Counter[tuple[str, ...]]:
    """Draw from the same weights many times: each group of a space is a draw of its own."""
    rows = [(f"{n:05}", f"Q{k}", weight) for n in range(times) for k, weight in enumerate(WEIGHTS, 1)]
    space = pl.DataFrame(rows, schema=["country", "artifact_id", "popularity"], orient="row")
    taken = drawn(space.with_columns(concept=pl.lit("art")), per=size, seed=1)
    return Counter(tuple(names) for names in taken.group_by("country").agg("artifact_id")["artifact_id"])


def test_ordered_samples_come_as_often_as_drawing_one_after_the_other_says() -> None:
    """Each next one in proportion to its weight among those left: the exact chance of every ordered pair."""
    times = 8_000
    found = drawn_orders(times, 2)
    pairs = list(permutations(range(4), 2))
    total = sum(WEIGHTS)
    chances = [WEIGHTS[a] / total * WEIGHTS[b] / (total - WEIGHTS[a]) for a, b in pairs]
    seen = [found[f"Q{a + 1}", f"Q{b + 1}"] for a, b in pairs]
    assert sum(seen) == times
    assert stats.chisquare(seen, np.array(chances) * times).pvalue > 1e-3


rows = st.lists(
    st.tuples(
        st.integers(1, 60), st.sampled_from(["BR", "JP", "NG"]), st.sampled_from(["art", "cuisine"]),
        st.one_of(st.none(), st.floats(0, 1)),
    ),
    min_size=1, max_size=40, unique_by=lambda row: row[:3],
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(rows, st.randoms(use_true_random=False), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_draw_does_not_depend_on_the_order_of_rows(
    rows: list[tuple[int, str, str, float | None]], random: object, seed: int, quota: int
) -> None:
    made = [artifact(n, country=iso, concept=concept, popularity=p) for n, iso, concept, p in rows]
    mixed = list(made)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    first, second = (drawn(cspace(*several), per=quota, seed=seed) for several in (made, mixed))
    assert first.equals(second)
    sizes = Counter((concept, iso) for _, iso, concept, _ in rows)
    taken = Counter(first.select("concept", "country").iter_rows())
    assert taken == {group: min(size, quota) for group, size in sizes.items()}


@settings(deadline=None, max_examples=40)
@given(rows, st.integers(0, 1000))
def test_what_is_left_out_leaves_the_order_of_the_others(
    rows: list[tuple[int, str, str, float | None]], seed: int
) -> None:
    """So a rejected artifact gives way to the next one, and a smaller quota is a part of a larger one."""
    space = cspace(*(artifact(n, country=iso, concept=concept, popularity=p) for n, iso, concept, p in rows))
    key = ["concept", "country", "artifact_id"]
    whole = in_draw_order(space, seed=seed).select(key).rows()
    part = in_draw_order(space.slice(1), seed=seed).select(key).rows()
    gone = space.select(key).row(0)
    assert part == [row for row in whole if row != gone]


def test_the_unknown_are_drawn_only_when_nothing_else_is_left_and_another_draw_is_another() -> None:
    space = weighted(None, 0.001, None, 0.0, 1.0)
    for seed in range(50):
        assert set(drawn(space, per=2, seed=seed)["artifact_id"]) == {"Q2", "Q5"}
    space = weighted(*([1.0] * 40))
    seeded, fresh = (in_draw_order(space, seed=3, draw=draw)["artifact_id"].to_list() for draw in ("", "fresh"))
    assert seeded != fresh
    assert sorted(seeded) == sorted(fresh)


@pytest.mark.parametrize("weight", [-0.1, float("inf"), float("nan")])
def test_what_cannot_weigh_a_draw_is_named(weight: float) -> None:
    with pytest.raises(IntegrityError, match="Q2 in BR: 1 artifacts have a popularity"):
        in_draw_order(weighted(1.0, weight), seed=0)


COLUMNS = ["artifact_id", "concept", "country", "place", "name", "prompt", "decision", "new_name", "link"]


@pytest.fixture
def space(tmp_path: Path) -> Path:
    rows = [artifact(n, country=iso, popularity=n / 30) for n in range(1, 31) for iso in ("BR", "JP")]
    rows += [artifact(50, country="NG", name="=1+1", popularity=1.0), artifact(60, concept="sweets", popularity=1.0)]
    return write_table(tmp_path, CSPACE, cspace(*rows))


def build(work: Work, space: Path, **options: Any) -> Outcome:
    clear_folder(work.out)
    return build_prompts(work, space, PromptOptions(**options), seed=11)


def ids(work: Work, country: str = "BR") -> set[str]:
    prompts = read_table(work.out / "prompts.parquet", PROMPTS)
    return set(prompts.filter(pl.col("country") == country)["artifact_id"])


def sheet(work: Work) -> list[dict[str, str]]:
    text = (work.out / "review.csv").read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def decided(path: Path, rows: list[dict[str, str]], *, divider: str = ",", mark: str = "\ufeff") -> str:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, delimiter=divider)
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(mark + file.getvalue(), encoding="utf-8", newline="")
    return str(path)


def test_quotas_that_cannot_be_met_are_said_and_not_padded(work: Work, space: Path) -> None:
    outcome = build(work, space, quota="4")
    assert outcome.notes["findings"] == ["quota not met: cuisine in NG: 1 of 4", "quota not met: sweets in BR: 0 of 4"]
    table = read_table(work.out / "quotas.parquet", QUOTAS)
    assert table.rows() == [
        ("cuisine", "BR", 4, 30, 4), ("cuisine", "JP", 4, 30, 4), ("cuisine", "NG", 4, 1, 1), ("sweets", "BR", 4, 0, 0),
    ]  # fmt: skip
    assert read_table(work.out / "prompts.parquet", PROMPTS).height == 9
    assert "findings" not in build(work, space, per=4).notes, "a limit may well not be reached"
    assert ids(work, "NG") == {"Q50"}


def test_a_quota_for_what_is_not_in_the_space_is_said(work: Work, space: Path, tmp_path: Path) -> None:
    table = tmp_path / "q.csv"
    table.write_text("concept,country,quota\ncuisine,BR,2\nart,,3\n,FR,1\nlandmarks,JP,5\n", encoding="utf-8")
    outcome = build(work, space, quota=str(table))
    assert outcome.notes["findings"] == [
        "quota not met: landmarks in JP: 0 of 5",
        "quota not met: art: none in the space, 3 asked for in each country",
        "quota not met: FR: nothing in the space, 1 asked for of each concept",
    ]
    assert read_table(work.out / "prompts.parquet", PROMPTS)["artifact_id"].len() == 2


def test_a_rejected_artifact_gives_way_to_the_next_one_of_the_same_order(
    work: Work, space: Path, tmp_path: Path
) -> None:
    build(work, space, quota="5", review=True)
    before, larger = ids(work), None
    rows = sheet(work)
    assert list(rows[0]) == COLUMNS
    first = next(row for row in rows if (row["country"], row["place"]) == ("BR", "1"))
    first["decision"] = "reject"
    for row in rows:
        if row["country"] == "JP":
            row["decision"] = "Accept"
    one = decided(tmp_path / "one.csv", rows, divider=";")
    outcome = build(work, space, quota="5", review=True, decisions=(one,))
    after = ids(work)
    build(work, space, quota="6")
    larger = ids(work)
    assert after == larger - {first["artifact_id"]}
    assert len(after - before) == 1
    assert outcome.counts["rejected"] == 1
    assert outcome.counts["accepted"] == 5


def test_a_chain_of_sheets_is_reproducible_and_the_last_sheet_holds_all_of_it(
    work: Work, space: Path, tmp_path: Path
) -> None:
    build(work, space, quota="3", review=True)
    chain: list[str] = []
    for number in range(3):
        rows = sheet(work)
        waiting = next(row for row in rows if not row["decision"] and row["country"] == "BR")
        waiting["decision"] = "reject"
        chain.append(decided(tmp_path / f"{number}.csv", rows))
        build(work, space, quota="3", review=True, decisions=tuple(chain))
    files = {path.name: path.read_bytes() for path in work.out.iterdir()}
    build(work, space, quota="3", review=True, decisions=tuple(chain))
    assert {path.name: path.read_bytes() for path in work.out.iterdir()} == files
    build(work, space, quota="3", review=True, decisions=(chain[-1],))
    assert {path.name: path.read_bytes() for path in work.out.iterdir()} == files
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.filter(pl.col("reason") == "rejected in review").height == 3
    assert len(ids(work)) == 3


def test_names_are_edited_and_formulas_defused_both_ways(work: Work, space: Path, tmp_path: Path) -> None:
    build(work, space, quota="1", review=True)
    rows = sheet(work)
    raw = (work.out / "review.csv").read_text(encoding="utf-8-sig")
    assert "'=1+1" in raw
    assert not any(line.startswith(("=", "+", "-", "@")) for line in raw.splitlines())
    for row in rows:
        row |= {"decision": "edit", "new_name": "'=HYPERLINK" if row["country"] == "NG" else "pão, \"o\" 'bom'"}
    build(work, space, quota="1", decisions=(decided(tmp_path / "d.csv", rows, divider="\t", mark=""),))
    texts = read_table(work.out / "prompts.parquet", PROMPTS)["text"].to_list()
    assert "A high resolution image of =HYPERLINK from Nigerian cuisine, realistic" in texts
    assert "A high resolution image of pão, \"o\" 'bom' from Brazilian cuisine, realistic" in texts


def test_every_mistake_of_a_sheet_names_row_and_column(work: Work, space: Path, tmp_path: Path) -> None:
    plain = {**dict.fromkeys(COLUMNS, ""), "concept": "cuisine", "country": "BR"}
    rows = [
        {**plain, "artifact_id": "Q1", "name": "two\nlines"},
        {**plain, "artifact_id": "Q999", "decision": "accept"},
        {**plain, "artifact_id": "Q1", "country": "NG", "decision": "accept"},
        {**plain, "artifact_id": "Q2", "decision": "maybe"},
        {**plain, "artifact_id": "Q3", "decision": "edit"},
        {**plain, "artifact_id": "Q4", "decision": "accept", "new_name": "x"},
        {**plain, "artifact_id": "Q5", "decision": "accept"},
        {**plain, "artifact_id": "Q5", "decision": "reject"},
    ]
    with pytest.raises(ConfigError) as told:
        build(work, space, decisions=(decided(tmp_path / "d.csv", rows),))
    assert [(problem.line, problem.key) for problem in told.value.problems] == [
        (4, "artifact_id"), (5, "country"), (6, "decision"), (7, "new_name"), (8, "new_name"), (10, "decision"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "lacks the column"),
        (b"artifact_id,concept,country\nQ1,cuisine,BR\n", "lacks the column decision"),
        ("artifact_id,concept,country,decision\nQ1,é,BR,\n".encode("latin-1"), "not in UTF-8"),
        ("artifact_id,concept\n".encode("utf-16"), "not in UTF-8"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused(
    work: Work, space: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError) as told:
        build(work, space, decisions=(str(path),))
    assert message in str(told.value)
    with pytest.raises(UsageError, match="no such file"):
        build(work, space, decisions=(str(tmp_path / "none.csv"),))


PUBLIC = """[{{"P31": "nan", "P279": "nan", "P495": "nan", "P17": "nan", "P2012": "nan", "P361": "nan", "id": "{id}",
"name": "{name}", "country": "Brazil", "domain": "cuisine", "prompt": "x"}}]"""


def test_a_fresh_draw_has_nothing_of_the_public_one(work: Work, tmp_path: Path) -> None:
    rows = [artifact(n, name=name, popularity=1.0) for n, name in enumerate(["Pão", "pao", "bolo", "angu"], 1)]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    public = tmp_path / "public.json"
    public.write_text(PUBLIC.format(id="LLM", name=" PÃO "), encoding="utf-8")
    outcome = build(work, space, draw="fresh", public=str(public))
    assert len(ids(work)) == 1
    assert ids(work) <= {"Q3", "Q4"}
    assert outcome.drops == {"in the public draw": 2}
    public.write_text(PUBLIC.format(id="Q3", name="cake"), encoding="utf-8")
    build(work, space, draw="fresh", public=str(public), quota="4")
    assert ids(work) == {"Q1", "Q2", "Q4"}


def test_options_that_contradict_each_other_are_refused(work: Work, space: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"per": 1, "quota": "1"}, {"public": "x.json"}, {"draw": "fresh"}, {"quota": "0"},
        {"kinds": ("underspecified",), "quota": "1"}, {"draw": "fresh", "public": "x.parquet"},
        {"languages": ("en", "en")}, {"translations": ("x.yaml",)}, {"statements": "x.parquet"},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(UsageError):
            build(work, space, **options)


def test_two_artifacts_of_one_name_give_one_prompt_of_a_draw(work: Work, tmp_path: Path) -> None:
    rows = [artifact(n, name="bolo", popularity=p) for n, p in ((1, 0.2), (2, 0.9), (3, None))]
    rows += [artifact(4, name="angu", popularity=0.1), artifact(5, name="bolo", country="NG")]
    space = write_table(tmp_path, CSPACE, cspace(*rows))
    outcome = build(work, space, quota="4")
    assert ids(work) == {"Q2", "Q4"}
    assert ids(work, "NG") == {"Q5"}
    assert outcome.drops == {"same prompt as a better known artifact": 2}
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.select("key", "detail").rows() == [("Q1 BR", "Q2"), ("Q3 BR", "Q2")]
    build(work, space)
    assert ids(work) == {"Q1", "Q2", "Q3", "Q4"}
