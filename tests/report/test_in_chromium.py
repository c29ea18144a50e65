"""The report in a real browser: it opens from file:// without a complaint and without asking for anything."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from culturekit.report.write import print_page, render
from tests.chromium import Browser, Tab, browser, needs_chromium
from tests.report.hostile import ELEMENTS, ELSEWHERE, hostile_texts
from tests.report.pages import HOSTILE, audited_page, figure, full_page, hostile_page, page, with_text
from tests.report.test_report import section_page

pytestmark = [pytest.mark.endtoend, pytest.mark.browser, needs_chromium]

AXE = "CULTUREKIT_AXE"  # Names the file axe.min.js of the npm package axe-core

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d76360606000000004000127340a710000000049454e44ae426082"
)

SHAPE = """[...new Set([...document.querySelectorAll('*')].flatMap(
    (one) => [one.tagName, ...[...one.attributes].map((each) => `${one.tagName} ${each.name}`)]))]"""

TOUCH = """(() => {
    for (const one of document.querySelectorAll('details')) one.open = true;
    for (const one of document.querySelectorAll('*'))
        for (const name of ['mouseover', 'focus', 'toggle', 'load']) one.dispatchEvent(new Event(name));
    for (const select of document.querySelectorAll('select')) {
        select.selectedIndex = select.options.length - 1;
        select.dispatchEvent(new Event('change', {bubbles: true}));
        select.selectedIndex = 0;
        select.dispatchEvent(new Event('change', {bubbles: true}));
    }
})()"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def tab(chromium: Browser) -> Tab:
    return chromium.tab()


def written(folder: Path, text: str) -> Path:
    (folder / "thumbnails").mkdir(exist_ok=True)
    for name in ("mirage-1.png", "atlas-1.png", "reference.png"):
        (folder / "thumbnails" / name).write_bytes(PICTURE)
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


def check_inert(tab: Tab, folder: Path, text: str, allowed: set[str], *, whole: str = "") -> None:
    """Open a page with the text in every field, touch everything, and see that nothing happened."""
    tab.open(written(folder, whole or render(hostile_page(text))))
    tab.run(TOUCH)
    beginning = repr(text[:80])
    assert tab.run("window.pwned") is None, beginning
    assert tab.run("document.title") != "pwned", beginning
    assert tab.run("location.protocol") == "file:", beginning
    assert (tab.said, tab.asked, tab.dialogs) == ([], [], []), beginning
    assert set(tab.run(SHAPE)) <= allowed, beginning
    assert tab.run("document.getElementById('provenance').getClientRects().length") == 1, beginning


@pytest.fixture
def allowed(tab: Tab, tmp_path: Path) -> set[str]:
    tab.open(written(tmp_path, render(full_page())))
    tab.run(TOUCH)
    return {*tab.run(SHAPE), "DETAILS open", "TD class", "use class"}


def test_the_report_of_a_run_opens_without_errors_or_requests(small_run: Path, tab: Tab) -> None:
    tab.open(small_run / "report/report.html")
    tab.run("window.scrollTo(0, document.body.scrollHeight)")
    assert (tab.said, tab.asked) == ([], [])
    assert tab.run("document.getElementById('filters').hidden") is False, "the script ran and showed the filters"


@pytest.mark.parametrize("each", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_hostile_text_does_nothing_in_any_field(tab: Tab, tmp_path: Path, allowed: set[str], each: int) -> None:
    texts = hostile_texts()
    assert len(texts) >= 300
    for text in (*HOSTILE, *texts[::each], "\0", "<b>" * 350_000):
        check_inert(tab, tmp_path, text, allowed)


def test_hostile_text_does_nothing_on_pages_of_sections(tab: Tab, tmp_path: Path) -> None:
    """Those of activities, captions, objects and dialects; without escapes and policy the same text does something."""
    plain = section_page("plain")
    tab.open(written(tmp_path, plain))
    tab.run(TOUCH)
    allowed = {*tab.run(SHAPE), "DETAILS open"}
    for text in (*HOSTILE, *hostile_texts()[::40]):
        check_inert(tab, tmp_path, text, allowed, whole=section_page(text))
    open_to_all = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", plain)
    tab.open(written(tmp_path, open_to_all.replace("<bdi>plain</bdi>", f"<bdi>{ELEMENTS[0]}</bdi>")))
    tab.run("new Promise((done) => setTimeout(done, 100))")
    assert tab.run("window.pwned") == 1


@pytest.mark.parametrize("text", ELEMENTS[:9])
def test_the_same_text_runs_where_nothing_stops_it(tab: Tab, tmp_path: Path, text: str) -> None:
    """The positive control: the harness notices a script that runs, and a request that leaves."""
    tab.open(written(tmp_path, f"<title>safe</title><body>{text}"))
    tab.run(TOUCH)
    tab.run("new Promise((done) => setTimeout(done, 100))")
    assert tab.run("window.pwned") == 1 or f"{ELSEWHERE}" in "".join(tab.asked)


def test_the_policy_alone_stops_a_script_that_escaping_missed(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, render(page()).replace("</main>", f"{ELEMENTS[0]}{ELEMENTS[3]}</main>")))
    assert tab.run("window.pwned") is None
    assert any("Content Security Policy" in line for line in tab.said)


def test_the_filter_hides_what_is_of_another_model_or_concept(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, render(page())))
    tab.run("""(() => { const one = document.getElementById('by-model'); one.value = 'atlas';
        one.dispatchEvent(new Event('change', {bubbles: true})); })()""")
    seen = "[...document.querySelectorAll('[data-model]')].filter((one) => !one.closest('[hidden]'))"
    assert set(tab.run(f"{seen}.map((one) => one.dataset.model)")) == {"atlas"}
    assert tab.run("document.getElementById('shown').textContent") == "1 of 2 images shown"


