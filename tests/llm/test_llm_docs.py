"""What the pages say of replies and labels, held against the code."""

from pathlib import Path

from culturekit.llm.client import Request
from culturekit.llm.replies import ParseFailure, repair_request
from culturekit.llm.untrusted import LONGEST_TEXT, user_message
from tests.llm.injections import INJECTIONS, ORDERS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_repair_is_quoted_as_it_is() -> None:
    page = (DOCS / "codes.md").read_text(encoding="utf-8")
    namespace: dict[str, type] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], namespace)
    request = Request("t", "", {}, namespace["Judged"])
    assert repair_request(request, ParseFailure("missing-key", "", "")).instructions.strip() in page


def test_the_message_and_the_figures_are_those_of_the_code() -> None:
    page = (DOCS / "untrusted-text.md").read_text(encoding="utf-8")
    assert user_message({"id": "Q123", "label": "Pão"}) in page
    assert f"holds {len(INJECTIONS)} such labels in {len(ORDERS)} languages" in page
    assert f"more than {LONGEST_TEXT:,} characters" in page
