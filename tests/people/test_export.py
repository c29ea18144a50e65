"""What is handed out tells nothing, asks everybody what they are to be asked, and is the same every time."""

import re
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from culturekit.core.digests import digest_bytes
from culturekit.core.errors import UsageError
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import write_table
from culturekit.people.aggregate import AggregateOptions
from culturekit.people.stages import AggregateFiles, AggregateReads, ExportFiles, aggregate_stage
from culturekit.people.tasks import Quotas
from tests.people import projects
from tests.people.projects import (
    export,
    form_tasks,
    image_row,
    key_of,
    pictured,
    prompt_row,
    studio_tasks,
    write_images,
    write_prompts,
)

MODELS = ("imagen-2", "sdxl-base")
COUNTRIES = ("IN", "JP", "NG")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ExportFiles:
    folder = tmp_path_factory.mktemp("files")
    rows = [image_row(f"{m}/{c}/{n}", m, f"p-{c}") for m in MODELS for c in COUNTRIES for n in range(5)]
    prompts = [prompt_row(f"p-{c}", f"Image of food, {c}", "cuisine", c) for c in COUNTRIES]
    return ExportFiles([write_images(folder / "images", rows)], write_prompts(folder / "prompts", prompts))


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_pictures_lose_what_their_files_say(tmp_path: Path) -> None:
    files = pictured(tmp_path, ["x"])
    images = files.images[0]
    table = pl.read_parquet(images)
    path = images.parent / table["path"][0]
    info = PngImagePlugin.PngInfo()
    info.add_text("parameters", "made by sdxl-base")
    Image.open(path).save(path, pnginfo=info)
    write_table(images.parent, IMAGES, table.with_columns(sha256=pl.lit(digest_bytes(path.read_bytes()))))
    export(tmp_path / "out", files)
    (picture,) = (tmp_path / "out/hand-out/pictures").iterdir()
    assert b"sdxl" not in picture.read_bytes()
    assert Image.open(picture).convert("RGB").tobytes() == Image.open(path).convert("RGB").tobytes()


def test_the_same_seed_gives_the_same_bytes_and_another_other_names(tmp_path: Path, files: ExportFiles) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export(tmp_path / name, files, seed=seed)
    a, b, c = (all_bytes(tmp_path / name / "hand-out") for name in "abc")
    assert a == b
    assert {name for name in a if "pictures" in name}.isdisjoint(c)


def test_label_studio_and_the_form_have_the_same_tasks_and_not_the_key(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files)
    content = form_tasks(tmp_path / "out")
    for task in content["tasks"]:
        task["picture_1"] = "/data/local-files/?d=pictures/" + task["picture_1"]
    plain = sorted(content["tasks"], key=lambda task: task["task"])
    assert sorted((task["data"] for task in studio_tasks(tmp_path / "out")), key=lambda data: data["task"]) == plain
    assert {task["task"] for task in plain} == set(key_of(tmp_path / "out"))
    handed_out = sorted(path.name for path in (tmp_path / "out/hand-out").iterdir())
    assert handed_out == ["form.html", "label-studio", "pictures"]
    projects = orjson.loads((tmp_path / "out/hand-out/label-studio/projects.json").read_bytes())
    assert [(one["annotator_region"], one["maximum_annotations"]) for one in projects] == [(c, 3) for c in COUNTRIES]


def judged(folder: Path) -> Counter[tuple[str, str, bool]]:
    """Count for each item the sheets that ask for it, by the region of the annotator."""
    key = key_of(folder)
    content = form_tasks(folder)
    seen: Counter[tuple[str, str, bool]] = Counter()
    for sheet in content["sheets"]:
        for number in sheet["tasks"]:
            row = key[content["tasks"][number]["task"]]
            if row["kind"] == "item":
                seen[row["item_id"], row["annotator_region"], row["in_region"]] += 1
    return seen


def test_quotas_in_and_out_of_region(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files, quotas=Quotas(2, 1), per_sheet=4)
    seen = judged(tmp_path / "out")
    inside = {item: count for (item, _, home), count in seen.items() if home}
    outside: Counter[str] = Counter()
    for (item, region, home), count in seen.items():
        assert home == (item.split("/")[1] == region)
        if not home:
            outside[region] += count
    assert set(inside.values()) == {2}
    assert len(inside) == 30
    assert outside.total() == 30
    assert max(outside.values()) - min(outside.values()) <= 6