def test_the_keyboard_reaches_everything_that_can_be_used(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, render(page())))
    usable = "[...document.querySelectorAll('a[href], select, summary, [tabindex=\"0\"]')]"
    inside = "one.closest('details:not([open])') && !one.closest('summary')"
    wanted = tab.run(f"{usable}.filter((one) => !({inside})).map((one, n) => (one.dataset.stop = n)).length")
    for _ in range(wanted):
        for kind in ("keyDown", "keyUp"):
            tab.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        tab.run("document.activeElement.dataset.reached = 1")
    assert (
        tab.run(f"{usable}.filter((one) => one.dataset.stop && !one.dataset.reached).map((one) => one.outerHTML)") == []
    )


def test_labels_are_drawn_in_their_own_direction(tab: Tab, tmp_path: Path) -> None:
    for label, direction in (
        ("كبة (لبنان) 12", "rtl"),
        ("שלום (b)", "rtl"),
        ("餃子 (中国)", "ltr"),
        ("Khakhra", "ltr"),
    ):
        data = page()
        extremes = with_text(data.extremes, label)
        tab.open(written(tmp_path, render(replace(data, extremes=extremes))))
        row = "document.querySelector('section[aria-labelledby=extremes] tbody tr')"
        # `dir=auto` of bdi shows in the place of a mark at the end, not in the page around it
        assert tab.run(f"{row}.querySelector('bdi').matches(':dir({direction})')"), label
        assert tab.run(f"{row}.children[0].offsetLeft < {row}.children[1].offsetLeft"), label
        assert tab.run(f"getComputedStyle({row}).direction") == "ltr"


@pytest.mark.parametrize("width", [320, 390, 820, 1440])
def test_nothing_but_tables_is_wider_than_the_window(tab: Tab, small_run: Path, width: int) -> None:
    tab.look(width=width, height=900)
    tab.open(small_run / "report/report.html")
    assert tab.run("document.documentElement.scrollWidth") <= width


def test_no_table_of_an_audited_run_of_three_concepts_is_cut_off_at_1440(tab: Tab, tmp_path: Path) -> None:
    data, concepts = audited_page(), (None, "art", "cuisine", "landmarks")
    assert data.breakdown is not None
    cells = tuple((figure(0.592, 1), figure(0.558, 2), figure(0.58, 3)) for _ in concepts)
    trio = tuple(((figure(0.58, 1), None), (figure(0.59, 2), figure(0.55, 9)), (figure(0.3, 3), figure(0.4, 8)))
                 for _ in concepts)  # fmt: skip
    table = replace(data.tables[0], concepts=concepts, rows=(("compatriot", cells), ("mirage", cells)), limits=())
    breakdown = replace(data.breakdown, concepts=concepts, rows=(("compatriot", trio), ("mirage", trio)))
    tab.look(width=1440, height=900)
    tab.open(written(tmp_path, render(replace(data, tables=(table,), breakdown=breakdown))))
    wider = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth)"
    assert tab.run(f"{wider}.map((one) => one.textContent.trim().slice(0, 60))") == []


def test_what_can_only_be_used_on_a_screen_is_not_printed(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, render(page())))
    tab.ask("Emulation.setEmulatedMedia", media="print")
    assert tab.run("getComputedStyle(document.getElementById('filters')).display") == "none"
    assert len(tab.ask("Page.printToPDF")["data"]) > 10_000


def test_a_report_is_printed_with_what_folds_open(tmp_path: Path) -> None:
    shut = "<details><summary>More</summary>" + "<p>A line of text that fills a page.</p>" * 400 + "</details>"
    sizes = []
    for name, body in (("empty", ""), ("long", shut)):
        print_page(written(tmp_path, f"<!doctype html><title>t</title>{body}"), pdf := tmp_path / f"{name}.pdf")
        sizes.append(pdf.read_bytes().count(b"/Type /Page\n"))
    assert sizes[0] == 1
    assert sizes[1] > 3
    assert not list(tmp_path.glob(".*.html"))


@pytest.mark.external
@pytest.mark.skipif(AXE not in os.environ, reason=f"needs {AXE}, the path of axe.min.js (npm install axe-core)")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing(tab: Tab, small_run: Path, width: int, dark: bool) -> None:
    tab.look(width=width, height=900, dark=dark)
    tab.open(small_run / "report/report.html")
    tab.run("for (const one of document.querySelectorAll('details')) one.open = true")
    # what is not laid out seems to lie under something else
    tab.run("for (const one of document.querySelectorAll('*')) one.style.contentVisibility = 'visible'")
    tab.run(Path(os.environ[AXE]).read_text(encoding="utf-8") + "; 1")
    found = tab.run(
        "axe.run().then((all) => all.violations.map((one) => [one.id, one.nodes.map((each) => each.html)]))"
    )
    assert found == []


@pytest.mark.external
@pytest.mark.skipif(AXE not in os.environ, reason=f"needs {AXE}, the path of axe.min.js (npm install axe-core)")
def test_axe_would_find_something(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, render(page()).replace('alt="', 'data-alt="')))
    tab.run("for (const one of document.querySelectorAll('details')) one.open = true")
    tab.run(Path(os.environ[AXE]).read_text(encoding="utf-8") + "; 1")
    assert "image-alt" in tab.run("axe.run().then((all) => all.violations.map((one) => one.id))")
