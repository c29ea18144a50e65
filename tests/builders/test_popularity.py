import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import polars as pl
import pytest

from culturekit.builders.popularity import SOURCES, Ratings, Sitelinks, months, wikis
from culturekit.builders.space.cspace import ReleaseOptions, release_stage
from culturekit.core.errors import IntegrityError, MissingDependency, UpstreamUnavailable, UsageError
from culturekit.core.schemas import KEPT
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
from culturekit.kg.concepts import Concept, Root
from tests.builders.answering import Said, answering
from tests.builders.spaces import rows_of
from tests.conftest import stage_here

CONTACT = "contact=me@example.org"
COLUMNS: dict[str, Any] = {
    "artifact_id": pl.String, "qid": pl.String, "name": pl.String, "concept": pl.String, "country": pl.String,
    "sitelinks": pl.UInt16, "title": pl.String, "languages": pl.List(pl.String),
}  # fmt: skip


def artifacts(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {
        "qid": None, "name": "x", "concept": "cuisine", "country": "BR", "sitelinks": 0, "title": None,
        "languages": ["en"],
    }  # fmt: skip
    return pl.DataFrame([{**plain, "artifact_id": row.get("qid") or "LLM:x", **row} for row in rows], schema=COLUMNS)


def views(number: int) -> Said:
    half = number // 2
    items = [{"views": half, "article": "x"}, {"views": number - half}]
    return Said(body=json.dumps({"items": items}).encode())


def titled(counts: dict[str, int]) -> Any:
    """Serve views by language and title; what is not named is not known."""

    def answer(path: str) -> Said:
        parts = urlsplit(path).path.split("/")
        page = f"{parts[4].removesuffix('.wikipedia.org')}:{unquote(parts[7])}"
        return views(counts[page]) if page in counts else Said(404, b'{"detail": "no data"}')

    return answer


def rate(spec: str, frame: pl.DataFrame, work: Work) -> Ratings:
    return SOURCES.make(spec).rate(frame, work)


def test_sitelinks_are_ranked_among_their_own_and_unknown_without_an_item_or_any(
    work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    frame = artifacts(
        {"qid": "Q1", "sitelinks": 3}, {"qid": "Q2", "sitelinks": 9}, {"qid": None}, {"qid": "Q3", "country": "JP"}
    )
    assert Sitelinks().rate(frame, work).values.to_list() == [0.5, 1.0, None, 1.0]
    frame = artifacts({"qid": "Q1"}, {"qid": "Q2"}, {"qid": None})
    assert Sitelinks().rate(frame, work).values.to_list() == [None, None, None]
    assert "popularity is unknown" in caplog.text


def test_pageviews_are_added_up_over_months_and_ranked(work: Work) -> None:
    counts = {"en:Pão_de_queijo": 7, "en:A/B?": 20}
    frame = artifacts(
        {"qid": "Q1", "title": "Pão de queijo"}, {"qid": "Q2", "title": "A/B?"}, {"qid": "Q3", "title": "unseen"},
        {"qid": "Q4"}, {"name": "of a model"},
    )  # fmt: skip
    with answering(titled(counts)) as server:
        ratings = rate(f"pageviews?{CONTACT}&period=2025-02/2025-03&base_url={server.url}&per_second=100", frame, work)
        paths = server.paths()
    assert ratings.values.to_list() == [pytest.approx(2 / 3), 1.0, pytest.approx(1 / 3), None, None]
    assert (
        "/metrics/pageviews/per-article/en.wikipedia.org/all-access/user/A%2FB%3F/monthly/2025020100/2025033100"
        in paths
    )
    snapshot: Any = ratings.notes["popularity"]
    assert (snapshot["period"], snapshot["pages"], snapshot["rows without a page"]) == ("2025-02/2025-03", 3, 2)


def test_pages_in_other_languages_are_found_through_wikidata(work: Work) -> None:
    frame = artifacts(
        {"qid": "Q1", "title": "Puja", "languages": ["en", "hi", "pt-BR", "mul"]},
        {"qid": "Q2", "languages": ["en", "hi"]},
    )

    def links(path: str) -> Said:
        query = parse_qs(urlsplit(path).query)
        assert query["props"] == ["sitelinks"]
        known: dict[str, Any] = {
            "Q1": {"sitelinks": {"hiwiki": {"title": "पूजा"}, "ptwiki": {"title": "Puja pt"}}},
            "Q2": {"sitelinks": []},
        }
        return Said(body=json.dumps({"entities": {qid: known[qid] for qid in query["ids"][0].split("|")}}).encode())

    with answering(titled({"en:Puja": 1, "hi:पूजा": 5, "pt:Puja_pt": 2})) as server, answering(links) as titles:
        spec = f"pageviews?{CONTACT}&base_url={server.url}&titles_url={titles.url}/w/api.php&per_second=100"
        assert rate(spec, frame, work).values.to_list() == [1.0, None]
        assert len(server.asked) == 3
        assert {path.partition("sitefilter=")[2] for path in titles.paths()} == {"hiwiki%7Cptwiki", "hiwiki"}


def test_what_was_counted_is_not_asked_again_after_a_failure(work: Work, tmp_path: Path) -> None:
    frame = artifacts(*({"qid": f"Q{n}", "title": f"Page {n}"} for n in range(1, 6)))
    counts = {f"en:Page_{n}": n for n in range(1, 6)}
    broken = {"en:Page_4"}

    def answer(path: str) -> Said:
        return Said(403) if any(page.partition(":")[2] in path for page in broken) else titled(counts)(path)

    with answering(answer) as server:
        spec = f"pageviews?{CONTACT}&base_url={server.url}&cache={tmp_path / 'kept'}&per_second=100"
        with pytest.raises(UpstreamUnavailable, match="What was answered is kept"):
            rate(spec, frame, work)
        broken.clear()
        again = rate(spec, frame, work)
        assert sorted(path.partition("Page_")[2][0] for path in server.paths()) == ["1", "2", "3", "4", "4", "5"]
        damaged = next((tmp_path / "kept/views").rglob("*.json"))
        damaged.write_bytes(b"[")
        assert rate(spec, frame, work).values.equals(again.values)
        assert len(server.asked) == 7
        other = spec + "&period=2024-01"
        rate(other, frame, work)
        assert len(server.asked) == 12


def test_periods_are_whole_months_languages_are_wikis_and_people_stand_in_no_manifest(tmp_path: Path) -> None:
    assert months("2024-02") == ("2024020100", "2024022900")
    assert months("2024-11/2025-12") == ("2024110100", "2025123100")
    assert wikis(["en", "mul", "pt-BR", "zh_yue", "en"]) == ["en", "pt", "zh-yue"]
    source = SOURCES.make(f"pageviews?{CONTACT}&cache={tmp_path}&languages=en,hi")
    told = json.dumps(dict(source.decides))
    assert not any(private in told for private in ("example.org", str(tmp_path)))
    assert source.decides["languages"] == ["en", "hi"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("pageviews", "whom to write to"),
        ("pageviews?contact=nobody", "whom to write to"),
        (f"pageviews:x?{CONTACT}", "takes no target"),
        (f"pageviews?{CONTACT}&period=2025", "not a period"),
        (f"pageviews?{CONTACT}&period=2025-05/2025-04", "no such period"),
        (f"pageviews?{CONTACT}&period=2010-05", "no such period"),
        (f"pageviews?{CONTACT}&languages=en/x", "not the language"),
        (f"pageviews?{CONTACT}&base_url=file:///etc", "not a URL"),
        (f"pageviews?{CONTACT}&per_second=0", "per_second"),
        (f"pageviews?{CONTACT}&speed=9", "no option speed"),
    ],
)
def test_a_wrong_spec_is_refused_before_anything_is_asked(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SOURCES.make(spec)


def reply(terms: str, gl: str, total: object) -> bytes:
    return json.dumps(
        {
            "kind": "customsearch#search",
            "queries": {"request": [{"searchTerms": terms, "gl": gl, "totalResults": "1"}]},
            "searchInformation": {"searchTime": 0.1, "totalResults": total},
            "items": [{"title": "prose of a page"}],
        }
    ).encode()


def answers(folder: Path, *rows: tuple[str, str, object]) -> Path:
    folder.mkdir(exist_ok=True)
    for number, row in enumerate(rows):
        (folder / f"{number}.json").write_bytes(reply(*row))
    return folder


def test_kept_search_results_are_replayed_by_country_and_only_ranks_come_out(work: Work, tmp_path: Path) -> None:
    folder = answers(tmp_path / "a", ("farofa", "br", "7654321"), ("sushi", "br", "1234567"), ("sushi", "jp", "99"))
    frame = artifacts({"name": "farofa"}, {"name": "sushi"}, {"name": "sushi", "country": "JP"}, {"name": "unasked"})
    source = SOURCES.make(f"google_cse:{folder}")
    ratings = source.rate(frame, work)
    assert ratings.values.to_list() == [1.0, 0.5, 1.0, None]
    assert ratings.notes["findings"] == ["popularity: 1 of 4 searches have no kept answer, and their artifacts no rank"]
    told = json.dumps([dict(source.decides), dict(ratings.notes), ratings.values.to_list()])
    assert not any(count in told for count in ("7654321", "1234567"))
    changed = SOURCES.make(f"google_cse:{answers(tmp_path / 'b', ('farofa', 'br', '7'))}")
    assert changed.decides != source.decides


@pytest.mark.parametrize(
    "content",
    [b"{}", b"not json", reply("x", "br", "-3"), reply("x", "br", 5), reply("x", "br", "9" * 40), b"[" * 10_000,
     reply("x", "BR", "6")],
)  # fmt: skip
def test_an_answer_that_is_none_or_a_second_one_is_named(tmp_path: Path, content: bytes) -> None:
    (answers(tmp_path, ("x", "br", "5")) / "a.json").write_bytes(content)
    with pytest.raises(IntegrityError, match=r"a\.json"):
        SOURCES.make(f"google_cse:{tmp_path}")


def test_the_end_of_the_service_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for spec in ("google_cse", f"google_cse:{tmp_path / 'none'}"):
        with pytest.raises(UsageError, match="2027-01-01"):
            SOURCES.make(spec)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(UsageError, match="search engine"):
        SOURCES.make(f"google_cse:{tmp_path}?live=true")
    with pytest.raises(MissingDependency, match="no key"):
        SOURCES.make(f"google_cse:{tmp_path}?live=true&cx=e")
    monkeypatch.setenv("GOOGLE_API_KEY", "not-a-real-key-0123456789")
    with caplog.at_level(logging.WARNING):
        SOURCES.make(f"google_cse:{tmp_path}?live=true&cx=e")
    assert "2027-01-01" in caplog.text


def test_a_live_search_sends_the_country_and_keeps_nothing_but_the_number(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SEARCH_KEY", "not-a-real-key-0123456789")
    folder = tmp_path / "kept"

    def answer(path: str) -> Said:
        query = parse_qs(urlsplit(path).query)
        return Said(body=reply("whatever it says", "us", "42" if query["q"] == ["farofa"] else "7"))

    frame = artifacts({"name": "farofa"}, {"name": "moqueca & co"})
    with answering(answer) as server:
        spec = f"google_cse:{folder}?live=true&cx=e&api_key=${{MY_SEARCH_KEY}}&base_url={server.url}/v1&per_second=10"
        assert rate(spec, frame, work).values.to_list() == [1.0, 0.5]
        assert {query["gl"][0] for path in server.paths() if (query := parse_qs(urlsplit(path).query))} == {"br"}
        assert all(headers["x-goog-api-key"] == "not-a-real-key-0123456789" for _, headers in server.asked)
        assert not any("not-a-real-key" in path for path in server.paths())
        rate(spec, frame, work)
        assert len(server.asked) == 2
    kept = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"prose" not in kept
    assert b"not-a-real-key" not in kept
    assert rate(f"google_cse:{folder}", frame, work).values.to_list() == [1.0, 0.5]


def test_a_search_that_is_refused_keeps_what_was_answered(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "not-a-real-key-0123456789")
    frame = artifacts({"name": "a"}, {"name": "b"})
    with answering(lambda path: Said(403) if "q=b" in path else Said(body=reply("a", "br", "3"))) as server:
        source = SOURCES.make(f"google_cse:{tmp_path / 'k'}?live=true&cx=e&base_url={server.url}&per_second=10")
        with pytest.raises(UpstreamUnavailable, match="2027-01-01"):
            source.rate(frame, replace(work))
    assert len(list((tmp_path / "k").iterdir())) == 1


def test_a_cut_run_goes_on_where_it_was_without_any_cache_option(tmp_path: Path) -> None:
    rows = [{"qid": f"Q{n}", "label": f"n{n}", "title": f"Page {n}"} for n in range(1, 5)]
    table = rows_of(
        KEPT, *({**row, "concept": "art", "country_qids": ["Q155"], "verdict": "keep", "reason": "r"} for row in rows)
    )
    kept = write_table(tmp_path, KEPT, table)
    concept = Concept(concept="art", hops=1, roots=(Root(qid="Q1", label="x"),))
    broken = [True]

    def answer(path: str) -> Said:
        return Said(403) if broken[0] and "Page_3" in path else views(4)

    with answering(answer) as server:
        spec = f"pageviews?{CONTACT}&base_url={server.url}&per_second=100"

        def run() -> str:
            stage = release_stage([kept], ReleaseOptions((concept,), spec))
            return stage_here(stage, tmp_path / "out").state

        with pytest.raises(UpstreamUnavailable):
            run()
        broken[0] = False
        assert run() == "resumed"
        assert len(server.asked) == 5
        assert run() == "reused"
    manifest = (tmp_path / "out/manifest.json").read_text(encoding="utf-8")
    assert '"period": "2025-01/2025-12"' in manifest
    assert "example.org" not in manifest
