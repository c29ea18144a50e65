import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import digest
from culturekit.core.errors import ConfigError, IntegrityError, UsageError
from culturekit.core.schemas import ARTIFACTS, CSPACE
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
from culturekit.index.embedding.embedding import embed_texts
from culturekit.index.encoder import EncoderIdentity, Vectors
from culturekit.index.folder.artifact_names import (
    TextTemplates,
    artifact_names,
    checked,
    middle,
    text_templates,
    text_vectors,
)
from culturekit.index.folder.index_folder import open_index, write_index
from tests.builders.counting_encoder import drawn, logged, register
from tests.builders.spaces import candidates
from tests.index.picture_world import finish

IDENTITY = EncoderIdentity("tiny", "none", "1", "none", "float32", 4)


def unit(count: int, *, seed: int = 0) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def artifacts() -> pl.DataFrame:
    return pl.DataFrame(
        [
            ("Q1", "moqueca", ["cuisine"], ["BR"], ["South America"]),
            ("Q2", "shrine", ["landmarks"], ["JP"], ["Asia"]),
            ("Q3", "ceviche", ["cuisine"], ["PE", "BR"], ["South America", "South America"]),
            ("Q4", "unseen", ["art"], ["PE"], ["South America"]),
        ],
        schema=ARTIFACTS.schema,
        orient="row",
    )


ROWS = [
    ("text", "Q1", "moqueca"), ("image", "Q2", "b"), ("image", "Q1", "a"), ("image", "Q3", "c"),
    ("text", "Q2", "shrine"), ("image", "Q1", "0"),
]  # fmt: skip

