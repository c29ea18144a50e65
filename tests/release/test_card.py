"""What a card holds, that the same release gives the same one, and that its check finds whatever was changed."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from culturekit.cli.app import app
from culturekit.core.errors import ConfigError, IntegrityError, UsageError
from culturekit.core.schemas import CSPACE
from culturekit.core.stage import Outcome, Work
from culturekit.release.card_build import CROISSANT, build_card, card_stage, check_card, croissant_of, json_findings
from culturekit.release.card_content import CODES, exit_code
from culturekit.release.card_facts import facts_of
from culturekit.release.card_hand import FIELDS_FILE, SECTIONS, TEXT_FILE, empty_fields, read_hand
from culturekit.release.card_pages import BLOCK, PAGES
from tests.effort import SHARED_FIXTURE, examples
from tests.release.release_made import FIELDS, REPOSITORY, built, finished, space, write_hand, write_release

HOSTILE = (
    "<script>alert(1)</script>", "| cell | breaker |\n# heading",
    "`code` **bold** [link](javascript:alert(1)) ![x](http://x.example/p.png)", "---\nlicense: evil\n---",
    "<!-- end of countries -->", "&lt;b&gt; \u202ereversed \u200bhidden \x1b[31mred", "{{ jinja }} ${HOME} %s =1+1",
)  # fmt: skip


def facts(card: Path) -> dict[str, object]:
    value = orjson.loads((card / "facts.json").read_bytes())
    assert isinstance(value, dict)
    return value


def header(card: Path) -> dict[str, object]:
    text = (card / "README.md").read_text(encoding="utf-8")
    value = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(value, dict)
    return value


def test_counts_are_those_of_the_data(one_card: Path) -> None:
    counts = facts(one_card)["counts"]["cspace"]  # type: ignore[index]
    assert counts["rows"] == 4
    assert counts["values"]["country"] == {"BR": 2, "NG": 2}
    assert counts["values"]["concept"] == {"cuisine": 3, "landmarks": 1}
    assert counts["hops"] == {"1": 2, "2": 1, "(none)": 1}
    assert counts["country_concept"]["NG"] == {"cuisine": 1, "landmarks": 1}
    assert counts["distinct"]["artifact_id"] == 4


def test_the_dump_the_models_and_the_drops_come_from_the_stages_behind(one_card: Path) -> None:
    found = facts(one_card)
    assert [(dump["name"], dump["date"]) for dump in found["dumps"]] == [  # type: ignore[attr-defined]
        ("wikidata-20261102-all.json.gz", "2026-11-02")
    ]
    assert found["drops"] == [
        {"stage": "filter", "reason": "no usable label", "count": 12},
        {"stage": "filter", "reason": "not of the concept", "count": 7},
    ]
    page = (one_card / "README.md").read_text(encoding="utf-8")
    assert "5" * 64 in page
    assert "raw sitelink counts favour large languages" in page.lower()
    assert "does not record which of its rows wait" in page, "it was made before releases said so"
    changelog = "- 1.0.0 (2026-11-21): The first one"
    assert any(changelog in (one_card / name).read_text(encoding="utf-8").splitlines() for name in PAGES)
    assert found["not_at_hand"] == []


def test_a_stage_that_is_gone_is_said(tmp_path: Path) -> None:
    release = write_release(tmp_path / "run")
    (tmp_path / "run/graph").rename(tmp_path / "elsewhere")
    built(release, write_hand(tmp_path / "hand"), tmp_path / "card")
    assert [stage for stage, _, _ in facts(tmp_path / "card")["not_at_hand"]] == ["ingest"]  # type: ignore[attr-defined]
    assert {finding.expected for finding in check_card(tmp_path / "card")} == {"words of a person for 'dump_date'"}


def test_the_same_release_gives_the_same_bytes(tmp_path: Path, one_card: Path) -> None:
    built(write_release(tmp_path / "elsewhere"), write_hand(tmp_path / "hand"), tmp_path / "again")
    names = sorted(p.relative_to(one_card) for p in one_card.rglob("*") if p.is_file() and p.name != "run.json")
    assert names == sorted(
        p.relative_to(tmp_path / "again")
        for p in (tmp_path / "again").rglob("*")
        if p.is_file() and p.name != "run.json"
    )
    for name in names:
        assert (one_card / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_the_checksums_are_those_that_sha256sum_reads_and_no_path_of_this_machine_is_in_a_card(one_card: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=one_card, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(b": OK") >= 10
    files = [path for path in one_card.rglob("*") if path.is_file() and path.name != "run.json"]
    assert files
    for path in files:
        assert str(one_card.parent).encode() not in path.read_bytes(), path


def test_a_date_that_the_dump_does_not_tell_is_told_by_people(tmp_path: Path) -> None:
    hand = write_hand(tmp_path / "hand", fields=f"{FIELDS}dump_date: 2026-10-12\n")
    built(write_release(tmp_path / "run"), hand, tmp_path / "card")
    assert "- Date of the dump: 2026-10-12" in (tmp_path / "card/README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("label", HOSTILE)
def test_a_hostile_label_is_shown_and_not_obeyed(tmp_path: Path, label: str) -> None:
    rows = space().with_columns(
        concept=pl.when(pl.col("concept") == "landmarks").then(pl.lit(label)).otherwise("concept"),
        popularity_source=pl.lit(label),
        country=pl.when(pl.col("country") == "NG").then(pl.lit(label)).otherwise("country"),
        name=pl.lit(label),
    )
    release = write_release(tmp_path / "run", rows.select(list(CSPACE.schema)), judge=label)
    built(release, write_hand(tmp_path / "hand"), tmp_path / "card")
    assert check_card(tmp_path / "card") == ()
    for page in PAGES:
        text = (tmp_path / "card" / page).read_text(encoding="utf-8")
        assert "<script" not in text
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert text.count("<!-- end of ") == len(BLOCK.findall(text))
        assert all(line.count("---") != 1 or line.strip("- |") == "" for line in text.splitlines() if line == "---")
    assert header(tmp_path / "card")["license"] == "cc0-1.0"
    read = pl.concat([pl.read_parquet(p) for p in sorted((tmp_path / "card/data/cspace").glob("*.parquet"))])
    assert sorted(read["name"].to_list()) == sorted(rows["name"].to_list())


def test_agreement_and_what_stages_noted_are_told(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    scores = pl.DataFrame({"metric": ["fleiss_kappa", "vs"], "value": [0.61, 3.0], "n": [150, 8], "note": ["a", "b"]})

    def prompts(work: Work) -> Outcome:
        scores.write_parquet(work.out / "scores.parquet")
        pl.DataFrame({"prompt_id": ["p1"], "text": ["An image of X"], "concept": ["art"]}).write_parquet(
            work.out / "prompts.parquet"
        )
        return Outcome(
            {"prompts": 1}, notes={"findings": ["quota not met: art NG 3 of 5"], "agreement": {"alpha": 0.5}}
        )

    finished(tmp_path / "run/prompts", "prompts", {}, prompts)
    built(tmp_path / "run/prompts", write_hand(tmp_path / "hand"), tmp_path / "card")
    assert facts(tmp_path / "card")["agreement"] == [
        {"metric": "fleiss_kappa", "value": 0.61, "n": 150},
        {"stage": "prompts", "note": "agreement", "value": {"alpha": 0.5}},
    ]
    page = (tmp_path / "card/README.md").read_text(encoding="utf-8")
    assert "quota not met: art NG 3 of 5" in page
    assert [config["config_name"] for config in header(tmp_path / "card")["configs"] if config.get("default")] == [  # type: ignore[attr-defined]
        "prompts"
    ]


def test_what_nobody_kept_is_stated_with_its_number_and_reason(tmp_path: Path) -> None:
    pages = ("README.md", "DATASHEET.md", "DATA_CARD.md")
    verdicts = ["keep", *["review"] * (space().height - 1)]
    frame = space().with_columns(verdict=pl.Series(verdicts))
    reasons = {"judge m: refused": 2, "judge m": 1}
    hand = write_hand(tmp_path / "hand")
    built(write_release(tmp_path / "run", frame, notes={"released_under_review": reasons}), hand, tmp_path / "card")
    for page in pages:
        text = (tmp_path / "card" / page).read_text(encoding="utf-8")
        assert "holds 3 artifacts that wait for a person to look at" in text
        assert "| judge m: refused | 2 |" in text
    croissant = orjson.loads((tmp_path / "card/croissant.json").read_bytes())
    assert any("holds 3 artifacts that wait" in text for text in croissant["rai:dataLimitations"])
    assert orjson.loads((tmp_path / "card/facts.json").read_bytes())["counts"]["cspace"]["values"]["verdict"] == {
        "keep": 1, "review": space().height - 1,
    }  # fmt: skip
    built(write_release(tmp_path / "kept", frame.with_columns(verdict=pl.lit("keep"))), hand, tmp_path / "sound")
    assert "Nothing that waits for a person" in (tmp_path / "sound/README.md").read_text(encoding="utf-8")


def test_what_a_killed_build_left_is_not_taken_over(tmp_path: Path, work: Work, one_card: Path) -> None:
    (work.out / "data/cspace").mkdir(parents=True)
    (work.out / "data/cspace/left.parquet").write_bytes(b"half a table")
    build_card(work, write_release(tmp_path / "run"), write_hand(tmp_path / "hand"))
    assert (work.out / "SHA256SUMS").read_bytes() == (one_card / "SHA256SUMS").read_bytes()


def test_other_forms_of_the_tables_are_described(tmp_path: Path) -> None:
    files = {"cspace.jsonl": '{"name": "Feijoada"}\n', "splits/cuisine.csv": "name\nFeijoada\nAcarajé\n"}
    built(write_release(tmp_path / "run", files=files), write_hand(tmp_path / "hand"), tmp_path / "card")
    others = {file["path"]: file.get("rows") for file in facts(tmp_path / "card")["others"]}  # type: ignore[attr-defined]
    assert others == {"files/cspace.jsonl": 1, "files/splits/cuisine.csv": 2}
    assert check_card(tmp_path / "card") == ()
    ids = [node["@id"] for node in orjson.loads((tmp_path / "card/croissant.json").read_bytes())["distribution"]]
    assert "files/splits/cuisine.csv" in ids


@pytest.mark.parametrize(("name", "text", "code"), [
    ("counts.json", '{"feijoada": {"searchInformation": {"totalResults": "120000"}}}', "raw-count"),
    ("popularity.csv", "name,popularity\nFeijoada,120000\n", "raw-count"),
    ("page.txt", "The dish is eaten with rice. " * 8, "long-prose"),
    ("keys.csv", "name,note\nx,sk-proj-abcdEFGH1234ijklMNOP5678\n", "secret"),
])  # fmt: skip
def test_what_may_not_be_published_is_found_in_other_files_too(tmp_path: Path, name: str, text: str, code: str) -> None:
    built(write_release(tmp_path / "run", files={name: text}), write_hand(tmp_path / "hand"), tmp_path / "card")
    assert {finding.code for finding in check_card(tmp_path / "card")} == {code}


def test_a_broken_file_is_a_finding_and_still_searched_for_keys(tmp_path: Path) -> None:
    built(
        write_release(tmp_path / "run", files={"x.csv": "name\nx\n"}), write_hand(tmp_path / "hand"), tmp_path / "card"
    )
    (tmp_path / "card/files/x.csv").write_bytes(b'\xff,b\n"sk-proj-abcdEFGH1234ijklMNOP5678,1,2,3\n')
    assert {finding.code for finding in check_card(tmp_path / "card")} >= {"hash-differs", "secret"}


def test_words_of_a_source_are_found_in_data_and_in_what_people_wrote(tmp_path: Path) -> None:
    words = "Guests bring sweets, and they take their shoes off before they step over the threshold of the house."
    hand = write_hand(tmp_path / "hand", Motivation=words)
    built(write_release(tmp_path / "run", files={"notes.csv": f'note\n"{words}"\n'}), hand, tmp_path / "card")
    (tmp_path / "atlas").mkdir()
    (tmp_path / "atlas/page.html").write_text(f"<html><p>{words}</p></html>", encoding="utf-8")
    assert check_card(tmp_path / "card") == ()
    found = {finding.file for finding in check_card(tmp_path / "card", sources=[tmp_path / "atlas"])}
    assert {"files/notes.csv", "hand/card.md", "README.md"} <= found


def test_a_key_of_the_environment_is_found(card: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "What the tests say")
    assert {finding.code for finding in check_card(card)} == {"secret"}


def test_a_damaged_release_a_link_in_it_and_what_is_no_release_or_card_are_refused(tmp_path: Path) -> None:
    release, hand = write_release(tmp_path / "run"), write_hand(tmp_path / "hand")
    whole = (release / "cspace.parquet").read_bytes()
    pl.read_parquet(release / "cspace.parquet").head(1).write_parquet(release / "cspace.parquet")
    with pytest.raises(IntegrityError):
        built(release, hand, tmp_path / "card")
    (release / "cspace.parquet").write_bytes(whole)
    (release / "more.csv").symlink_to("/etc/passwd")
    with pytest.raises(IntegrityError, match="plain files"):
        built(release, hand, tmp_path / "card")
    with pytest.raises(UsageError):
        built(tmp_path, hand, tmp_path / "card")
    with pytest.raises(UsageError):
        check_card(hand)


def test_all_mistakes_of_the_hand_written_half_are_told_at_once(tmp_path: Path) -> None:
    fields = FIELDS.replace("name: small", "name: ../small").replace("tags:", "tag:").replace("1.0.0", "one")
    with pytest.raises(ConfigError) as error:
        built(write_release(tmp_path / "run"), write_hand(tmp_path / "hand", fields=fields), tmp_path / "card")
    assert len(error.value.problems) == 3


@pytest.mark.parametrize("name", ["cspace", "cube-1k"])
def test_the_cards_of_the_repository_wait_for_their_publisher_only(tmp_path: Path, name: str) -> None:
    built(write_release(tmp_path / "run"), REPOSITORY / "data_cards" / name, tmp_path / "card")
    (finding,) = check_card(tmp_path / "card")
    assert (finding.code, finding.found) == ("hand-empty", "6 fields with nothing, or their marker")
    assert set(finding.expected.split("'")[1::2]) == {
        "published", "creators", "contact", "annotators.who", "annotators.pay", "changelog[0].date",
    }  # fmt: skip


# Each way to spoil a sound card is found; so many of them, the first, `mlcroissant validate` accepts.

ACCEPTED_BY_OTHERS = 11

CUISINE, LANDMARKS = "data/cspace/cuisine.parquet", "data/cspace/landmarks.parquet"
PASSAGE = (
    "Zuma Rock is a large natural monolith that rises beside the road from Abuja to Kaduna, and travellers who "
    "come from the south see it long before they reach the town at its foot."
)
Corruption = Callable[[Path], object]


def sign(card: Path) -> None:
    """Make the checksums right again, as somebody would who wants to hide what was done."""
    names = [line[66:] for line in (card / "SHA256SUMS").read_text().splitlines()]
    lines = [f"{hashlib.sha256((card / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (card / "SHA256SUMS").write_text("".join(lines))


def described(change: Callable[[dict[str, Any]], object]) -> Corruption:
    def corrupt(card: Path) -> None:
        value = orjson.loads((card / CROISSANT).read_bytes())
        change(value)
        (card / CROISSANT).write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
        sign(card)

    return corrupt


def edited(name: str, pattern: str, new: str) -> Corruption:
    def corrupt(card: Path) -> None:
        text, count = re.subn(pattern, new, (card / name).read_text(encoding="utf-8"), count=1)
        assert count == 1
        (card / name).write_text(text, encoding="utf-8")
        sign(card)

    return corrupt


def changed(change: Callable[[pl.DataFrame], pl.DataFrame], *names: str) -> Corruption:
    def corrupt(card: Path) -> None:
        for name in names:
            change(pl.read_parquet(card / name)).write_parquet(card / name)
        sign(card)

    return corrupt


def linked(name: str) -> Corruption:
    """Move something out of the card, and leave a link to it."""

    def corrupt(card: Path) -> None:
        (card / name).rename(card.parent / "elsewhere")
        (card / name).symlink_to(card.parent / "elsewhere")

    return corrupt


def added(name: str, line: str) -> Corruption:
    def corrupt(card: Path) -> None:
        with (card / name).open("a", encoding="utf-8") as file:
            file.write(line)

    return corrupt


def removed(name: str) -> Corruption:
    return lambda card: (card / name).unlink()


def flipped_bit(card: Path) -> None:
    content = bytearray((card / LANDMARKS).read_bytes())
    content[len(content) // 2] ^= 1
    (card / LANDMARKS).write_bytes(content)


def column(value: dict[str, Any], name: str) -> Any:
    return next(field for field in value["recordSet"][0]["field"] if field["name"] == name)


def first_file(**stated: str) -> Corruption:
    return described(lambda value: value["distribution"][0].update(stated))


CORRUPTIONS: dict[str, tuple[Corruption, str]] = {
    "a column that the table lacks": (
        described(lambda v: column(v, "name")["source"]["extract"].update(column="title")), "croissant-column"),
    "a column of another type": (
        described(lambda v: column(v, "popularity").update(dataType="sc:Integer")), "croissant-type"),
    "a wrong hash": (first_file(sha256="0" * 64), "hash-differs"),
    "a file that is not there": (removed(CUISINE), "file-missing"),
    "a described file that is not there": (first_file(contentUrl="data/cspace/more.parquet"), "file-missing"),
    "a path upwards": (first_file(contentUrl="../cspace/cuisine.parquet"), "path-leaves"),
    "a path from the root": (first_file(contentUrl="/etc/passwd"), "path-leaves"),
    "a pattern upwards": (described(lambda v: v["distribution"][3].update(includes="../*/*.parquet")), "path-leaves"),
    "a record set less": (described(lambda v: v["recordSet"].pop(0)), "croissant-column"),
    "a size": (first_file(contentSize="1 B"), "size-differs"),
    "a licence": (described(lambda v: v.update(license="MIT")), "croissant-differs"),
    "a list that is said to be none": (described(lambda v: column(v, "path").update(isArray=False)), "croissant-type"),
    "a number in a generated block": (edited("README.md", r"\| `cspace` \| 4 \|", "| `cspace` | 5 |"), "block-edited"),
    "a block taken out": (edited("DATASHEET.md", r"<!-- generated: drops -->", "<!-- drops -->"), "block-edited"),
    "a sentence around the blocks": (
        edited("DATA_CARD.md", r"What the tests say about motivation\.", "The best data."), "page-edited"),
    "a path in the header": (edited("README.md", r"path: data/cspace", "path: ../cspace"), "path-leaves"),
    "a header that is no YAML": (edited("README.md", r"path: data/cspace", "path: [data/cspace"), "page-edited"),
    "a hand-written field made empty": (edited("hand/card.yaml", r"tests@example.org", '""'), "hand-empty"),
    "a hand-written section marked": (
        edited("hand/card.md", r"What the tests say about known biases", "FILL IN"), "hand-empty"),
    "a hand-written file that is no YAML": (
        edited("hand/card.yaml", r"name: small", "name: [small"), "hand-unreadable"),
    "a count in facts.json": (edited("facts.json", r'"NG": 2', '"NG": 3'), "count-differs"),
    "a count of the manifest": (edited("manifest.json", r'"cspace": 4', '"cspace": 5'), "count-differs"),
    "rows taken out": (changed(lambda frame: frame.head(2), CUISINE), "count-differs"),
    "a column renamed": (changed(lambda frame: frame.rename({"name": "label"}), CUISINE), "table-unreadable"),
    "a flipped bit": (flipped_bit, "hash-differs"),
    "a file more": (added("notes.txt", "mine"), "file-extra"),
    "a table more": (lambda card: shutil.copy(card / CUISINE, card / "data/cspace/zz.parquet"), "file-extra"),
    "a link to a file outside": (linked(CUISINE), "link"),
    "a link to a folder outside": (linked("data/cspace"), "link"),
    "a checksum of a file above": (added("SHA256SUMS", f"{'0' * 64}  ../secret\n"), "path-leaves"),
    "a line that is no checksum": (added("SHA256SUMS", "all is well\n"), "sums-unreadable"),
    "no checksums": (removed("SHA256SUMS"), "file-missing"),
    "no page": (removed("DATASHEET.md"), "file-missing"),
    "no description": (removed(CROISSANT), "file-missing"),
    "a description that is no JSON": (lambda card: (card / CROISSANT).write_text("{"), "croissant-unreadable"),
    "a description that is a list": (lambda card: (card / CROISSANT).write_text("[]"), "croissant-unreadable"),
    "a broken manifest": (
        lambda card: next((card / "manifests").glob("02-*/manifest.json")).write_text("{"), "manifest-unreadable"),
    "counts of search results": (
        changed(lambda frame: frame.with_columns(totalResults=pl.lit(123_000)), CUISINE, LANDMARKS), "raw-count"),
    "a long passage": (changed(lambda frame: frame.with_columns(subconcept=pl.lit(PASSAGE)), LANDMARKS), "long-prose"),
    "a key": (edited("hand/card.md", "What the tests say", "sk-proj-abcdEFGH1234ijklMNOP5678 says"), "secret"),
}  # fmt: skip


def test_a_sound_card_has_no_findings_and_nothing_is_read_through_a_link(card: Path) -> None:
    assert check_card(card) == ()
    (card / "data/cspace/endless.parquet").symlink_to("/dev/zero")
    assert {finding.code for finding in check_card(card)} == {"link"}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_is_found(card: Path, name: str) -> None:
    corrupt, code = CORRUPTIONS[name]
    corrupt(card)
    findings = check_card(card)
    assert code in {finding.code for finding in findings}, findings
    assert exit_code(findings) == (4 if any(CODES[finding.code].damage for finding in findings) else 1)
    missing = [finding.file for finding in findings if finding.code == "file-missing" and finding.file != CROISSANT]
    assert len(missing) == len(set(missing)), "one thing is told once"
    assert all(finding.fix and finding.expected and finding.found and finding.file for finding in findings)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """List every container with a key or index that something else can be put at."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found


