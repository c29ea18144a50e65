"""Photographs from servers on loopback that speak the protocols of Wikimedia Commons and Openverse."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import polars as pl
import pytest
from PIL import Image

from culturekit.core.schemas import PHOTOGRAPHS
from culturekit.core.tables import read_table
from tests.builders.answering import Answering, Said, answering
from tests.builders.descriptors.test_descriptor_proposals import prompts_table
from tests.command_line import culturekit
from tests.faults.kill_and_resume import kill_and_resume

HOSTILE = '<a href="x">Ann <b>Photographer</b></a><script>alert(1)</script>'


def picture(seed: int, form: str = "JPEG", *, side: int = 64) -> bytes:
    """Draw a picture that looks unlike others."""
    coarse = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(coarse).resize((side, side), Image.Resampling.NEAREST).save(buffer, form)
    return buffer.getvalue()


def commons(home: str, query: str, limit: int) -> dict[str, Any]:
    first = first_of(query)
    pages = [
        {"pageid": number, "ns": 6, "title": f"File:Nowruz {number}.jpg", "index": number, "imageinfo": [{
            "url": f"{home}/files/{first + number}-whole", "thumburl": f"{home}/files/{first + number}",
            "descriptionurl": f"{home}/wiki/File:{number}", "mime": "image/jpeg",
            "extmetadata": {"Artist": {"value": HOSTILE, "source": "x"}, "LicenseShortName": {"value": "CC BY-SA 4.0"},
                            "LicenseUrl": {"value": "https://creativecommons.org/licenses/by-sa/4.0"}},
        }]}
        for number in range(limit, 0, -1)
    ]  # fmt: skip
    return {"batchcomplete": True, "query": {"pages": pages}}


def openverse(home: str, query: str) -> dict[str, Any]:
    first = first_of(query)  # the same pictures, in other bytes
    results = [
        {"id": "a", "url": f"{home}/files/{first + 1}-png", "title": "Same as another", "creator": "Bo",
         "license": "by", "license_version": "2.0", "license_url": "https://example.org/by",
         "foreign_landing_url": "https://example.org/1"},
        {"id": "b", "url": f"{home}/files/page", "license": "cc0", "license_version": "1.0"},
        {"id": "c", "url": "http://10.0.0.1/secret", "license": "cc0"},
        {"id": "d", "url": f"{home}/files/{first + 500}", "title": None, "creator": None, "license": "pdm"},
    ]  # fmt: skip
    return {"result_count": 4, "page_count": 1, "results": results}


def first_of(query: str) -> int:
    return sum(map(ord, query)) % 1000


def queries(server: Answering) -> set[str]:
    """What was searched for."""
    asked = (parse_qs(urlsplit(path).query) for path in server.paths())
    return {each.get("gsrsearch", each.get("q", [""]))[0].removesuffix(" filetype:bitmap") for each in asked} - {""}


@pytest.fixture
def server() -> Iterator[Answering]:
    """Both services, and the hosts of pictures."""

    def answer(path: str) -> Said:
        parts = urlsplit(path)
        values = {name: texts[0] for name, texts in parse_qs(parts.query).items()}
        if parts.path == "/w/api.php":
            assert [values[name] for name in ("action", "generator", "gsrnamespace", "prop")] == [
                "query", "search", "6", "imageinfo",
            ]  # fmt: skip
            query = values["gsrsearch"].removesuffix(" filetype:bitmap")
            return Said(body=json.dumps(commons(running.url, query, int(values["gsrlimit"]))).encode())
        if parts.path == "/v1/images/":
            return Said(body=json.dumps(openverse(running.url, values["q"])).encode())
        name = parts.path.rpartition("/")[2]
        form = "PNG" if name.endswith("png") else "JPEG"
        page = b"<html>no picture</html>"
        body = page if name == "page" else picture(int(name.partition("-")[0]), form, side=80)
        return Said(body=body, headers={"Content-Type": "image/jpeg"})

    with answering(answer) as running:
        yield running


def words(home: str, out: str, *more: str) -> list[str]:
    at = ["--commons", f"{home}/w/api.php", "--openverse", f"{home}/v1/images/", "--contact", "me@example.org"]
    return ["references", "collect", "--prompts", "prompts/prompts.parquet", "--out", out, "--per-second", "10", *at,
            *more]  # fmt: skip


def test_photographs_of_both_services_stand_with_licence_and_author(tmp_path: Path, server: Answering) -> None:
    prompts_table(tmp_path / "prompts", ("IR", "celebrations", "Nowruz"), ("FR", "eating", "eating at home"))
    done = culturekit(*words(server.url, "photographs", "--each", "5"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = read_table(tmp_path / "photographs/photographs.parquet", PHOTOGRAPHS)
    assert table.group_by("prompt_id").len()["len"].to_list() == [5, 5]
    assert table["slot"].to_list() == [0, 1, 2, 3, 4] * 2
    assert queries(server) == {"Nowruz Iran", "eating at home France"}
    by = dict(table.select("service", "author").unique().iter_rows())
    assert by["commons"] == "Ann Photographer alert(1)", "no markup of a stranger"
    assert set(table["licence"]) == {"CC BY-SA 4.0", "Public domain"}
    drops = pl.read_parquet(tmp_path / "photographs/drops.parquet")
    assert set(drops["reason"]) >= {"there already", "not fetched"}, (
        "a double in other bytes, an address that is not public"
    )
    assert any("10.0.0.1" in key for key in drops["key"])
    assert len(drops["reason"].unique()) == 3, "and a page that calls itself a picture"
    for row in table.iter_rows(named=True):
        with Image.open(tmp_path / "photographs" / row["path"]) as opened:
            assert opened.size == (row["width"], row["height"])
    sheet = (tmp_path / "photographs/contact_sheet.html").read_text(encoding="utf-8")
    assert sheet.count("<img") == 10
    assert "<script" not in sheet


def test_a_second_search_is_in_the_language_of_the_country(tmp_path: Path, server: Answering) -> None:
    prompts_table(tmp_path / "prompts", ("FR", "celebrations", "Bastille Day"), ("US", "eating", "eating at home"))
    more = ("--each", "2", "--service", "openverse", "--service", "commons", "--llm", "simulated:translator")
    done = culturekit(*words(server.url, "photographs", *more), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = read_table(tmp_path / "photographs/photographs.parquet", PHOTOGRAPHS)
    languages = dict(table.group_by("query").agg(pl.col("language").first()).iter_rows())
    assert sorted(languages.values()) == ["en", "en", "fr"]
    assert languages["Bastille Day France"] == "en"
    assert table.filter(language="fr").height == 2


@pytest.mark.slow
def test_a_killed_search_ends_in_the_same_photographs(tmp_path: Path, server: Answering) -> None:
    prompts = prompts_table(
        tmp_path / "prompts", *((country, "celebrations", "Nowruz") for country in ("IR", "FR", "NG", "US"))
    )
    rounds: list[tuple[int, int]] = []

    def command(out: Path) -> list[str]:
        asked = [
            word.replace("prompts/prompts.parquet", str(prompts)) for word in words(server.url, str(out), "--each", "8")
        ]
        return [sys.executable, "-m", "culturekit", *asked]

    def ended(hits: int) -> None:
        rounds.append((hits, len(server.asked)))
        server.asked.clear()

    result = kill_and_resume(command, tmp_path, kills=4, seed=3, ended=ended)
    assert result.different == []
    (_, once), *killed = rounds
    assert sum(hits for hits, _ in killed) >= 4
    assert all(requests <= once + hits for hits, requests in killed), "a kill costs the request that was under way"


def test_the_folder_is_real_images_and_one_can_be_left_out(tmp_path: Path, server: Answering) -> None:
    prompts_table(tmp_path / "prompts", ("IR", "celebrations", "Nowruz"))
    assert culturekit(*words(server.url, "photographs", "--each", "3"), cwd=tmp_path).returncode == 0
    listed = tmp_path / "photographs/metadata.csv"
    lines = listed.read_text(encoding="utf-8").splitlines()
    listed.write_text("\n".join([*lines[:-1], lines[-1].replace(",ok", ",filtered")]) + "\n", encoding="utf-8")
    taken = culturekit("generate", "--backend", "folder:photographs", "--prompts", "prompts/prompts.parquet", "--model",
                       "real", "--out", "images", cwd=tmp_path)  # fmt: skip
    assert taken.returncode == 0, taken.stderr
    images = pl.read_parquet(tmp_path / "images/images.parquet")
    assert images.group_by("status").len().sort("status").rows() == [("filtered", 1), ("ok", 2)]
    assert images["prompt_id"].n_unique() == 1


def test_whoever_is_asked_is_told_a_contact(tmp_path: Path) -> None:
    prompts_table(tmp_path / "prompts", ("IR", "celebrations", "Nowruz"))
    asked = [word.replace("me@example.org", "nobody") for word in words("http://127.0.0.1:1", "photographs")]
    done = culturekit(*asked, cwd=tmp_path)
    assert done.returncode != 0
    assert "a mail address or a URL" in done.stderr