NOTES: dict[str, object] = {"encoder": "tiny", "identity": IDENTITY.as_options(), "caveat": ""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = pl.DataFrame(ROWS, schema=["channel", "artifact_id", "source"], orient="row")
    write_index(tmp_path, rows, unit(len(ROWS)), artifacts())
    finish(tmp_path, "index", NOTES)
    return tmp_path


def test_rows_stand_by_channel_concept_country_artifact_and_source(folder: Path) -> None:
    index = open_index(folder)
    image, text = index.channels["image"], index.channels["text"]
    names = index.artifacts["artifact_id"]
    assert list(index.channels) == ["image", "text"]
    assert [names[int(owner)] for owner in image.owners] == ["Q1", "Q1", "Q3", "Q2"]
    assert image.sources.to_list() == ["0", "a", "c", "b"]
    assert image.slices.rows() == [("cuisine", "BR", 0, 2), ("cuisine", "PE", 2, 3), ("landmarks", "JP", 3, 4)]
    assert text.slices.rows() == [("cuisine", "BR", 0, 1), ("landmarks", "JP", 1, 2)]
    np.testing.assert_array_equal(image.vectors, unit(len(ROWS))[[5, 2, 3, 1]])
    np.testing.assert_array_equal(text.vectors, unit(len(ROWS))[[0, 4]])
    assert isinstance(image.vectors, np.memmap)


def test_the_order_in_which_rows_came_leaves_no_trace(folder: Path, tmp_path: Path) -> None:
    order = [3, 5, 0, 2, 4, 1]
    other = tmp_path / "other"
    other.mkdir()
    rows = pl.DataFrame([ROWS[at] for at in order], schema=["channel", "artifact_id", "source"], orient="row")
    write_index(other, rows, unit(len(ROWS))[order], artifacts().reverse())
    assert (other / "vectors.npy").exists()
    for path in other.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes()


def changed_bytes(folder: Path) -> None:
    content = bytearray((folder / "vectors.npy").read_bytes())
    content[-1] ^= 1
    (folder / "vectors.npy").write_bytes(content)


def other_table(name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        change(pl.read_parquet(folder / name)).write_parquet(folder / name)
        finish(folder, "index", NOTES)

    return harm


def other_vectors(change: Callable[[Vectors], Vectors]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        np.save(folder / "vectors.npy", change(np.load(folder / "vectors.npy")))
        finish(folder, "index", NOTES)

    return harm


def edited_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    changed_bytes(folder)
    manifest["outputs"]["vectors.npy"]["sha256"] = digest("anything")
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


FIVE = {**NOTES, "identity": {**IDENTITY.as_options(), "dim": 5}}

LONG, NO_NUMBER = (np.ones((6, 4), np.float32) for _ in range(2))

LONG[2], NO_NUMBER[4, 1] = 1.1, np.nan


@pytest.mark.parametrize(("harm", "reason"), [
    (changed_bytes, "not what the index was built with; expected SHA-256"),
    (other_table("ids.parquet", lambda ids: ids.with_columns(pl.col("id").reverse())), "out of order"),
    (other_vectors(lambda found: found * LONG), "not of unit norm; expected norm 1 within 0.001, found 1.1"),
    (other_vectors(lambda found: found * NO_NUMBER), "not of unit norm"),
    (other_vectors(lambda found: found[:-1]), r"expected float32 \(6, dim\), found float32 \(5, 4\)"),
    (other_table("artifacts.parquet", lambda known: known.head(2)), "Q3, which is not in artifacts.parquet"),
    (other_table("slices.parquet", lambda slices: slices.with_columns(pl.col("stop") + 1)), "slices"),
    (lambda folder: finish(folder, "index", FIVE), "expected 5 dimensions, found 4"),
    (edited_manifest, "do not add up"),
    (lambda folder: (folder / "slices.parquet").unlink(), "found no file"),
    (lambda folder: finish(folder, "embed", NOTES), "a folder of the stage index, found the stage embed"),
])  # fmt: skip
def test_a_broken_index_is_refused_with_the_reason(folder: Path, harm: Callable[[Path], None], reason: str) -> None:
    harm(folder)
    with pytest.raises(IntegrityError, match=reason):
        open_index(folder)


def test_a_change_after_the_first_opening_is_seen(folder: Path) -> None:
    open_index(folder)
    changed_bytes(folder)
    with pytest.raises(IntegrityError, match="SHA-256"):
        open_index(folder)


@pytest.fixture(autouse=True)
def counting() -> None:
    register()


def named_artifacts(*ids: str) -> pl.DataFrame:
    rows = [(one, one, ["cuisine"], ["BR"], ["South America"]) for one in ids]
    return pl.DataFrame(rows, schema=ARTIFACTS.schema, orient="row")


def space(folder: Path, *rows: dict[str, object], aliases: bool = False) -> Path:
    usual = {
        "concept": "cuisine", "country": "BR", "country_name": "Brazil", "continent": "South America",
        "source": "wikidata", "path": [],
    }  # fmt: skip
    optional = {"aliases": CSPACE.optional["aliases"].dtype} if aliases else {}
    frame = pl.DataFrame([{**usual, **row} for row in rows], schema={**CSPACE.schema, **optional})
    return write_table(folder, CSPACE, frame)


TEMPLATES = TextTemplates(
    generic=("{name}", "a photo of {name}"),
    concepts={"cuisine": ("a plate of {name}",)},
    country=("{name}, {country}",),
)


def test_an_artifact_is_the_middle_of_its_names_in_all_wordings(work: Work) -> None:
    names = {"Q1": ["moqueca", "fish stew"], "Q2": ["acarajé"]}
    rows, vectors, notes = text_vectors(work, named_artifacts("Q1", "Q2"), names, TEMPLATES, "counting", countries={})
    texts = [
        "moqueca", "a photo of moqueca", "a plate of moqueca",
        "fish stew", "a photo of fish stew", "a plate of fish stew",
    ]  # fmt: skip
    total = np.sum([drawn(text.encode()) for text in texts], axis=0, dtype=np.float64)
    np.testing.assert_allclose(vectors[0], total / np.linalg.norm(total), atol=1e-6)
    assert rows.rows() == [("Q1", "moqueca"), ("Q2", "acarajé")]
    assert notes == {"texts": 9, "texts_too_long": 0}


def test_each_text_is_encoded_once_whoever_it_names(work: Work, tmp_path: Path) -> None:
    log = tmp_path / "log"
    names = {"Q1": ["feijoada"], "Q2": ["feijoada"]}
    _, vectors, _ = text_vectors(
        work, named_artifacts("Q1", "Q2"), names, TEMPLATES, f"counting?log={log}", countries={}
    )
    assert sorted(logged(log)) == ["a photo of feijoada", "a plate of feijoada", "feijoada"]
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_countries_are_named_where_that_is_asked_for_and_texts_that_are_too_long_are_counted(work: Work) -> None:
    names = {"Q1": ["pão"]}
    countries = {"Q1": ["Brazil", "Portugal"]}
    *_, notes = text_vectors(work, named_artifacts("Q1"), names, TEMPLATES, "counting", countries=countries)
    assert notes["texts"] == 5
    names = {"Q1": ["the very long name of a dish"]}
    *_, notes = text_vectors(work, named_artifacts("Q1"), names, TEMPLATES, "counting", countries={})
    assert notes["texts_too_long"] == 3
    assert notes["context"] == 6
    assert notes["samples_too_long"][0] == "the very long name of a dish"


@pytest.mark.parametrize("names", [[], [""], ["  ", "alias"]])
def test_an_artifact_without_a_name_is_refused(names: list[str]) -> None:
    with pytest.raises(UsageError, match="Q9: an artifact has no name"):
        checked("Q9", names)


@given(st.lists(st.text(max_size=5), min_size=1, max_size=8))
def test_the_main_name_stays_first_and_each_name_counts_once(names: list[str]) -> None:
    names = ["Main", *names]
    tidy = checked("Q1", names)
    assert tidy[0] == "Main"
    assert len({name.casefold() for name in tidy}) == len(tidy)
    assert {name.casefold() for name in tidy} == {" ".join(name.split()).casefold() for name in names} - {""}


def test_opposite_texts_have_no_middle() -> None:
    vector = drawn(b"x")
    with pytest.raises(UsageError, match="cancel out"):
        middle(np.stack([vector, -vector]))


def test_names_come_from_the_space_the_table_of_aliases_and_the_candidates(tmp_path: Path) -> None:
    path = space(
        tmp_path, {"artifact_id": "Q1", "qid": "Q1", "name": "moqueca", "aliases": ["peixada"]},
        {"artifact_id": "Q2", "qid": "Q2", "name": "acarajé", "aliases": None}, aliases=True,
    )  # fmt: skip
    listed = tmp_path / "aliases.csv"
    listed.write_text("artifact_id,alias\nQ1,stew\nQ1,\nQ7,nobody\n", encoding="utf-8")
    table = tmp_path / "candidates"
    table.mkdir()
    found = candidates(
        {"qid": "Q2", "concept": "cuisine", "aliases": ["akara", "acará"]},
        {"qid": "Q8", "concept": "art", "aliases": ["x"]},
    )
    found.write_parquet(table / "candidates.parquet")
    names, strangers = artifact_names(path, aliases=listed, candidates=table / "candidates.parquet")
    assert names == {"Q1": ["moqueca", "peixada", "stew"], "Q2": ["acarajé", "acará", "akara"]}
    assert strangers == 1


def test_a_table_of_aliases_without_its_columns_is_refused(tmp_path: Path) -> None:
    path = space(tmp_path, {"artifact_id": "Q1", "name": "moqueca"})
    (tmp_path / "aliases.csv").write_text("qid,name\nQ1,x\n", encoding="utf-8")
    with pytest.raises(UsageError, match="expected artifact_id and alias, found qid, name"):
        artifact_names(path, aliases=tmp_path / "aliases.csv")


def test_shipped_templates_name_every_shipped_concept() -> None:
    templates = text_templates()
    assert set(templates.concepts) == {"art", "cuisine", "landmarks"}
    texts = templates.texts(["{x}"], ["cuisine"], ["Brazil"])
    assert len(texts) == len(set(texts)) >= 8
    assert all("{x}" in text for text in texts)


@pytest.mark.parametrize("yaml", [
    "generic: []", "generic: [a photo]", "generic: ['{name} {country}']", "generic: ['{name.upper}']",
    "generic: ['{name']", "generic: ['{name}']\ncountry: ['{name}']", "generic: ['{}']",
])  # fmt: skip
def test_templates_that_cannot_be_filled_in_are_refused(tmp_path: Path, yaml: str) -> None:
    (tmp_path / "templates.yaml").write_text(yaml, encoding="utf-8")
    with pytest.raises(ConfigError):
        text_templates(tmp_path / "templates.yaml")


def test_texts_keep_their_places_and_empty_ones_are_refused(work: Work) -> None:
    texts = ["b", "a", "b", "one two three four five six seven", "a"]
    vectors, long = embed_texts(texts, "counting", work.scratch, progress=work.progress)
    np.testing.assert_array_equal(vectors[[0, 1]], [drawn(b"b"), drawn(b"a")])
    np.testing.assert_array_equal(vectors[[2, 4]], vectors[[0, 1]])
    assert [(one.place, one.tokens, one.most) for one in long] == [(3, 7, 6)]
    with pytest.raises(UsageError, match="the first in row 1"):
        embed_texts(["a", " "], "counting", work.scratch, progress=work.progress)
