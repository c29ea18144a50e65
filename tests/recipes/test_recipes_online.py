"""Recipes with models behind a server on loopback, in fair weather and in storms."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.recipes.c3.recipe import EVERY
from culturekit.recipes.run_recipe import run_recipe
from culturekit.verify.verify_run import verify_run
from tests.faults.kill_and_resume import content
from tests.faults.world_model import knows
from tests.llm.server import Fault, Rule, RunningServer, Script, When, running_server

pytestmark = [pytest.mark.slow]
pytest.importorskip("openai")

# Small, and every model that is asked behind the server, by the protocols of two providers
SMALL = {
    "c3": (
        "captions.count=40", "captions.sample=24", "pairs.simulated.each=1", "pairs.keep=12", "people.pairs=36",
        "people.prompts=24", "people.resamples=99", "objects.dimensions=[objects]",
        "models=[{name: plain, backend: 'simulated-scenes?knows=0.5'}]",
        "captions.proposer={openai}", "judge={openai}", "objects.lister={google}", "pairs.translator={openai}",
    ),
    "cultivate": (
        "ground.countries=[IR, US]", "ground.per_category=1", "images.slots=1", "real.per_prompt=2", "real.keep=1",
        "people=null", "models=[{name: plain, backend: 'simulated-scenes?knows=0.5'}]",
        "ground.reader={openai}", "ground.proposers=['{openai}', '{google}']", "ground.refiner={openai}",
        "ground.stereotypes={google}", "extractor={openai}", "scorer={openai}", "raters=['{google}']",
        "real.scorer=vqascore:{openai}",
    ),
    "linguistic": (
        "prompts.pairs={proposer: '{openai}', count: 60}", "prompts.nouns=1", "images.slots=1", "people=null",
        "models=[{name: one, backend: '{openai-pictures}'}, {name: other, backend: '{google-pictures}'}]",
    ),
}  # fmt: skip

OUTAGES = (
    Rule(Fault("busy", hint="retry-after-ms", wait=0.01), times=1),
    Rule(Fault("server-error"), When(attempts=(1, 1), share=0.3, salt="error")),
    Rule(Fault("drop-before"), When(attempts=(1, 1), share=0.3, salt="before")),
    Rule(Fault("drop-inside"), When(attempts=(2, 2), share=0.3, salt="inside")),
    Rule(Fault("broken-json"), When(attempts=(1, 1), share=0.5, salt="half")),
)

ASKING = {
    "c3": ("captions", "translated", "vqascore-plain"),
    "cultivate": ("mentions", "descriptors", "extracted-plain"),
    "linguistic": ("prompts-dialects",),
}


def made(name: str, folder: Path, server: RunningServer, *more: str) -> None:
    """Make a run to its end, asking whatever comes; `more` takes the place of what is small."""
    specs = {
        "{openai}": f"openai:gpt-1?base_url={server.openai_url}&price=0.15/0.60",
        "{google}": f"google:gem-1?base_url={server.google_url}&price=0.15/0.60",
        "{openai-pictures}": f"openai:gpt-image-1?base_url={server.openai_url}&quality=low",
        "{google-pictures}": f"google:gemini-2.5-flash-image?base_url={server.google_url}",
    }
    usual = ("llm.budget=5", "llm.concurrency=8", *SMALL[name])
    stated = list({text.partition("=")[0]: text for text in (*usual, *more)}.values())
    for mark, spec in specs.items():
        stated = [text.replace(mark, spec) for text in stated]
    recipe = load_any_recipe(find_recipe(name), stated).going_on(wanted=True)
    with LocalEngine(1) as engine:
        run_recipe(recipe, folder, engine=engine)


@pytest.mark.parametrize("name", list(SMALL))
def test_outages_change_nothing_and_refusals_are_counted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-nobody")
    monkeypatch.setattr("culturekit.llm.dispatch.FIRST_WAIT", 0.01)
    port, stats = 0, {}
    for weather, rules in (("calm", ()), ("stormy", OUTAGES)):
        with running_server(Script(rules=rules), model=knows, port=port) as server:
            port = urlsplit(server.openai_url).port or 0
            made(name, tmp_path / weather, server)
            stats[weather] = server.stats()
    assert stats["stormy"]["broken"] == [] == stats["calm"]["broken"]
    assert stats["stormy"]["requests"] > stats["calm"]["requests"]
    calm, stormy = ({file: sha for file, sha in content(tmp_path / weather).items() if file.endswith(".parquet")}
                    for weather in ("calm", "stormy"))  # fmt: skip
    assert calm.keys() == stormy.keys()
    for file in (file for file in calm if calm[file] != stormy[file]):
        bought = [pl.read_parquet(tmp_path / weather / file).drop("requested_at") for weather in ("calm", "stormy")]
        assert bought[0].equals(bought[1]), "an image says when it was bought, and nothing else differs"
    for folder in ASKING[name]:
        notes = json.loads((tmp_path / "stormy" / folder / "manifest.json").read_text(encoding="utf-8"))["notes"]
        assert set(notes["outcomes"]) <= {"ok", "repaired", "refused", "invalid"}
    refused = [pl.read_parquet(path)["reason"].to_list() for path in (tmp_path / "stormy").glob("*/drops.parquet")]
    assert "refused" in {reason for reasons in refused for reason in reasons}
    answer = verify_run(tmp_path / "stormy")
    assert [str(finding) for finding in answer.findings if finding.severity == "broken"] == []


# 989 captions, 50 of them drawn by three models, 50 translated pairs rated; 300 pairs kept of 1,008
BACKENDS = {"steady": 0.75, "showy": 0.55, "plain": 0.4}
MODELS = ", ".join(f"{{name: {name}, backend: 'simulated-scenes?knows={part}'}}" for name, part in BACKENDS.items())
TENTH = (
    "captions.count=989", "captions.sample=50", "people.prompts=50", "people.pairs=50", "pairs.keep=300",
    "pairs.simulated.each=28", "pairs.listed=kept", "captions.per_round=20", f"models=[{MODELS}]",
)  # fmt: skip


def test_c3_at_a_tenth_of_what_the_paper_expands_draws_and_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-nobody")
    with running_server(Script(), model=knows) as server:
        made("c3", tmp_path / "run", server, *TENTH)
        assert server.stats()["broken"] == []
    counted = pl.read_parquet(tmp_path / "run/stats-expanded/caption_stats.parquet").filter(category="all")
    assert counted["captions"].to_list() == [989]
    selected = pl.read_parquet(tmp_path / "run/selected/selected.parquet")
    assert dict(selected["strategy"].value_counts().iter_rows()) == dict.fromkeys(EVERY, 300)
    assert pl.read_parquet(tmp_path / "run/pearson/scores.parquet").height == len(EVERY) * 7
    assert set(pl.read_parquet(tmp_path / "run/judged-vqascore/scores.parquet")["model"]) == set(BACKENDS)