def test_sheets_hold_checks_and_repeats_far_from_the_first_time(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files, repeats=2, checks=2)
    key = key_of(tmp_path / "out")
    content = form_tasks(tmp_path / "out")
    orders = []
    for sheet in content["sheets"]:
        names = [content["tasks"][number]["task"] for number in sheet["tasks"]]
        kinds = Counter(key[name]["kind"] for name in names)
        assert kinds == {"item": 10, "check": 2, "repeat": 2}
        assert key[names[0]]["kind"] != "check"
        for name in names:
            if key[name]["kind"] == "repeat":
                assert names.index(name) - names.index(key[name]["repeat_of"]) > 3
        orders.append(tuple(names))
    assert len(set(orders)) == len(orders), "every slot has an order of its own"


def test_a_picture_that_cannot_be_read_takes_its_item_with_it(tmp_path: Path) -> None:
    files = pictured(tmp_path, ["x0", "x1", "x2"])
    broken = files.images[0].parent / pl.read_parquet(files.images[0])["path"][1]
    broken.write_bytes(broken.read_bytes()[:40])
    done = export(tmp_path / "out", files)
    assert sum(done.manifest.drops.values()) == 1
    assert pl.read_parquet(tmp_path / "out/drops.parquet")["key"].to_list() == ["x1"]
    assert {row["item_id"] for row in key_of(tmp_path / "out").values()} == {"x0", "x2"}
    assert len(list((tmp_path / "out/hand-out/pictures").iterdir())) == 2


def test_links_carry_what_prolific_fills_in(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files, form_at="https://example.org/form.html?x=1")
    lines = (tmp_path / "out/hand-out/prolific.csv").read_text(encoding="utf-8").splitlines()
    sheets = form_tasks(tmp_path / "out")["sheets"]
    assert len(lines) == 1 + len(sheets)
    for line, sheet in zip(lines[1:], sheets, strict=True):
        assert line.startswith(f"{sheet['name']},")
        assert line.endswith(
            f"https://example.org/form.html?x=1&sheet={sheet['name']}&PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}"
            "&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
        )


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "\u2028<!--", '"]};alert(1)//', "𝒻‮gnp"])
def test_hostile_prompts_are_data_in_json_and_html(tmp_path: Path, text: str) -> None:
    export(tmp_path / "out", pictured(tmp_path, ["x"], text=text, country=text), form_at="https://example.org/f")
    page = (tmp_path / "out/hand-out/form.html").read_text(encoding="utf-8")
    assert len(re.findall(r"<script", page)) == 2
    assert form_tasks(tmp_path / "out")["tasks"][0]["prompt"] == text
    assert studio_tasks(tmp_path / "out")[0]["data"]["prompt"] == text
    names = [path.name for path in (tmp_path / "out/hand-out").rglob("*")]
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in names)


@pytest.mark.parametrize(("changes", "words"), [
    ({"quotas": Quotas(0, 0)}, "nobody is to judge anything"),
    ({"quotas": Quotas(3, 0, ("FR",))}, "no annotators are found in the region"),
    ({"quotas": Quotas(0, 1, ("IN",))}, "no other region"),
    ({"quotas": Quotas(3, 0, (" ", "IN"))}, "a region of annotators has no name"),
])  # fmt: skip
def test_impossible_quotas_are_refused(tmp_path: Path, files: ExportFiles, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        export(tmp_path / "out", files, **changes)


def test_matches_that_a_form_does_not_take_and_missing_prompts_are_refused(tmp_path: Path, files: ExportFiles) -> None:
    with pytest.raises(UsageError, match="which artifacts a form offers, and cube offers none"):
        export(tmp_path / "out", replace(files, matches=files.images))
    with pytest.raises(UsageError, match="--prompts"):
        export(tmp_path / "out", ExportFiles(files.images))


@pytest.mark.parametrize("queues", [False, True])
def test_in_queues_a_sheet_is_of_one_concept_and_region(tmp_path: Path, files: ExportFiles, queues: bool) -> None:
    export(tmp_path / "out", files, queues=queues, per_sheet=4, quotas=Quotas(1, 1))
    key = pl.read_parquet(tmp_path / "out/annotation_key.parquet").filter(kind="item")
    sheets = key.group_by("part").agg(pl.col("country").n_unique(), pl.len())
    assert (sheets["country"].max() == 1) is queues
    assert sheets["len"].max() == 4
    assert key.group_by("item_id").agg(pl.col("slots").sum())["slots"].unique().to_list() == [2]


NAMES = st.lists(
    st.from_regex(r"[a-z][a-z0-9]{5}[-._][a-z0-9]{3,8}", fullmatch=True), min_size=2, max_size=3, unique=True
)


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
        handed_out = all_bytes(root / "out/hand-out")
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
