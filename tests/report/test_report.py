"""The page of a run: its data, hostile texts, how it was made, and a page of many images."""

import itertools
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from culturekit.core import roles
from culturekit.core.digests import source_hash
from culturekit.core.engines import LocalEngine
from culturekit.core.schemas import IMAGES, SCORES
from culturekit.generation.comparability import traits_of
from culturekit.metrics.corrected.audit_gates import MARKS, ONE_RATER
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.run_recipe import run_recipe
from culturekit.report import differences as metric_tables
from culturekit.report.charts import diversity_chart
from culturekit.report.gallery import Picture, Strip
from culturekit.report.headline import headline_lines
from culturekit.report.provenance import Making, StageLine, facts, lines_of, parts_of
from culturekit.report.report_stage import folders_of
from culturekit.report.run_folders import LONGEST, Figure, RunFolders, inert, text_of
from culturekit.report.sections import Cell, Grid, Section, SectionPage, drawn, matrix_picture, render_sections
from culturekit.report.thumbnails import PromptLine
from culturekit.report.write import collect, environment, render, template_text
from tests.conftest import SMALL, HeardProgress
from tests.report.hostile import DIRECTIONS, ELEMENTS, hostile_texts
from tests.report.large import large_page
from tests.report.pages import HOSTILE, Elements, audited_page, figure, full_page, hostile_page, line, page

GOLDEN = Path(__file__).parents[1] / "golden/report.html"


def test_the_page_is_the_golden_one(request: pytest.FixtureRequest) -> None:
    text = render(page())
    assert GOLDEN.read_text(encoding="utf-8") == text, (
        "look at the difference; if it is meant: "
        'python -c "from tests.report.pages import page; from culturekit.report.write import render; '
        "open('tests/golden/report.html', 'w').write(render(page()))\""
    )


