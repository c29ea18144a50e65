"""Pages of several runs, and the site of all of them."""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from uuid import UUID

import jsonschema
import polars as pl
import pytest
import yaml
from jinja2 import Template

from culturekit.core.digests import digest_tree
from culturekit.core.errors import UsageError
from culturekit.core.stage import Work
from culturekit.recipes.several_runs import named, several_runs_stage, site_stage, write_page, write_site
from culturekit.report.report_stage import folders_of
from culturekit.report.several import apart, collect_several, ground_of, render_several, same_ground
from culturekit.report.site.pages import POLICY, STYLE, ArtifactInRun, ModelLook, model_id
from culturekit.report.write import environment
from tests.chromium import browser, needs_chromium
from tests.cli.test_app import CONTRACT
from tests.conftest import HeardProgress, HereEngine
from tests.report.hostile import hostile_texts
from tests.report.pages import TILES, Elements, page

SCHEMAS = Path(__file__).parents[1] / "fixtures/every_eval_ever"


def schema(name: str) -> Any:
    """Give a schema of Every Eval Ever 0.3.0, as its package has it but for descriptions."""
    return json.loads((SCHEMAS / f"{name}.schema.json").read_bytes())


class Site(NamedTuple):
    """Two runs as a site: the folder, and what wrote it."""

    folder: Path
    work: Work
    runs: tuple[Path, Path]


