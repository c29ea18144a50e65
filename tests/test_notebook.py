"""The notebook under `examples/`, cell by cell as Jupyter runs it, from pictures to the chart."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples/pictures_to_chart.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; what its last line is worth is what a notebook shows."""
    *lines, last = ast.parse(source).body
    body = lines if isinstance(last, ast.Expr) else [*lines, last]
    exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
    return (
        eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names) if isinstance(last, ast.Expr) else None
    )


def test_a_notebook_is_kept_without_outputs() -> None:
    whole = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (whole["nbformat"], len({cell["id"] for cell in CELLS})) == (4, len(CELLS))
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS if "outputs" in cell)


@pytest.mark.endtoend
def test_the_notebook_leads_from_pictures_to_a_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = [run_cell(source, names) for source in CODE]
    assert [state for _, state in shown[1]] == ["built"] * len(shown[1])
    assert shown[2].height == 5
    broad, homely = shown[3]["broad"], shown[3]["homely"]
    assert 1 / 8 <= homely.value < homely.high < broad.low < broad.value <= 1
    page = shown[4]._repr_html_()
    assert page.count('<circle class="k0"') == 2
    assert ">homely</text>" in page
    assert (tmp_path / "chart.html").read_text(encoding="utf-8").endswith("</svg>")
    assert run_cell(CODE[1], names) == [(name, "reused") for name, _ in shown[1]]
