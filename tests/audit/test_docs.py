from pathlib import Path

from culturekit.audit.all_checks import CODES

PAGE = Path(__file__).parents[2] / "docs/audit.md"


def test_the_page_has_every_code_with_its_severity_and_mend_and_no_other() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows == [f"| `{code.name}` | {code.severity} | {code.says} | {code.mend} |" for code in CODES]
