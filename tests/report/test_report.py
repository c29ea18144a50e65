import itertools
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import load_recipe
from culturekit.pipeline.run_recipe import run_recipe
from culturekit.pipeline.steps.report_stage import folders_of
from culturekit.pipeline.workers.local_engine import LocalEngine
from culturekit.records.schemas import SCORES
from culturekit.report.charts import diversity_chart
from culturekit.report.render import render, source_hash, template_text
from culturekit.report.verdict import headline_lines, verdict_on
from culturekit.report.write import collect
from culturekit.stages import roles
from tests.conftest import SMALL, HeardProgress
from tests.report.pages import HOSTILE, audited_page, hostile_page, line, page

GOLDEN = Path(__file__).parents[1] / "golden/report.html"


class Elements(HTMLParser):
    """Collects tags with their attributes, and ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(attribute)) is not None]


def test_the_page_is_the_golden_one(request: pytest.FixtureRequest) -> None:
    text = render(page())
    assert GOLDEN.read_text(encoding="utf-8") == text, (
        "look at the difference; if it is meant: "
        'python -c "from tests.report.pages import page; from culturekit.report.render import render; '
        "open('tests/golden/report.html', 'w').write(render(page()))\""
    )


def test_the_policy_allows_exactly_the_style_and_the_script_of_the_page() -> None:
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


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    elements = Elements(render(page()))
    for value in [*elements.values("src"), *elements.values("href")]:
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
    harmless, hostile = Elements(render(page())), Elements(render(hostile_page(text)))
    assert {tag for tag, _ in hostile.tags} <= {tag for tag, _ in harmless.tags}
    scripts = [tag for tag, _ in hostile.tags if tag == "script"]
    assert len(scripts) == 1
    assert [name for _, attributes in hostile.tags for name in attributes if name.startswith("on")] == []
    for value in [*hostile.values("src"), *hostile.values("href")]:
        assert value.startswith(("#", "thumbnails/", "data:"))


def test_the_verdict_names_the_model_whose_diversity_is_most_overstated() -> None:
    liar = line("mirage", 0.8, 0.125, free=1200, similarity=0.7)
    honest = line("atlas", 0.7, 0.69, free=0, similarity=0.97)
    assert verdict_on([honest, liar]).liar == "mirage"
    assert "rank 1 of 2. None of its 1,200 images shows any artifact" in verdict_on([honest, liar]).sentences[0]
    assert (
        "median similarity 0.70, where the other models have at least 0.97" in verdict_on([honest, liar]).sentences[1]
    )
    assert verdict_on([honest]).liar is None
    half = line("half", 0.8, 0.4, free=300, similarity=0.96)
    assert "Only 900 of its 1,200 images show any artifact" in verdict_on([honest, half]).sentences[0]
    assert len(verdict_on([honest, half]).sentences) == 2
    unknown = verdict_on([line("real", 0.8, None, free=None, similarity=0.9)])
    assert unknown.liar is None
    assert "mapped diversity" in unknown.sentences[0]
    floor = {"lowest 5 %": 0.6, "median": 0.72, "highest 5 %": 0.8}
    noise = line("noise", 0.8, None, free=None, similarity=0.73)
    real = line("real", 0.7, None, free=None, similarity=0.9)
    exposed = verdict_on([real, noise], floor=floor)
    assert exposed.liar == "noise"
    assert "rank 1 of 2, but its images are no nearer to any artifact than pictures of nothing" in exposed.sentences[0]
    assert "audit" in exposed.sentences[-1]
    assert verdict_on([real], floor=floor).liar is None
    assert verdict_on([real, noise]).liar is None
    assert verdict_on([honest, liar, noise], floor=floor).liar == "mirage"
    unscored = verdict_on([honest, line("short", math.nan, math.nan, free=0, similarity=0.97)])
    assert unscored.liar is None
    assert "could not be scored" in unscored.sentences[0]


def test_an_audit_stands_beside_the_mapped_score_and_decides_where_the_truth_is_not_known() -> None:
    text = render(audited_page())
    assert "needs an audit" not in text
    assert text.count('<polygon class="corrected"') == 2
    kernels = text[text.index('id="kernels"') : text.index('id="differences"')]
    assert Elements(kernels).values("colspan") == ["3", "3", "2", "2"]
    assert "needs an audit" in render(page())
    small = render(replace(page(), withheld=("too few images were audited (15 kernels of models and concepts)",)))
    assert "needs an audit" not in small
    assert "No audit was made" not in small
    assert "Withheld: <bdi>too few images were audited" in small
    assert '<polygon class="corrected"' not in render(page())
    liar = line("real", 0.8, None, free=None, similarity=0.9, corrected=0.3)
    assert verdict_on([liar]).liar == "real"
    assert "By the audit, the diversity of what its images really show is 0.30" in verdict_on([liar]).sentences[0]
    doubtful = line("real", 0.8, None, free=None, similarity=0.9, corrected=0.695)
    assert verdict_on([doubtful]).liar is None


def test_the_chart_draws_every_model_and_escapes_names() -> None:
    svg = diversity_chart(
        [line("<b>", 0.5, 0.4, free=0, similarity=1.0), line("b", 2.0, None, free=None, similarity=1.0)], liar=None
    )
    assert svg.count('class="mapped" cx') == 2
    assert svg.count('class="truth" cx') == 1
    assert "&lt;b&gt;" in svg
    positions = [float(value) for value in re.findall(r'cx="([0-9.]+)"', svg)]
    assert all(0 < value < 680 for value in positions)


def test_the_data_of_a_report_are_those_of_its_run(small_run: Path) -> None:
    data = collect(folders_of(small_run))
    assert {model.model for model in data.models} == {"broad", "empty", "narrow"}
    assert data.verdict.liar == "empty"
    assert data.concepts == ("art",)
    assert {table.metric for table in data.tables} == {"vs", "qvs"}
    assert len(data.shots) == 24
    assert all(shot.evidence is not None for shot in data.shots)
    assert {shot.truth is None for shot in data.shots if shot.model == "empty"} == {True}
    assert data.stages[0].folder == "graph"
    assert any("not a cultural encoder" in caveat for caveat in data.caveats)
    text = "\n".join(headline_lines(folders_of(small_run)))
    assert "empty is lying." in text


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
            own = values.filter(pl.col("prompt_id") == prompt.prompt_id, pl.col("model") == model.model)
            assert score is not None
            assert score[0] == pytest.approx(own["value"].mean())
            assert score[1] == own["item"].n_unique()


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
    from dataclasses import replace

    run = folders_of(small_run)
    unknown = replace(run, stages=tuple(name for name in run.stages if not name.startswith("truth-")))
    data = collect(unknown)
    assert data.verdict.liar == "empty"
    assert "pictures of nothing" in data.verdict.sentences[0]
    unlooked = collect(replace(unknown, stages=tuple(name for name in unknown.stages if name != "diagnosis")))
    assert unlooked.verdict.liar is None
    assert "not known" in render(data)


def test_other_orders_of_diversity_change_nothing_on_the_page(small_run: Path, run_copy: Path) -> None:
    with LocalEngine(1) as engine:
        recipe = load_recipe(SMALL, ["scores.other_orders=[2, inf]"])
        run_recipe(recipe, run_copy, engine=engine, progress=HeardProgress())
    main, more = folders_of(small_run), folders_of(run_copy)
    assert more.needed(roles.SCORES, SCORES).height > main.needed(roles.SCORES, SCORES).height
    assert list(headline_lines(more)) == list(headline_lines(main))
    values = [[line.difference.value for line in collect(run).differences] for run in (main, more)]
    assert values[0] == values[1] != []


def test_corrected_diversity_has_one_order_and_is_kept(run_copy: Path) -> None:
    run = folders_of(run_copy)
    table = run.needed(roles.SCORES, SCORES)
    pairs = pl.lit('{"kernel":"artifact","labels":"corrected","q":2.0}')
    corrected = table.filter(metric="vs").head(1).with_columns(params=pairs)
    assert run.of_main_order(pl.concat([table, corrected])).height == table.height + 1