@pytest.fixture(scope="module")
def written(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Write the site once for all tests, which only read it."""
    root = tmp_path_factory.mktemp("site")
    runs = (small_run, Path(shutil.copytree(small_run, root / "small")))
    (root / "out").mkdir()
    work = Work({}, root / "out", root / "scratch", HereEngine(), HeardProgress())
    outcome = write_site(work, list(named(runs)), "somebody/cube")
    assert (outcome.counts["runs"], outcome.counts["models"], outcome.drops) == (2, 6, {})
    assert outcome.counts["pages"] == len(list(work.out.rglob("*.html")))
    return Site(work.out, work, runs)


@pytest.fixture
def site(written: Site) -> Path:
    return written.folder


def test_every_link_leads_to_a_file_of_the_site_and_every_page_is_reached(site: Path) -> None:
    reached = {site / "index.html"}
    for path in sorted(site.rglob("*.html")):
        page = Elements(path.read_text(encoding="utf-8"))
        assert "script" not in {tag for tag, _ in page.tags}
        for address in page.values("href", "src"):
            if address.startswith(("#", "data:")):
                continue
            target = Path(os.path.normpath(path.parent / unquote(address)))
            assert target.is_relative_to(site), f"{address} of {path.name} leads out of the site"
            assert target.is_file(), f"{address} of {path.name} is not there"
            reached.add(target)
    assert set(site.rglob("*.html")) <= reached
    assert set((site / "thumbnails").rglob("*.*")) <= reached


def test_an_artifact_has_the_images_that_were_mapped_to_it(site: Path, small_run: Path) -> None:
    seen: Counter[str] = Counter()
    for matches in small_run.glob("matches-*/matches.parquet"):
        if "floor" in matches.parent.name:
            continue
        images = pl.read_parquet(small_run / matches.parent.name.replace("matches", "images") / "images.parquet")
        right = set(images.filter(status="ok")["image_id"])
        for row in pl.read_parquet(matches).to_dicts():
            if row["rank"] == 1 and row["artifact_id"] and not row["abstained"] and row["image_id"] in right:
                seen[row["artifact_id"]] += 1
    assert {path.stem for path in (site / "artifacts").iterdir()} == set(seen)
    for artifact, count in seen.items():
        text = (site / "artifacts" / f"{artifact}.html").read_text(encoding="utf-8")
        parts = text.split("<h2>In")[1:]
        assert len(parts) == 2
        for part in parts:
            lines = [line.split()[0] for line in part.split('<span class="sub">') if " of those mapped" in line]
            assert sum(int(number.replace(",", "")) for number in lines) == count


def records_of(site: Path) -> Iterator[tuple[Path, Any]]:
    for path in sorted((site / "every-eval-ever").rglob("*.json")):
        yield path, json.loads(path.read_bytes())


def test_results_are_what_others_read(site: Path, small_run: Path) -> None:
    scores = pl.read_parquet(small_run / "scores/scores.parquet")
    records = list(records_of(site))
    assert len(records) == len({record["evaluation_id"] for _, record in records}) == 6
    for path, record in records:
        jsonschema.validate(record, schema("eval"))
        parts = path.relative_to(site / "every-eval-ever").parts
        assert (parts[0], "/".join(parts[2:4])) == ("data", record["model_info"]["id"])
        assert str(UUID(path.stem, version=4)) == path.stem
        for one in record["evaluation_results"]:
            row = scores.row(int(one["score_details"]["details"]["row"]), named=True)
            data = json.loads(row["params"])
            assert (row["model"], row["value"]) == (record["model_info"]["name"], one["score_details"]["score"])
            assert data["labels"] in one["evaluation_name"]
            assert data["labels"] != "truth"


def test_samples_are_what_each_score_is_the_mean_of(site: Path) -> None:
    for path, record in records_of(site):
        detail = record["detailed_evaluation_results"]
        content = (site / "every-eval-ever" / detail["file_path"]).read_bytes()
        assert path.with_name(f"{path.stem}_samples.jsonl").read_bytes() == content
        assert hashlib.sha256(content).hexdigest() == detail["checksum"]
        samples = [json.loads(line) for line in content.splitlines()]
        assert len(samples) == detail["total_rows"]
        checked = jsonschema.Draft7Validator(schema("instance_level_eval"))
        values: dict[str, list[float]] = {}
        for one in samples:
            checked.validate(one)
            assert (one["evaluation_id"], one["model_id"]) == (record["evaluation_id"], record["model_info"]["id"])
            assert len(one["output"]["raw"]) == 8
            values.setdefault(one["evaluation_result_id"], []).append(one["evaluation"]["score"])
        results = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
        assert set(values) <= set(results)
        mapped = {name for name, one in results.items() if "quality" in one["evaluation_name"]}
        assert mapped
        for name in mapped:
            assert sum(values[name]) / len(values[name]) == pytest.approx(results[name]["score_details"]["score"])


def test_the_package_finds_nothing_wrong_with_records(site: Path) -> None:
    core = pytest.importorskip("every_eval_ever.validator.validation_core", reason="needs every-eval-ever, Python 3.12")
    root = site / "every-eval-ever"
    files = {str(path.relative_to(root)): path for path in root.rglob("*.json*")}
    for name, path in files.items():
        answer = core.validate_file(
            path, repo_path=name, available_files=files, run_semantic_checks=True,
            read_repo_file=lambda one: (root / one).read_text(encoding="utf-8"),
        )  # fmt: skip
        assert (answer.errors, answer.warnings) == ([], [])


def test_results_for_the_hub_come_back_as_they_were_written(site: Path) -> None:
    written = [yaml.safe_load(path.read_bytes()) for path in sorted((site / "hub").rglob("*.yaml"))]
    assert len(written) == 6
    for entries in written:
        assert {entry["dataset"]["id"] for entry in entries} == {"somebody/cube"}
        assert [entry["dataset"]["task_id"].rpartition("_")[2] for entry in entries][-1] == "mapped"
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub, whose classes read the files")
    for entries in written:
        assert hub.eval_result_entries_to_yaml(hub.parse_eval_result_entries(entries)) == entries


def test_the_same_runs_give_the_same_site(written: Site, tmp_path: Path) -> None:
    write_site(replace(written.work, out=tmp_path), list(named(written.runs)), "somebody/cube")
    assert digest_tree(tmp_path)[0] == digest_tree(written.folder)[0]


def test_a_dataset_that_is_none_of_the_hub_is_refused(small_run: Path) -> None:
    for wrong in ("cube", "a/b/c", "../x", "a b/c", ""):
        with pytest.raises(UsageError, match="OWNER/NAME"):
            site_stage([small_run], wrong)
    assert "site" in CONTRACT


def test_models_are_named_by_who_ran_them() -> None:
    assert model_id("openai:gpt-image-1?quality=low", "mine") == "openai/gpt-image-1"
    assert model_id("diffusers:/home/me/models/sdxl/", "mine") == "diffusers/sdxl"
    assert model_id("simulated?noise=1", "mirage") == "simulated/mirage"


def artifact_text(template: Template, text: str) -> str:
    """Give the page of an artifact with a text in every field of strangers."""
    shot = page().shots[0]
    assert shot.evidence is not None
    looks = (ModelLook(text, "models/1-x.html", 1, 0.5, 0.9, TILES),)
    part = ArtifactInRun(text, (text,), (shot.evidence,), None, looks, "thumbnails/1")
    return template.render(artifact_id=text, name=text, parts=[part], policy=POLICY, style=STYLE)


def test_texts_of_strangers_are_shown_and_never_obeyed() -> None:
    template = environment().get_template("site_artifact.html")
    harmless = Elements(artifact_text(template, "harmless"))
    for text in hostile_texts():
        found = Elements(artifact_text(template, text))
        assert [tag for tag, _ in found.tags] == [tag for tag, _ in harmless.tags], text
        assert found.values("href", "src") == harmless.values("href", "src"), text


@needs_chromium
def test_pages_ask_for_nothing_and_fit_a_telephone(site: Path, tmp_path: Path) -> None:
    shown = [site / "index.html", *sorted((site / "models").iterdir())[:1], *sorted((site / "artifacts").iterdir())[:1]]
    with browser(tmp_path / "profile") as running:
        tab = running.tab()
        for path in shown:
            for width in (1440, 390):
                tab.look(width=width, height=900, dark=width == 390)
                tab.open(path)
                assert tab.said == []
                assert [address for address in tab.asked if not address.startswith(("file:", "data:"))] == []
                assert tab.run("document.documentElement.scrollWidth") == width


@pytest.fixture
def other_run(small_run: Path, tmp_path: Path) -> Path:
    """A run with the same images under another encoder's name."""
    root = Path(shutil.copytree(small_run, tmp_path / "other"))
    for path in root.glob("matches-*/manifest.json"):
        manifest = json.loads(path.read_bytes())
        manifest["notes"]["identity"]["name"] = "another"
        path.write_text(json.dumps(manifest), encoding="utf-8")
    return root


def test_runs_on_the_same_ground_are_compared_on_common_prompts(small_run: Path, run_copy: Path, work: Work) -> None:
    runs = [("a", folders_of(small_run)), ("b", folders_of(run_copy))]
    assert same_ground([ground_of(run, name) for name, run in runs]) == [(0, 1)]
    assert apart([ground_of(run, name) for name, run in runs]) == []
    outcome = write_page(work, runs)
    assert outcome.counts["differences"] == 2 * 9
    scores = pl.read_parquet(work.out / "scores.parquet")
    same = scores.filter(pl.col("model") == "broad (a) - broad (b)")
    assert same.height == 2
    assert same["value"].to_list() == pytest.approx([0, 0], abs=1e-12)
    assert not scores["model"].str.contains(r"\(a\) - .*\(a\)").any()
    page = (work.out / "report.html").read_text(encoding="utf-8")
    assert "All of it: these runs have the same" in page
    assert "script-src &#39;none&#39;" in page
    assert "<script" not in page


def test_another_encoder_is_said_loudly_and_nothing_is_subtracted(small_run: Path, other_run: Path, work: Work) -> None:
    outcome = write_page(work, [("a", folders_of(small_run)), ("b", folders_of(other_run))])
    assert outcome.counts["differences"] == 0
    assert not (work.out / "scores.parquet").exists()
    page = (work.out / "report.html").read_text(encoding="utf-8")
    assert "Not on one scale." in page
    assert "Not comparable: encoder." in page
    assert "name another" in page
    assert "no two of these runs stand on the same ground" in page
    data = collect_several([("a", folders_of(small_run)), ("b", folders_of(other_run))], None, ())
    assert [run.name for run, _ in data.lines] == list("aaabbb"), "nor do their models stand by value"


def test_headline_scores_of_all_runs_stand_in_one_table(small_run: Path, run_copy: Path) -> None:
    data = collect_several([("a", folders_of(small_run)), ("b", folders_of(run_copy))], None, ())
    page = render_several(data)
    scores = folders_of(small_run).headline_scores()
    assert [len(run.models) for run in data.runs] == [3, 3]
    for run in data.runs:
        for line in run.models:
            row = scores.row(line.mapped.row, named=True)
            assert (row["model"], row["metric"], row["labels"]) == (line.model, "vs", "mapped")
            assert f"row {line.mapped.row} of scores.parquet, n = {line.mapped.n}" in page
    assert ("true diversity</th>" in page, "corrected diversity</th>" in page) == (True, False)
    hostile = collect_several([("<script>x=1</script>", folders_of(small_run)), ("b", folders_of(run_copy))], None, ())
    assert "<script" not in render_several(hostile)
    order = [(run.name, line.model) for run, line in data.lines]
    assert order == [(run, model) for model in ("broad", "empty", "narrow") for run in "ab"], "by value, on one scale"


def test_the_same_run_twice_is_refused(small_run: Path, run_copy: Path) -> None:
    with pytest.raises(UsageError, match="named twice"):
        several_runs_stage([small_run, small_run])
    stage = several_runs_stage([small_run, run_copy])
    assert {role.split("/")[0] for role in stage.inputs} == {"small", "small-2"}
