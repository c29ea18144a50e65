"""Whoever judges cannot tell which model made a picture, and what only tests care stays out of every average."""

import tempfile
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.people.aggregate import AggregateOptions
from culturekit.people.stages import AggregateFiles, AggregateReads, ExportFiles, aggregate_stage
from culturekit.people.tasks import Quotas
from tests.people import projects

NAMES = st.lists(
    st.from_regex(r"[a-z][a-z0-9]{5}[-._][a-z0-9]{3,8}", fullmatch=True), min_size=2, max_size=3, unique=True
)


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@given(names=NAMES, seed=st.integers(0, 1000), checks=st.integers(0, 2), outside=st.integers(0, 1))
@settings(max_examples=6, deadline=None)
def test_no_model_is_named_anywhere_but_in_the_key(names: list[str], seed: int, checks: int, outside: int) -> None:
    """The names are in the ids of images, in their files and their folders, as runs have them."""
    with tempfile.TemporaryDirectory() as here:
        root = Path(here)
        tables = [
            projects.write_images(
                root / f"images-{model}",
                [
                    projects.image_row(f"{model}-{prompt}-r000-s{slot:02}", model, prompt)
                    for prompt in "pq"
                    for slot in range(2)
                ],
            )
            for model in names
        ]
        prompts = projects.write_prompts(
            root / "prompts",
            [projects.prompt_row(prompt, "food", "cuisine", c) for prompt, c in (("p", "IN"), ("q", "JP"))],
        )
        projects.export(
            root / "out", ExportFiles(tables, prompts), seed=seed, checks=checks, quotas=Quotas(2, outside),
            form_at="https://example.org/form.html", completion="https://example.org/done",
        )  # fmt: skip
        handed_out = content_of(root / "out/hand-out")
        assert {"form.html", "prolific.csv", "label-studio/template.xml", "label-studio/projects.json"} <= set(
            handed_out
        )
        assert sum(name.startswith("pictures/") for name in handed_out) == 4 * len(names)
        for name, content in handed_out.items():
            for model in names:
                assert model not in name
                assert model.encode() not in content.lower(), name
            assert not any(secret in content for secret in (b'"item_id"', b'"kind"', b"repeat_of")), name
        assert all(model in set(pl.read_parquet(root / "out/annotation_key.parquet")["model"]) for model in names)


def places_by_seed(tmp_path: Path, seed: int) -> tuple[list[tuple[str, ...]], list[list[str]]]:
    """Say where the pictures of each triplet stand, and in which order each sheet asks."""
    images = tmp_path / "images/images.parquet"
    if not images.is_file():
        projects.write_images(tmp_path / "images", [projects.image_row(f"i{n}", "m", "p") for n in range(42)])
        rows = [
            {"item_id": f"t{n}", "reference_id": f"i{n}", "first_id": f"i{n + 1}", "second_id": f"i{n + 2}",
             "object": "stove", "region": "Africa"}
            for n in range(40)
        ]  # fmt: skip
        pl.DataFrame(rows).write_csv(tmp_path / "items.csv")
    out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    projects.export(out, ExportFiles([images], items=tmp_path / "items.csv"), "inclusion_task1", seed=seed)
    key = projects.key_of(out)
    content = projects.form_tasks(out)
    orders = [
        [key[content["tasks"][number]["task"]]["item_id"] for number in sheet["tasks"]] for sheet in content["sheets"]
    ]
    items = sorted((row for row in key.values() if row["kind"] == "item"), key=lambda row: str(row["item_id"]))
    for row in items:
        number = int(row["item_id"][1:])
        shown = dict(zip(row["places"], row["pictures"], strict=True))
        assert shown == {"reference": f"i{number}", "first": f"i{number + 1}", "second": f"i{number + 2}"}
    return [tuple(row["places"]) for row in items], orders


def test_left_and_right_and_the_order_come_from_the_seed(tmp_path: Path) -> None:
    first, again, other = (places_by_seed(tmp_path, seed) for seed in (1, 1, 2))
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]
    swapped = sum(places == ("reference", "second", "first") for places in first[0])
    assert 10 <= swapped <= 30, "as good as a coin"
    assert first[1][0] != first[1][1], "each slot has an order of its own"


def answered(tmp_path: Path, again: int) -> pl.DataFrame:
    """Let three people give every picture realism 2; asked once more, `again`; checks ask for 4 and 5."""
    projects.export(
        tmp_path / "project", projects.pictured(tmp_path, [f"a-{n}" for n in range(9)]), checks=2, repeats=3
    )

    def answer(row: dict[str, Any], _: int | str) -> projects.Answers:
        return {"belongs": "yes", "faithfulness": 2, "realism": 2 if row["kind"] == "item" else again}

    projects.answer_all(tmp_path, (1, 2, 3), projects.by_key(tmp_path / "project", answer))
    files = AggregateFiles.beside(AggregateReads(tmp_path / "rated/annotations.parquet"))
    projects.run(aggregate_stage(files, AggregateOptions(resamples=99)), tmp_path / "people")
    return pl.read_parquet(tmp_path / "people/rating_table.parquet").filter(concept="cuisine", criterion="realism")


@pytest.mark.parametrize("again", [3, 1])
def test_checks_and_repeats_are_asked_and_in_no_average(tmp_path: Path, again: int) -> None:
    """Nine pictures, three people: 27 answers of 2. With a check or a repeat among them neither mean nor count held."""
    cell = answered(tmp_path, again).row(0, named=True)
    assert (cell["mean"], cell["sd"], cell["items"], cell["answers"]) == (2.0, 0.0, 9, 27)
    manifest = orjson.loads((tmp_path / "people/manifest.json").read_bytes())
    assert manifest["notes"]["checks"] == {"answered": 6, "failed": 0}
    assert manifest["notes"]["repeats"] == {"answered": 9, "failed": 0}


def test_quarantine_is_counted_where_it_thins_out(tmp_path: Path) -> None:
    projects.export(
        tmp_path / "project", projects.pictured(tmp_path, [f"a-{n}" for n in range(6)]), checks=0, repeats=0
    )
    tasks = projects.studio_tasks(tmp_path / "project")
    exported = projects.labelled(tasks, (1, 2), lambda *_: {"belongs": "no", "realism": 4})
    exported[0]["annotations"][0]["result"][1]["value"]["choices"] = ["9"]
    exported.append({**exported[1], "id": 99})
    (tmp_path / "a.json").write_bytes(orjson.dumps(exported))
    projects.import_files(tmp_path / "rated", tmp_path / "project", tmp_path / "a.json")
    files = AggregateFiles.beside(AggregateReads(tmp_path / "rated/annotations.parquet"))
    done = projects.run(aggregate_stage(files, AggregateOptions(resamples=99)), tmp_path / "people")
    assert done.manifest.drops == {"in quarantine: duplicate": 2, "in quarantine: out of range": 1}
    assert "duplicate" in (tmp_path / "people/ratings.html").read_text(encoding="utf-8")