@settings(suppress_health_check=SHARED_FIXTURE, max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_any_other_value_anywhere_is_a_finding(one_card: Path, data: st.DataObject) -> None:
    expected = orjson.loads(orjson.dumps(croissant_of(read_hand(one_card / "hand"), facts_of(one_card))))
    described = orjson.loads(orjson.dumps(expected))
    node, key = data.draw(st.sampled_from(places(described)))
    before = node[key]
    node[key] = data.draw(JSON)
    found = list(json_findings(CROISSANT, expected, described))
    assert bool(found) == (orjson.dumps(node[key]) != orjson.dumps(before))


def test_types_are_those_of_the_tables(one_card: Path) -> None:
    described = orjson.loads((one_card / "croissant.json").read_bytes())
    fields = {field["name"]: field for field in described["recordSet"][0]["field"]}
    schema = pl.read_parquet_schema(one_card / "data/cspace/cuisine.parquet")
    assert list(fields) == list(schema)
    assert fields["popularity"]["dataType"] == "cr:Float64"
    assert (fields["path"]["dataType"], fields["path"]["isArray"]) == ("sc:Text", True)
    assert described["conformsTo"][0] == "http://mlcommons.org/croissant/1.1"
    assert described["rai:dataCollectionTimeFrame"] == ["2026-11-02"]


def test_a_card_can_be_planned_before_its_release_is_there(tmp_path: Path) -> None:
    stage = card_stage(tmp_path / "later", tmp_path / "hand")
    assert set(stage.inputs) == {"release", "fields", "text", "stages"}


def culturekit(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_card_is_built_and_checked(tmp_path: Path) -> None:
    release, hand = write_release(tmp_path / "run"), write_hand(tmp_path / "hand")
    out = tmp_path / "card"
    done = culturekit("card", "build", release, "--hand", hand, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["counts"]["cspace"] == 4
    assert not (out / "run.json").exists()
    assert culturekit("card", "check", out).exit_code == 0
    again = culturekit("card", "build", release, "--hand", hand, "--out", out, "--json")
    assert json.loads(again.stdout)["state"] == "reused"
    with (out / "README.md").open("a", encoding="utf-8") as file:
        file.write("More.\n")
    answer = culturekit("card", "check", out, "--json")
    assert answer.exit_code == 1
    found = json.loads(answer.stdout)
    assert {finding["code"] for finding in found} == {"page-edited", "file-changed"}
    assert {"file", "code", "expected", "found", "fix"} <= set(found[0])
    (out / "data/cspace/cuisine.parquet").unlink()
    answer = culturekit("card", "check", out)
    assert answer.exit_code == 4, "damage is worse than a difference"
    assert "data/cspace/cuisine.parquet: file-missing: expected a file" in answer.stdout


def test_a_changed_hand_gives_another_card(tmp_path: Path) -> None:
    release, hand = write_release(tmp_path / "run"), write_hand(tmp_path / "hand")
    words = ("card", "build", release, "--hand", hand, "--out", tmp_path / "card", "--json")
    assert culturekit(*words).exit_code == 0
    text = (hand / TEXT_FILE).read_text().replace("What the tests say about motivation.", "Another reason.")
    (hand / TEXT_FILE).write_text(text)
    answer = culturekit("card", "check", tmp_path / "card", "--hand", hand, "--json")
    assert (answer.exit_code, [found["code"] for found in json.loads(answer.stdout)]) == (1, ["hand-changed"])
    assert isinstance(culturekit(*words).exception, UsageError)
    assert json.loads(culturekit(*words, "--replace").stdout)["state"] == "built"
    assert "Another reason." in (tmp_path / "card/README.md").read_text()


def test_a_begun_hand_is_read_and_empty_throughout(tmp_path: Path) -> None:
    done = culturekit("card", "init", tmp_path / "hand", "--name", "mine")
    assert done.exit_code == 0, done.output
    empty = {name for _, name in empty_fields(read_hand(tmp_path / "hand"), dump_dated=True)}
    assert {"contact", "annotators.pay", "licence.id", *SECTIONS} <= empty
    built = culturekit(
        "card", "build", write_release(tmp_path / "run"), "--hand", tmp_path / "hand", "--out", tmp_path / "card"
    )
    assert built.exit_code == 0
    assert "to fill in: card.yaml: title" in built.stderr
    assert culturekit("card", "check", tmp_path / "card").exit_code == 1
    assert isinstance(culturekit("card", "init", tmp_path / "hand", "--name", "mine").exception, UsageError)


@pytest.mark.parametrize("name", [FIELDS_FILE, TEXT_FILE])
def test_a_missing_half_is_the_users_mistake(tmp_path: Path, name: str) -> None:
    hand = write_hand(tmp_path / "hand")
    (hand / name).unlink()
    done = culturekit("card", "build", write_release(tmp_path / "run"), "--hand", hand, "--out", tmp_path / "card")
    assert isinstance(done.exception, UsageError)
