"""Activities and descriptors from real clients: planned, budgeted, gone on with, on the wire of both providers."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.kg.countries import countries
from culturekit.records.schemas import DESCRIPTOR_TRAIL, DESCRIPTORS, MENTIONS, PAGES, PROPOSED_DESCRIPTORS, STEREOTYPES
from culturekit.storage.tables import read_table, write_table
from tests.builders.descriptors.test_descriptor_proposals import prompts_table
from tests.builders.judging.test_image_judge import png, table
from tests.builders.spaces import rows_of
from tests.command_line import culturekit
from tests.faults.proposing_model import proposes
from tests.llm.server import Fault, Question, Rule, RunningServer, Script, When, running_server


@pytest.mark.endtoend
def test_a_budget_stops_the_rounds_and_a_larger_one_goes_on_to_the_same_captions(tmp_path: Path) -> None:
    with running_server(model=proposes) as server:
        words = ("captions", "expand", "--culture", "chinese", "--captions", "60", "--llm", spec(server, "openai"))
        plan = json.loads(asked(tmp_path, *words, "--out", "some", "--plan", "--json").stdout)
        assert (plan["units"], plan["requests"]) == (11, 11)
        assert server.stats()["requests"] == 0
        asked(tmp_path, *words, "--out", "some", "--budget", "0.003", "--concurrency", "1", code=5)
        spent = server.stats()
        assert 0 < spent["requests"] < 11
        assert spent["usd"] <= 0.003
        left = json.loads(asked(tmp_path, *words, "--out", "some", "--plan", "--json").stdout)["requests"]
        assert left < 11
        asked(tmp_path, *words, "--out", "some", "--budget", "1")
        assert server.stats()["bought_twice"] == 0
        asked(tmp_path, *words, "--out", "other", "--concurrency", "3")
        stats = server.stats()
    assert stats["broken"] == []
    for name in ("captions", "caption_proposals", "drops"):
        assert (tmp_path / f"some/{name}.parquet").read_bytes() == (tmp_path / f"other/{name}.parquet").read_bytes()
    captions = pl.read_parquet(tmp_path / "some/captions.parquet")
    assert captions.height == 60
    assert set(pl.read_parquet(tmp_path / "some/drops.parquet")["reason"]) >= {"same as an earlier caption", "refused"}


KEYS = {"OPENAI_API_KEY": "sk-of-nobody", "GEMINI_API_KEY": "key-of-nobody"}
TEXT = "Bhangra is danced at harvest. Kabaddi is played in fields."


def answer(question: Question) -> str | None:
    """Answer the four tasks as a sensible model does; a probe is left to the server."""
    data: dict[str, Any] = json.loads(question.user.splitlines()[1])
    if "id" not in data:
        return None
    reply: Mapping[str, object]
    if "criterion" in data:
        return json.dumps({"answer": "score is 4"})
    if set(data) == {"id", "dimension"}:
        return json.dumps({"descriptors": f"red rug, {data['dimension']} of {data['id'][:4]}"})
    if "candidates" in data:
        kept = [{"number": "1", "merges": ["3"]}, {"number": "2", "merges": []}]
        reply = {"kept": kept, "left_out": [{"number": "4", "reason": "wrong"}]}
    elif "dimension" in data:
        words = ["low table", "red rug", "wide door"] if question.model == "gem-1" else ["Red rug", "brass lamp"]
        reply = {"descriptors": [{"token": each, "style": "neutral", "necessity": "optional"} for each in words]}
    elif "text" in data:
        reply = {"activities": [{"name": "Bhangra", "category": "dances", "quote": "Bhangra is danced at harvest."}]}
    else:
        reply = {"stereotypes": ["elephant", "turban"]}
    return json.dumps({"id": data["id"], **reply})


def spec(server: RunningServer, provider: str) -> str:
    url, model = (server.openai_url, "gpt-1") if provider == "openai" else (server.google_url, "gem-1")
    return f"{provider}:{model}?base_url={url}&price=0.15/0.60"


def asked(folder: Path, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    done = culturekit(*words, cwd=folder, env=KEYS)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    prompts_table(tmp_path / "prompts", ("IN", "eating", "eating at home"), ("NG", "wedding", "a wedding"))
    (tmp_path / "sources").mkdir()
    about = {"page_id": "p", "number": 1, "source": "wikipedia", "country": "IN", "title": "India", "sha256": "0"}
    row = {**about, "section": "lead", "text": TEXT, "categories": ["dances", "games"]}
    write_table(tmp_path / "sources", PAGES, rows_of(PAGES, row))
    return tmp_path


def test_descriptors_come_over_the_wire_of_both_providers(folder: Path) -> None:
    prompts = ("--prompts", "prompts/prompts.parquet")
    with running_server(model=answer) as server:
        for provider in ("openai", "google"):
            asked(folder, "descriptors", "propose", *prompts, "--llm", spec(server, provider), "--out", provider)
        both = [
            word for name in ("openai", "google") for word in ("--proposals", f"{name}/proposed_descriptors.parquet")
        ]
        asked(folder, "descriptors", "refine", *prompts, *both, "--llm", spec(server, "openai"), "--out", "kept")
        asked(folder, "descriptors", "stereotypes", *prompts, "--llm", spec(server, "google"), "--out", "overdone")
        reading = ("--pages", "sources/pages.parquet", "--llm", spec(server, "openai"), "--out", "mentions")
        asked(folder, "activities", "extract", *reading)
        stats = server.stats()
    assert stats["broken"] == []
    assert read_table(folder / "google/proposed_descriptors.parquet", PROPOSED_DESCRIPTORS).height == 2 * 5 * 3
    kept = read_table(folder / "kept/descriptors.parquet", DESCRIPTORS)
    assert kept.filter(dimension="attire", prompt_id="ng-a wedding").select("token", "proposers").rows() == [
        ("Red rug", ["gpt-1", "gem-1"]),
        ("low table", ["gem-1"]),
    ]
    trail = read_table(folder / "kept/descriptor_trail.parquet", DESCRIPTOR_TRAIL)
    assert trail.filter(dimension="attire", prompt_id="ng-a wedding").select("token", "outcome", "kept_as").rows() == [
        ("Red rug", "kept", "Red rug"),
        ("low table", "kept", "low table"),
        ("brass lamp", "merged", "Red rug"),
        ("wide door", "wrong", None),
    ]
    assert read_table(folder / "overdone/stereotypes.parquet", STEREOTYPES).height == 4
    assert read_table(folder / "mentions/mentions.parquet", MENTIONS)["outcome"].to_list() == ["ok"]


def test_a_budget_stops_the_asking_and_a_larger_one_goes_on(folder: Path) -> None:
    with running_server(model=answer) as server:
        words = ("descriptors", "propose", "--prompts", "prompts/prompts.parquet", "--llm", spec(server, "openai"))
        plan = json.loads(asked(folder, *words, "--out", "some", "--plan", "--json").stdout)
        assert (plan["units"], plan["requests"]) == (10, 10)
        assert server.stats()["requests"] == 0
        asked(folder, *words, "--out", "some", "--budget", "0.002", "--concurrency", "1", code=5)
        spent = server.stats()
        assert 0 < spent["requests"] < 10
        assert spent["usd"] <= 0.002
        asked(folder, *words, "--out", "some", "--budget", "1")
        whole = server.stats()
        assert whole["bought_twice"] == 0
        asked(folder, *words, "--out", "other")
    tables = [(folder / name / "proposed_descriptors.parquet").read_bytes() for name in ("some", "other")]
    assert tables[0] == tables[1]


REFUSALS = {"openai": ("refusal", "refused"), "google": ("content-filter", "blocked")}
OUTAGES = (
    Rule(Fault("busy", hint="retry-after-ms", wait=0.01), times=1),
    Rule(Fault("server-error"), When(attempts=(1, 1), share=0.3, salt="error")),
    Rule(Fault("drop-before"), When(attempts=(1, 1), share=0.3, salt="before")),
    Rule(Fault("drop-inside"), When(attempts=(2, 2), share=0.3, salt="inside")),
    Rule(Fault("broken-json"), When(attempts=(1, 1), share=0.5, salt="half")),
)
PROPOSED = ("--prompts", "prompts/prompts.parquet")
SEEN = ("--images", "images/images.parquet")
ASKING = {
    "mentions": ("activities", "extract", "--pages", "sources/pages.parquet"),
    "proposed_descriptors": ("descriptors", "propose", *PROPOSED),
    "descriptors": ("descriptors", "refine", *PROPOSED, "--proposals", "given/proposed_descriptors.parquet"),
    "stereotypes": ("descriptors", "stereotypes", *PROPOSED),
    "judgments": ("judge", "extract", *SEEN),
}


@pytest.mark.slow
@pytest.mark.parametrize(("made", "provider"), [*((made, "openai") for made in ASKING), ("descriptors", "google")])
def test_outages_change_no_byte_and_refusals_are_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, made: str, provider: str
) -> None:
    monkeypatch.setattr("culturekit.llm.dispatch.FIRST_WAIT", 0.01)
    sources = pl.read_parquet(folder / "sources/pages.parquet")
    more = pl.concat([sources.with_columns(number=pl.lit(number, pl.UInt16)) for number in range(1, 9)])
    write_table(folder / "sources", PAGES, more)
    prompts_table(folder / "prompts", *((iso, "wedding", "a wedding") for iso in ("IN", "NG", "FR", "BR", "IR", "JP")))
    table(folder / "images", {colour: png(colour) for colour in ("red", "green", "blue", "black")}, prompt_id="ng")
    with running_server(model=answer) as server:
        asked(folder, *ASKING["proposed_descriptors"], "--llm", spec(server, "openai"), "--out", "given")
    faults: dict[str, Mapping[str, Any]] = {}
    kind, outcome = REFUSALS[provider]
    refusing = Rule(Fault(kind), When(share=0.4, salt="no"))
    for weather, rules in (("calm", (refusing,)), ("stormy", (*OUTAGES, refusing))):
        with running_server(Script(rules=rules), model=answer) as server:
            asked(folder, *ASKING[made], "--llm", spec(server, provider), "--out", weather, code=1)
            faults[weather] = server.stats()
    calm, stormy = ((folder / name / f"{made}.parquet").read_bytes() for name in ("calm", "stormy"))
    assert calm == stormy
    manifest = json.loads((folder / "stormy/manifest.json").read_text(encoding="utf-8"))
    outcomes = manifest["notes"]["outcomes"]
    assert set(outcomes) <= {"ok", "repaired", outcome}
    assert manifest["counts"]["quarantined"] == outcomes[outcome] > 0
    assert faults["stormy"]["requests"] >= faults["calm"]["requests"] + 3, "the weather was bad"


def grid(folder: Path) -> None:
    """Write the prompts of 16 countries and 36 activities."""
    from culturekit.builders.descriptors.proposing import whole_grid

    isos = sorted(iso for iso, each in countries().items() if "cultivate" in each.groups)
    rows = [(iso, category, f"{category}, {name}") for _, category, iso, name in whole_grid(isos).rows()]
    assert pl.read_parquet(prompts_table(folder / "grid", *rows)).height == 16 * 36 == 576


PRICES = {"google:gemini-2.5-flash": (0.30, 2.50), "openai:gpt-4o": (2.50, 10.00)}


@pytest.mark.parametrize("model", PRICES)
def test_the_whole_grid_is_planned_with_the_prices_of_the_papers_models(tmp_path: Path, model: str) -> None:
    grid(tmp_path)
    told = ("--prompts", "grid/prompts.parquet", "--llm", model, "--out", "out", "--plan", "--json")
    plan = json.loads(asked(tmp_path, "descriptors", "propose", *told).stdout)
    assert (plan["units"], plan["requests"], plan["cost"]["requests"]) == (2_880, 2_880, 2_880)
    price_in, price_out = PRICES[model]
    cost = plan["cost"]
    assert cost["usd"] == pytest.approx((cost["input_tokens"] * price_in + cost["output_tokens"] * price_out) / 1e6)
    assert 400 < cost["input_tokens"] / 2_880 < 1_200
    assert json.loads(asked(tmp_path, "descriptors", "stereotypes", *told).stdout)["requests"] == 16
    assert not (tmp_path / "out").exists()
