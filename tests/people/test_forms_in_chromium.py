"""Forms as people use them in browsers: by keyboard from a disk, served beside a run, and groups of candidates."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.core.choices import MONK_SWATCHES
from culturekit.core.schemas import DECISIONS, KEPT, SPACE_CHECK, SPACE_SAMPLE
from culturekit.core.tables import read_table
from culturekit.people.aggregate import AggregateOptions
from culturekit.people.answers import answers_in
from culturekit.people.stages import AggregateFiles, ExportFiles, aggregate_stage
from tests.chromium import Tab, needs_chromium, somebody
from tests.command_line import culturekit
from tests.conftest import SMALL
from tests.llm.server.running import server_process
from tests.people import projects
from tests.people.projects import key_of, right_answer
from tests.people.reviewed_world import WRONG, decide_in_browser, decision_on, replicated
from tests.people.reviewed_world import truth_of as known_truth
from tests.people.test_audit_scheme import audited
from tests.people.test_space_review import fill_in
from tests.recipes.cube.test_served_audit import truth_of

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_chromium]

HOSTILE = (
    "<script>document.title='pwned'</script>", '"><img src=x onerror="document.title=\'pwned\'">',
    "</script><script>document.title='pwned'</script>", "<!--<script>", "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp; $prompt", "ميدان التحرير 広場",
)  # fmt: skip

# Worked out by hand: faithfulness of a is the mean of 4.5 and 2 (only one answered, the other said no), of b 1.5;
# realism of a the mean of 4 and 1.5, of b of 5 and 2.5; yes of a is the mean of 1 and 0, of b of 1 and 0
ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    # image: what annotators 1 and 2 answer: belongs, faithfulness, realism
    "a-0": [("yes", 5, 4), ("yes", 4, 4)],
    "a-1": [("no", None, 1), ("maybe", 2, 2)],
    "b-0": [("yes", 1, 5), ("yes", 2, 5)],
    "b-1": [("no", None, 3), ("no", None, 2)],
}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Tab]:
    (tmp_path / "saved").mkdir()
    with somebody(tmp_path / "saved") as opened:
        yield opened


def project(tmp_path: Path, text: str = "Image of food from India") -> Path:
    projects.export(
        tmp_path / "project", projects.pictured(tmp_path, [f"{m}-{n}" for m in "ab" for n in range(2)], text=text)
    )
    return tmp_path / "project"


def focused(page: Tab) -> dict[str, Any]:
    found: dict[str, Any] = page.run(
        "(({tagName, id, name, value, type}) => ({tagName, id, name, value, type}))(document.activeElement)"
    )
    return found


def tab_to(page: Tab, **wanted: str) -> None:
    """Go on with the Tab key until something has the focus."""
    for _ in range(40):
        page.press("Tab")
        here = focused(page)
        if all(here[name] == value for name, value in wanted.items()):
            return
    raise AssertionError(f"the keyboard does not reach {wanted}")


def choose(page: Tab, name: str, value: str) -> None:
    """Go to a question, and along its options to a value."""
    tab_to(page, name=name)
    for _ in range(10):
        page.press(" ")
        if focused(page)["value"] == value:
            return
        page.press("ArrowDown")
        if focused(page)["value"] == value:
            return
    raise AssertionError(f"{name} has no {value}")


def start(page: Tab, folder: Path, annotator: str, sheet: str) -> None:
    page.go(
        (folder / "hand-out/form.html").as_uri() + f"?sheet={sheet}&PROLIFIC_PID={annotator}&STUDY_ID=s&SESSION_ID=t"
    )
    tab_to(page, id="sheet")
    page.press("Tab")
    page.press("Enter", text="\r")


def fill(page: Tab, folder: Path, person: int) -> None:
    """Answer every task of the open sheet by keyboard, as the table above says; checks as they ask."""
    key = projects.key_of(folder)
    count = page.run("Number(document.getElementById('heading').textContent.split(' ').at(-1))")
    sheet = page.run("document.getElementById('sheet').value")
    content = projects.form_tasks(folder)
    tasks = next(one["tasks"] for one in content["sheets"] if one["name"] == sheet)
    assert count == len(tasks)
    for number in tasks:
        row = key[content["tasks"][number]["task"]]
        answers: tuple[Any, ...] = ANSWERS[row["item_id"]][person]
        if row["kind"] == "check":
            asked = orjson.loads(row["expected"])
            answers = (asked["belongs"], asked.get("faithfulness"), asked["realism"])
        belongs, faithfulness, realism = answers
        choose(page, "belongs", belongs)
        if faithfulness is not None:
            choose(page, "faithfulness", str(faithfulness))
        choose(page, "realism", str(realism))
        if int(realism) <= 3:
            tab_to(page, id="text-realism_comment")
            page.type("melting")
        tab_to(page, id="next")
        page.press("Enter", text="\r")


def saved(page: Tab, folder: Path, name: str) -> Path:
    """Save the answers by keyboard, and find the file."""
    tab_to(page, id="save")
    page.press("Enter", text="\r")
    page.until("document.getElementById('saved').textContent.startsWith('Saved')")
    for _ in range(200):
        found = [path for path in folder.glob("*.json") if name in path.name]
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError("no file was saved")


def test_filled_by_keyboard_saved_taken_in_and_put_together(tmp_path: Path, page: Tab) -> None:
    folder = project(tmp_path)
    files = []
    for person, annotator in enumerate(("ana", "bo")):
        start(page, folder, annotator, f"IN-in-3-01-{person + 1}")
        fill(page, folder, person)
        files.append(saved(page, tmp_path / "saved", annotator))
    assert page.said == []
    assert {address.partition(":")[0] for address in page.asked} <= {"blob"}
    taken = projects.import_files(tmp_path / "rated", folder, *files)
    assert taken.manifest.counts["quarantine"] == 0
    annotations = pl.read_parquet(tmp_path / "rated/annotations.parquet")
    assert annotations["annotator"].unique().sort().to_list() == ["ana", "bo"]
    assert annotations.filter(criterion="realism", item_id="a-1")["text"].to_list() == ["melting", "melting"]
    assert "recruitment:prolific" in annotations["flags"][0]
    projects.run(
        aggregate_stage(AggregateFiles(tmp_path / "rated/annotations.parquet"), AggregateOptions(keep=("too-fast",))),
        tmp_path / "people",
    )
    ratings = pl.read_parquet(tmp_path / "people/rating_table.parquet").filter(concept="cuisine")
    means = {(row["criterion"], row["model"]): (row["mean"], row["mark"]) for row in ratings.iter_rows(named=True)}
    assert means == {
        ("faithfulness", "a"): (3.25, None),
        ("faithfulness", "b"): (1.5, "below 2"),
        ("realism", "a"): (2.75, "below 3"),
        ("realism", "b"): (3.75, None),
    }
    choices = pl.read_parquet(tmp_path / "people/choice_table.parquet").filter(concept="cuisine", choice="yes")
    assert choices["rate"].to_list() == [0.5, 0.5]


def test_answers_outlive_a_closed_page_and_what_is_not_asked_is_forgotten(tmp_path: Path, page: Tab) -> None:
    folder = project(tmp_path)
    start(page, folder, "ana", "IN-in-3-01-1")
    choose(page, "belongs", "yes")
    choose(page, "faithfulness", "4")
    start(page, folder, "ana", "IN-in-3-01-1")
    ticked = "[...document.querySelectorAll('#questions input:checked')].map((box) => box.value)"
    assert page.run(ticked) == ["yes", "4"]
    page.run("document.querySelector('input[value=no]').click()")
    assert page.run("document.querySelector('[data-question=faithfulness]').hidden")
    page.run("document.querySelector('input[name=realism][value=\"5\"]').click()")
    tab_to(page, id="next")
    page.press("Enter", text="\r")
    assert page.run("document.getElementById('heading').textContent").startswith("2 of")
    kept = page.run("JSON.parse(Object.values(localStorage).at(-1))")
    assert next(iter(kept["answers"].values()))["belongs"] == "no"


def test_a_missing_answer_is_asked_for_and_gets_the_focus(tmp_path: Path, page: Tab) -> None:
    start(page, project(tmp_path), "ana", "IN-in-3-01-1")
    tab_to(page, id="next")
    page.press("Enter", text="\r")
    assert page.run("document.getElementById('problem').textContent") == "2 answers are still missing."
    assert focused(page)["name"] == "belongs"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown_and_do_nothing(tmp_path: Path, page: Tab, text: str) -> None:
    start(page, project(tmp_path, text), "ana", "IN-in-3-01-1")
    for _ in range(8):
        page.run("document.querySelector('input[value=yes]').click()")
        shown = page.run("document.querySelector('.shown').lastChild.textContent")
        assert shown == text
        page.run("document.querySelector('input[name=faithfulness]').click()")
        page.run("document.querySelector('input[name=realism][value=\"5\"]').click()")
        page.run("document.getElementById('next').click()")
        if page.run("document.getElementById('work').hidden"):
            break
    assert page.run("document.title") == "Does this picture show something of your country?"
    assert page.said == []


def test_the_policy_alone_stops_a_script_that_escaping_missed(tmp_path: Path, page: Tab) -> None:
    """The positive control: without the policy the same page runs it."""
    form = project(tmp_path) / "hand-out/form.html"
    hurt = form.read_text(encoding="utf-8").replace("</main>", f"{HOSTILE[0]}</main>")
    form.write_text(hurt, encoding="utf-8")
    page.go(form.as_uri())
    assert page.run("document.title") != "pwned"
    assert any("Content Security Policy" in line for line in page.said)
    start_of_policy = hurt.index('<meta http-equiv="Content-Security-Policy"')
    form.write_text(hurt[:start_of_policy] + hurt[hurt.index(">", start_of_policy) + 1 :], encoding="utf-8")
    page.go(form.as_uri())
    assert page.run("document.title") == "pwned"


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844), (360, 700)])
@pytest.mark.parametrize("scheme", ["cube", "c3_images", "linguistic_dialect"])
def test_next_and_picture_are_always_in_view(tmp_path: Path, page: Tab, scheme: str, width: int, height: int) -> None:
    images = projects.write_images(tmp_path / "images", [projects.image_row(f"m-{n}", "m", "p") for n in range(2)])
    prompts = projects.write_prompts(
        tmp_path / "prompts", [projects.prompt_row("p", "Image of food from India", "cuisine", "IN")]
    )
    projects.export(tmp_path / "project", ExportFiles([images], prompts), scheme)
    page.look(width=width, height=height)
    page.go((tmp_path / "project/hand-out/form.html").as_uri())
    begins = page.run("document.querySelector('#begin button').getBoundingClientRect().bottom")
    assert begins <= height
    page.run("document.getElementById('annotator').value = 'ana'")
    page.run("document.getElementById('sheet').selectedIndex = 1")
    page.run("document.querySelector('#begin button').click()")
    assert "that check whether you read along" in page.run("document.getElementById('about').textContent")
    for name in ("belongs", "correct"):
        page.run(f"document.querySelector('input[name={name}][value=yes]')?.click()")
    rect = "document.querySelector('{}').getBoundingClientRect().toJSON()"
    for scrolled in (0, 300, 100_000):
        page.run(f"scrollTo(0, {scrolled})")
        below, picture = page.run(rect.format("#next")), page.run(rect.format("#pictures img"))
        assert (below["top"] >= 0, below["bottom"] <= height) == (True, True)
        assert (picture["top"] >= 0, picture["bottom"] <= height) == (True, True)
    assert page.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_tones_are_colours_under_the_policy_of_the_page(tmp_path: Path, page: Tab) -> None:
    images = projects.write_images(tmp_path / "images", [projects.image_row("m-0", "m", "p")])
    prompts = projects.write_prompts(
        tmp_path / "prompts", [projects.prompt_row("p", "a man driving his whip", "cuisine", None)]
    )
    projects.export(tmp_path / "project", ExportFiles([images], prompts), "linguistic_dialect", checks=0)
    start(page, tmp_path / "project", "ana", "anywhere-any-3-01-1")
    shown = page.run("[...document.querySelectorAll('.swatches i')].map((i) => getComputedStyle(i).backgroundColor)")
    assert shown == [f"rgb({', '.join(str(byte) for byte in bytes.fromhex(swatch))})" for swatch in MONK_SWATCHES]
    assert page.run("getComputedStyle(document.querySelector('.swatches')).backgroundColor") == "rgb(128, 128, 128)"
    assert "night light" in page.run("document.querySelector('.screen').textContent")
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
    page.run("document.getElementById('back').disabled = false")
    start(page, tmp_path / "project", "ana", "anywhere-any-3-01-1")
    assert "changes colours" in page.run("document.querySelector('.screen').textContent")
    assert page.said == []


def test_the_list_of_artifacts_is_there_at_once_and_can_be_searched(tmp_path: Path, page: Tab) -> None:
    files = audited(tmp_path)
    projects.export(tmp_path / "project", files, "audit", checks=0, repeats=0, shortlist=30)
    page.look(width=390, height=844)
    page.go((tmp_path / "project/hand-out/form.html").as_uri())
    page.run("document.getElementById('annotator').value = 'ana'")
    page.run("document.getElementById('sheet').selectedIndex = 1")
    page.run("document.querySelector('#begin button').click()")
    found = page.run("document.querySelector('[data-question=artifact] .filter').getBoundingClientRect().toJSON()")
    assert found["bottom"] < page.run("document.querySelector('.foot').getBoundingClientRect().top")
    page.run("document.querySelector('[data-question=artifact] .filter').focus()")
    page.type("dish 0, of japan")
    left = page.run(
        "[...document.querySelectorAll('[data-question=artifact] label')].filter((one) => !one.hidden).length"
    )
    assert left <= 1
    page.run("document.querySelector('[data-question=artifact] label input').click()")
    assert page.run("document.querySelector('input[name=shows]:checked').value") == "artifact"
    page.run("document.querySelector('input[name=shows][value=none]').click()")
    assert page.run("document.querySelectorAll('[data-question=artifact] input:checked').length") == 0
    page.run("document.getElementById('next').click()")
    assert page.run("document.getElementById('heading').textContent").startswith("2 of")


def test_every_control_has_a_name(tmp_path: Path, page: Tab) -> None:
    start(page, project(tmp_path), "ana", "IN-in-3-01-1")
    page.ask("Accessibility.enable")
    nodes = page.ask("Accessibility.getFullAXTree")["nodes"]
    controls = {"radio", "checkbox", "textbox", "button", "combobox", "image", "progressbar"}
    unnamed = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in controls and not node.get("name", {}).get("value")
    ]
    assert unnamed == []


# People look at a picture for five seconds; these do not
UNHURRIED = "{ const now = Date.now; let looks = 0; Date.now = () => now() + 5000 * ++looks; }"

RECIPE = (SMALL, "--set", "images.repeats=5")
AUDIT = ("--images", "40", "--people", "1")


@contextmanager
def served(run: Path, *more: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run the command, and give it with the address that it prints."""
    words = [sys.executable, "-m", "culturekit", "annotate", "serve", str(run), *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def person_at(tmp_path: Path, name: str) -> Iterator[Tab]:
    (tmp_path / name).mkdir()
    with somebody(tmp_path / name) as page:
        page.ask("Page.addScriptToEvaluateOnNewDocument", source=UNHURRIED)
        yield page


def heading(page: Tab) -> str:
    return str(page.run("document.getElementById('heading').textContent"))


def text_of(page: Tab, part: str) -> str:
    return str(page.run(f"document.getElementById('{part}').textContent"))


def begin(page: Tab, address: str, name: str) -> None:
    """Open the address, type a name, and press Enter."""
    page.go(address)
    page.run("document.getElementById('annotator').focus()")
    page.type(name)
    page.press("Enter", text="\r")
    page.until("document.getElementById('start').hidden")


def choose_truly(page: Tab, run: Path, truth: dict[str, Any]) -> str:
    """Answer what is shown as it truly is, or as a check asks, and give the task."""
    shown = page.run("document.querySelector('#pictures img').getAttribute('src')").removeprefix("pictures/")
    stated = text_of(page, "note")
    rows = [row for row in key_of(run / "to-audit").values() if shown in row["files"]]
    row = next(row for row in rows if (row["kind"] == "check") == bool(stated))
    for value in right_answer(row, truth).values():
        page.run(f"document.querySelector('fieldset:not([hidden]) input[value=\"{value}\"]').click()")
    return str(row["task"])


def go_on(page: Tab) -> None:
    """Press Next, and wait until the next picture, or the end, or a problem is there."""
    before = heading(page)
    page.run("document.getElementById('next').click()")
    page.until(
        f"document.getElementById('heading').textContent !== {before!r} || !document.getElementById('end').hidden"
        " || document.getElementById('problem').textContent"
    )


def finish(page: Tab, run: Path, truth: dict[str, Any]) -> None:
    while not page.run("document.getElementById('more').hidden"):
        while page.run("document.getElementById('end').hidden"):
            choose_truly(page, run, truth)
            go_on(page)
        page.run("document.getElementById('more').click()")
        page.until("!document.getElementById('work').hidden || document.getElementById('more').hidden")


def test_three_commands_two_people_and_a_killed_server(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert culturekit("run", *RECIPE, "--workdir", run).returncode == 0
    truth, journal = truth_of(run), run / "to-audit/journal/answers.jsonl"
    with person_at(tmp_path, "ana") as ana, person_at(tmp_path, "bo") as bo:
        with served(run, *AUDIT) as (process, address):
            begin(ana, address, "Ana")
            begin(bo, address, "Bo")
            for page in (ana, ana, bo):
                choose_truly(page, run, truth)
                go_on(page)
            assert (heading(ana)[0], heading(bo)[0]) == ("3", "2")
            assert {person for person, _ in answers_in(journal)} == {"Ana", "Bo"}
            assert text_of(bo, "together").startswith("3 of ")
            assert (ana.said, bo.said) == ([], [])
            icon = address.replace(address.split("/", 3)[3], "favicon.ico")
            assert [url for url in ana.asked + bo.asked if not url.startswith(address) and url != icon] == []
            bo.go(address.replace(address.split("/")[3], "guessed"))
            assert "Open the address that" in bo.run("document.body.textContent")
            assert bo.run("document.querySelectorAll('form, img').length") == 0
            bo.ask("Page.navigate", url=address.replace("127.0.0.1", "127.0.0.2"))
            bo.until("location.protocol === 'chrome-error:'")
            process.kill()
            process.wait()
            lost = choose_truly(ana, run, truth)
            go_on(ana)
            assert text_of(ana, "problem").startswith("The server does not answer")
        assert ("Ana", lost) not in answers_in(journal)
        with served(run, *AUDIT) as (process, address):
            begin(ana, address, "ana")
            assert heading(ana)[0] == "3"
            assert text_of(ana, "together").startswith("3 of ")
            ana.run("document.getElementById('back').click()")
            ana.until("document.getElementById('heading').textContent.startsWith('2')")
            assert ana.run("document.querySelectorAll('#questions input:checked').length") >= 1
            begin(bo, address, "Bo")
            finish(bo, run, truth)
            begin(ana, address, "Ana")
            finish(ana, run, truth)
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
            assert process.stdout is not None
            wanted = sum(1 for row in key_of(run / "to-audit").values())
            assert process.stdout.read().strip() == f"{wanted} of {wanted} answers by 2 people"
    done = culturekit("run", *RECIPE, "--workdir", run)
    assert done.returncode == 0, done.stderr
    scores = pl.read_parquet(run / "scores/scores.parquet")
    corrected = scores.filter(pl.col("params").str.json_path_match("$.labels") == "corrected", metric="vs")
    assert set(corrected["model"]) == {"broad", "empty", "narrow"}
    assert "corrected" in (run / "report/report.html").read_text(encoding="utf-8")
    assert culturekit("verify", run).returncode == 0


ROOTS = [word for concept in ("art", "cuisine", "landmarks") for word in ("--roots", concept)]


def test_three_people_decide_groups_a_killed_server_keeps_answers_and_the_card_has_the_dialled_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    culturekit("run", "cube-release", "--workdir", "run")
    candidates = replicated(Path("run/candidates/candidates.parquet"), 3000, tmp_path)
    table = known_truth(candidates)
    truth = {(name, iso): known for name, iso, known in table.select("label", "place", "truth").iter_rows()}
    with server_process(model="tests.people.reviewed_world:answer") as server:
        judge = f"openai:judge-1?base_url={server.openai_url}&price=0.15/0.60"
        assert culturekit("cspace", "filter", "--candidates", candidates, *ROOTS, "--llm", judge, "--out", "kept",
                          "--concurrency", "8").returncode == 0  # fmt: skip
    waits = read_table(Path("kept/kept.parquet"), KEPT).filter(verdict="review").height
    assert 200 < waits < 400
    done = culturekit("cspace", "review", "export", "--kept", "kept/kept.parquet", "--groups", "--first", "popularity",
                      "--graph", "run/graph", "--out", "groups")  # fmt: skip
    assert done.returncode == 0, done.stderr
    journal, decided = Path("groups/journal/answers.jsonl"), Counter[str]()

    def decide(shown: str) -> str:
        decided[word := decision_on(shown, truth)] += 1
        return word

    people = []
    for name in ("Ada", "Bo", "Cy"):
        (tmp_path / name).mkdir()
    with somebody(tmp_path / "Ada") as ada, somebody(tmp_path / "Bo") as bo, somebody(tmp_path / "Cy") as cy:
        with served(Path("groups")) as (process, address):
            for page, name in ((ada, "Ada"), (bo, "Bo"), (cy, "Cy")):
                people.append(decide_in_browser(page, address, name, decide, most=3))
            process.kill()
            process.wait()
        assert len(answers_in(journal)) == sum(people)
        with served(Path("groups")) as (process, address):
            for page, name in ((ada, "Ada"), (bo, "Bo"), (cy, "Cy")):
                people.append(decide_in_browser(page, address, name, decide, most=1000))
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
    assert len(answers_in(journal)) == decided.total() == sum(people)
    assert set(decided) >= {"accept", "reject"}
    done = culturekit("cspace", "review", "import", journal, "--project", "groups", "--kept", "kept/kept.parquet",
                      "--out", "reviewed")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert read_table(Path("reviewed/decisions.parquet"), DECISIONS)["comment"].str.contains("in a group of").all()

    assert culturekit("cspace", "check", "sample", "--kept", "reviewed/kept.parquet", "--removed",
                      "kept/removed.parquet", "--out", "to-check").returncode == 0  # fmt: skip
    drawn = read_table(Path("to-check/space_sample.parquet"), SPACE_SAMPLE)
    known = {" ".join(key): word for *key, word in table.select("concept", "qid", "country", "truth").iter_rows()}
    units = map(" ".join, drawn.select("concept", "qid", "country").iter_rows())
    answers = {unit: "accept" if known[unit] else "reject" for unit in units}
    fill_in(Path("to-check"), answers, ["Dan", "Eve"])
    done = culturekit("cspace", "check", "score", "--project", "to-check", "--out", "checked")
    assert done.stdout.count("wrong keeps: ") == 1, done.stderr
    found = read_table(Path("checked/space_check.parquet"), SPACE_CHECK)
    for verdict, share in WRONG.items():
        nowhere = pl.col("concept").is_null() & pl.col("country").is_null()
        (row,) = found.filter(nowhere, measure=f"wrong {verdict}s").to_dicts()
        assert row["ci_low"] - 0.03 < share < row["ci_high"] + 0.03
    culturekit("cspace", "release", "--kept", "reviewed/kept.parquet", *ROOTS, "--checked",
               "checked/space_check.parquet", "--out", "cspace")  # fmt: skip
    culturekit("card", "init", "hand", "--name", "mine")
    assert culturekit("card", "build", "cspace", "--hand", "hand", "--out", "card").returncode == 0
    assert "| wrong keeps | all |" in Path("card/README.md").read_text(encoding="utf-8")