def test_the_policy_allows_exactly_the_style_and_the_script_of_a_page_that_asks_for_nothing() -> None:
    text = render(page())
    policy = next(value for value in Elements(text).values("content") if "default-src" in value)
    assert policy.startswith("default-src 'none'")
    for tag, name in (("style", "report.css"), ("script", "report.js")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert content is not None
        assert content[1] == template_text(name)
        assert source_hash(content[1]) in policy
    assert "unsafe" not in policy
    assert Elements(text).values("style") == []
    assert [name for _, attributes in Elements(text).tags for name in attributes if name.startswith("on")] == []
    for value in Elements(text).values("src", "href"):
        assert value.startswith(("#", "thumbnails/", "data:")), value


def test_every_link_has_its_target_and_no_id_stands_twice(small_run: Path) -> None:
    elements = Elements((small_run / "report/report.html").read_text(encoding="utf-8"))
    ids = elements.values("id")
    assert len(ids) == len(set(ids))
    for target in elements.values("href"):
        assert not target.startswith("#") or target[1:] in ids, target
    for source in elements.values("src"):
        assert (small_run / "report" / source).is_file()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_never_obeyed(text: str) -> None:
    harmless, hostile = Elements(render(full_page())), Elements(render(hostile_page(text)))
    assert {tag for tag, _ in hostile.tags} <= {tag for tag, _ in harmless.tags}
    scripts = [tag for tag, _ in hostile.tags if tag == "script"]
    assert len(scripts) == 1
    ids = hostile.values("id")
    assert len(set(ids)) == len(ids)
    assert [name for _, attributes in hostile.tags for name in attributes if name.startswith("on")] == []
    for value in hostile.values("src", "href"):
        assert value.startswith(("#", "thumbnails/", "data:"))


def test_corrected_scores_lead_where_people_looked() -> None:
    text = render(audited_page())
    assert "No audit was made" not in text
    assert text.count('<polygon class="corrected"') == 2
    assert text.index("corrected diversity</th>") < text.index("mapped diversity</th>")
    assert '1st to 2nd</span><span class="sub">of 2' in text
    assert "the other way round" in text
    assert text.index('data-model="atlas"') < text.index('data-model="mirage"')
    kernels = text[text.index('id="kernels"') : text.index('id="differences"')]
    assert Elements(kernels).values("colspan") == ["3", "3"]
    small = render(replace(page(), withheld=("too few images were audited (15 kernels of models and concepts)",)))
    assert "No audit was made" not in small
    assert "Withheld: <bdi>too few images were audited" in small
    assert '<polygon class="corrected"' not in render(page())
    assert "corrected diversity</th>" not in render(page())


def test_columns_of_truth_are_there_only_where_truth_is_known() -> None:
    models = tuple(replace(one, truth=None, culture_free=None) for one in page().models)
    text = render(replace(page(), models=models))
    assert "true diversity" not in text
    assert "culture-free images" not in text
    assert "true diversity" in render(page())


@pytest.mark.parametrize(("number", "words"), [(0, "0 images"), (1, "1 image"), (1200, "1,200 images")])
def test_one_image_is_not_called_images(number: int, words: str) -> None:
    assert environment().from_string('{{ number | count("images") }}').render(number=number) == words


def test_nothing_known_is_said_in_words() -> None:
    wide, none = Figure(0.632, 0.125, 1.0, 16, 1), Figure(math.nan, None, None, 0, 2)
    assert text_of(wide) == "0.632 too few batches"
    assert text_of(none) == "too few batches"
    assert text_of(Figure(0.125, 0.125, 0.125, 24, 3)) == "0.125 no spread"
    models = (replace(page().models[0], mapped=wide), *page().models[1:])
    assert '<span class="sub">too few batches</span>' in render(replace(page(), models=models))


def test_the_chart_draws_every_model_and_escapes_names() -> None:
    svg = diversity_chart(
        [line("<b>", 0.5, 0.4, free=0, similarity=1.0), line("b", 2.0, None, free=None, similarity=1.0)]
    )
    assert svg.count('class="mapped" cx') == 2
    assert svg.count('class="truth" cx') == 1
    assert "&lt;b&gt;" in svg
    positions = [float(value) for value in re.findall(r'cx="([0-9.]+)"', svg)]
    assert all(0 < value < 680 for value in positions)


def test_the_data_of_a_report_are_those_of_its_run(small_run: Path) -> None:
    data = collect(folders_of(small_run))
    assert {model.model for model in data.models} == {"broad", "empty", "narrow"}
    assert data.verdict.named == ("empty",)
    assert data.concepts == ("art",)
    assert {table.metric for table in data.tables} == {"vs", "qvs"}
    for table in data.tables:
        most = max(each.value for _, cells in table.rows for cell in cells for each in cell if each is not None)
        assert most <= table.top < most + 0.1, "the scale of colours ends at the first tenth above every score"
    assert len(data.shots) == 24
    assert all(shot.evidence is not None for shot in data.shots)
    assert {shot.truth is None for shot in data.shots if shot.model == "empty"} == {True}
    assert data.stages[0].folder == "graph"
    assert any("not a cultural encoder" in caveat for caveat in data.caveats)
    assert all(len(caveat) <= LONGEST for caveat in data.caveats)
    for before in ([], ["Errors are alike."]):  # what a mark means stands by itself, and is not cut off
        told = list(filter(None, parts_of(" ".join([*before, MARKS[ONE_RATER]]))))
        assert told == [*before, MARKS[ONE_RATER]]
    text = "\n".join(headline_lines(folders_of(small_run)))
    assert "empty is lying." in text


def test_shares_without_intervals_do_not_say_that_they_have_some() -> None:
    whole = page()
    assert whole.shares is not None
    bare = {
        model: {code: replace(share, low=None, high=None) for code, share in by_country.items()}
        for model, by_country in whole.shares.shares.items()
    }
    text = render(replace(whole, shares=replace(whole.shares, shares=bare, corrected={}), trust=None))
    assert "Share of images in per cent; too few repeats for intervals" in text
    assert "with 95 % intervals for these prompts" in render(whole)


def test_the_countries_on_the_page_are_those_of_the_matches(small_run: Path) -> None:
    shares = collect(folders_of(small_run)).shares
    assert shares is not None
    for model in shares.models:
        mapped = pl.read_parquet(small_run / f"matches-{model}/matches.parquet").filter(pl.col("rank") == 1)
        counts = dict(mapped.group_by("country").len().iter_rows())
        assert {code: share.images for code, share in shares.shares[model].items() if share.images} == counts
        assert shares.images[model] == mapped.height
        assert sum(share.value for share in shares.shares[model].values()) == pytest.approx(1)
        assert counts[next(code for code, name in shares.names.items() if name == shares.most(model))] == max(
            counts.values()
        )
    assert sum(shares.available.values()) == pytest.approx(1)


def test_the_prompts_on_the_page_have_the_means_of_their_batches(small_run: Path) -> None:
    data = collect(folders_of(small_run))
    values = pl.read_parquet(small_run / "scores/values.parquet").with_columns(
        kernel=pl.col("params").str.json_path_match("$.kernel"), labels=pl.col("params").str.json_path_match("$.labels")
    )
    values = values.filter(pl.col("metric") == "vs", pl.col("kernel") == data.kernel, pl.col("labels") == "mapped")
    values = values.filter(pl.col("model").is_in([model.model for model in data.models]))
    assert {prompt.prompt_id for prompt in data.prompts} == set(values["prompt_id"])
    for prompt in data.prompts:
        for model, score in zip(data.models, prompt.scores, strict=True):
            scored = values.filter(pl.col("prompt_id") == prompt.prompt_id, pl.col("model") == model.model)
            assert score is not None
            assert score[0] == pytest.approx(scored["value"].mean())
            assert score[1] == scored["item"].n_unique()


def test_a_prompt_alone_in_its_concept_stands_corrected_and_the_mapped_score_below() -> None:
    prompt = PromptLine("p", "Image of food", "cuisine", ((0.8, 50), (0.7, 50)), (figure(0.55, 4), None))
    text = render(replace(audited_page(), prompts=(prompt,)))
    first, second = text[text.index('aria-label="Scores by prompt"') :].split("<td data-model=")[1:3]
    assert ">0.550<" in first
    assert "mapped 0.800, 50 batches" in first
    assert '<span class="sub">mapped</span> 0.700' in second
    assert "Mapped diversity of each model" not in text


def test_differences_are_said_from_the_larger_to_the_smaller(small_run: Path) -> None:
    data = collect(folders_of(small_run))
    means = {line.model: line.mapped.value for line in data.models}
    about = [line for line in data.differences if line.metric == "vs"]
    assert {frozenset((line.first, line.second)) for line in about} == {
        frozenset(pair) for pair in itertools.combinations(means, 2)
    }
    for found in about:
        assert found.difference.value == pytest.approx(means[found.first] - means[found.second], abs=1e-9)
        assert found.difference.low is None or found.difference.low <= found.difference.value


def test_a_run_without_known_truth_makes_a_report_too(small_run: Path) -> None:
    run = folders_of(small_run)
    unknown = replace(run, stages=tuple(name for name in run.stages if not name.startswith("truth-")))
    data = collect(unknown)
    assert data.verdict.named == ()
    assert "The images of empty are hardly nearer to any artifact than pictures of nothing" in data.verdict.sentences[1]
    assert "true diversity" not in render(data)
    unlooked = collect(replace(unknown, stages=tuple(name for name in unknown.stages if name != "diagnosis")))
    assert "no nearer" not in " ".join(unlooked.verdict.sentences)


@pytest.mark.endtoend
def test_other_orders_of_diversity_change_nothing_on_the_page(small_run: Path, run_copy: Path) -> None:
    with LocalEngine(1) as engine:
        recipe = load_recipe(SMALL, ["scores.other_orders=[2, inf]"])
        run_recipe(recipe, run_copy, engine=engine, progress=HeardProgress())
    main, more = folders_of(small_run), folders_of(run_copy)
    assert more.needed(roles.SCORES, SCORES).height > main.needed(roles.SCORES, SCORES).height
    assert list(headline_lines(more)) == list(headline_lines(main))
    values = [[line.difference.value for line in collect(run).differences] for run in (main, more)]
    assert values[0] == values[1] != []


def test_a_kernel_stands_at_the_order_at_which_it_was_corrected(run_copy: Path) -> None:
    path = run_copy / "scores/scores.parquet"
    table = pl.read_parquet(path)
    main = table.filter(
        pl.col("metric") == "vs", pl.col("params").str.contains('"kernel":"artifact","labels":"mapped"')
    )
    second = main.with_columns(pl.col("params").str.replace('"q":1.0', '"q":2.0'))
    corrected = second.with_columns(pl.col("params").str.replace('"labels":"mapped"', '"labels":"corrected"'))
    pl.concat([table, second, corrected]).write_parquet(path)
    shown = folders_of(run_copy).headline_scores().with_columns(q=pl.col("params").str.json_path_match("$.q"))
    orders = shown.filter(metric="vs").group_by("kernel").agg(pl.col("q").unique())
    assert dict(orders.iter_rows()) == {
        kernel: ["2.0" if kernel == "artifact" else "1.0"]
        for kernel in ("artifact", "continent", "country", "hierarchical", "uniform")
    }


def test_what_cannot_be_there_is_not_there_and_says_why() -> None:
    whole = page()
    assert whole.trust is not None
    bare = tuple(replace(line, quality=None) for line in whole.models)
    making = Making(("a",), ("folder",), ((),), (), ("prompts rewritten",))
    why = "no artifact has two reference pictures, so that one could be held out"
    text = render(replace(whole, models=bare, making=making, trust=replace(whole.trust, countries=(), why=why)))
    assert ">quality</th>" not in text.partition("</table>")[0]
    assert f"was not tried, and there is no ceiling: {why}" in text
    assert "Held-out references mapped to the right country" not in text
    assert "Of no model is it known: prompts rewritten." in text


TEXTS = [*ELEMENTS, *DIRECTIONS, "line\nline\r\nline", "a\0b", "Z" * 10_000, *hostile_texts()[::9]]
NEVER = re.compile("[\0\u202a-\u202e\u2066-\u2069]")


def section_page(text: str) -> str:
    """Put a text wherever a name, a phrase, a reason or a caveat stands."""
    cells = (Cell(text), Cell(text, text, 0.5), Cell(text, text, point=(0.5, 0.4, 0.6)))
    grid = Grid(text, (text, text, text), (cells, cells))
    strip = Strip(text, ((text, (Picture("reference.png", "images/a.png", text, (text,)),)),))
    picture = matrix_picture([text, "other"], {(text, "other"): 0.5})
    section = Section("models", text, text, (grid, drawn(grid, "dots", text)), picture, (strip,))
    stage = StageLine(text, text, "0" * 64, {text: text}, {text: 3}, {text: 2}, {text: 1})
    data = SectionPage(
        text, (text, text), 4, (text,), (text,), (text,), (section,), (stage,), (text,), {"culturekit": text}
    )
    return render_sections(data)


PLAIN = Elements(section_page("plain"))
POLICY = next(one["content"] or "" for tag, one in PLAIN.tags if one.get("http-equiv") == "Content-Security-Policy")


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_hostile_texts_are_text_wherever_they_stand(text: str) -> None:
    whole = section_page(text)
    seen = Elements(whole)
    assert {"default-src 'none'", "script-src 'none'"} <= set(POLICY.split("; "))
    assert seen.names == PLAIN.names, "it adds no element and no attribute"
    assert "script" not in {tag for tag, _ in seen.tags}
    assert {*seen.values("href", "src", "action", "data")} == {"data:,", "thumbnails/reference.png"}
    assert NEVER.search(whole) is None
    assert seen.text.count(inert(text)) >= 10, "it is shown as it is written"
    assert len(whole) < 100_000


def test_a_run_that_names_no_metric_looks_for_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_for() -> None:
        raise AssertionError("packages were looked for")

    monkeypatch.setattr(metric_tables, "all_metrics", looked_for)
    assert list(metric_tables.metric_tables(RunFolders(tmp_path, ()))) == []


def marked(*rows: dict[str, object]) -> dict[str, str]:
    plain = {
        "image_id": "i", "path": "x", "model": "m", "rewriter": "off", "provider_params": "{}", "sha256": "",
        "width": 8, "height": 8, "status": "ok", "seed_honoured": True,
    }  # fmt: skip
    table = pl.DataFrame([plain | row for row in rows], schema=IMAGES.schema)
    return facts(table, traits_of(table))


def test_what_is_alike_is_not_marked_and_what_nobody_has_is_left_away() -> None:
    lines = {line.what: line for line in lines_of([marked({}), marked({}, {})])}
    assert set(lines) == {"prompts rewritten", "seeds honoured", "sizes in pixels"}
    assert not any(line.apart for line in lines.values())
    assert not Making(("a", "b"), ("folder", "folder"), ((), ()), tuple(lines.values())).apart


def test_each_difference_is_marked_and_failures_are_only_told() -> None:
    day, later = (datetime(2026, 11, number, tzinfo=UTC) for number in (2, 20))
    bought = marked(
        {"rewriter": "on", "seed_honoured": False, "width": 16, "requested_at": day},
        {"rewriter": "unknown", "seed_honoured": False, "requested_at": later},
        {"status": "filtered", "provider_params": '{"negative_text":"not sent: the API takes none"}'},
    )
    lines = {line.what: line for line in lines_of([marked({}), bought])}
    assert lines["prompts rewritten"].cells == ("no", "yes (1), not known (1)")
    assert lines["sizes in pixels"].cells == ("8x8", "16x8 (1), 8x8 (1)")
    assert lines["negative prompts without effect"].cells == ("", "1")
    assert lines["images that were not made"].cells == ("", "1 filtered")
    assert lines["asked"].cells == ("", "2026-11-02 to 2026-11-20")
    apart = {what for what, line in lines.items() if line.apart}
    assert apart == {
        "prompts rewritten", "seeds honoured", "sizes in pixels", "negative prompts without effect",
    }  # fmt: skip


@pytest.mark.slow
def test_a_page_of_ten_thousand_images_stays_below_five_megabytes_and_grows_no_faster_than_its_images() -> None:
    text = render(large_page(10_000))
    assert text.count('<span class="tile">') + text.count('alt="image of ') >= 10_000
    assert (size := len(text.encode("utf-8"))) <= 5_000_000
    assert "base64" not in text
    assert len(render(large_page(20_000)).encode("utf-8")) <= 2.2 * size
