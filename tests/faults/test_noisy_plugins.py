import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.outside_packages import PLUGINS

RECIPE = """
recipe: cube
cspace: dishes.csv
prompts: {kinds: [cube, underspecified]}
images: {kinds: [underspecified], slots: 2, repeats: 1}
scores: {size: 2}
references: {backend: simulated, per_artifact: 1}
plugins: {backend.flags: flags.py:make}
models: [{name: plain, backend: flags}]
"""
NOISY = {
    "print": "print('a plugin speaks')",
    "descriptor": "import os; os.write(1, b'a plugin speaks')",
    "process": "import subprocess; subprocess.run(['echo', 'a plugin speaks'], check=True)",
}


def command(folder: Path, line: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a recipe with a plugin that does something when it is imported, made, and asked, in a process of its own."""
    (folder / "dishes.csv").write_text("name,concept,country\nfeijoada,cuisine,BR\nsushi,cuisine,JP\n", "utf-8")
    (folder / "recipe.yaml").write_text(RECIPE, "utf-8")
    shutil.copy(PLUGINS / "flags.py", folder)
    text = (folder / "flags.py").read_text("utf-8")
    text = text.replace("        return [Pic", f"        {line}\n        return [Pic")
    (folder / "flags.py").write_text(text, "utf-8")
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    called = [sys.executable, "-m", "culturekit", *words, "recipe.yaml"]
    return subprocess.run(called, cwd=folder, env=given, capture_output=True, text=True, check=False)


@pytest.mark.endtoend
@pytest.mark.parametrize("how", NOISY)
def test_what_a_plugin_prints_is_no_data(how: str, tmp_path: Path) -> None:
    ended = command(tmp_path, NOISY[how], "run", "--json", "--until", "images", "--workers", "1")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["stages"]
    assert "a plugin speaks" in ended.stderr


@pytest.mark.endtoend
@pytest.mark.parametrize("line", ["import os; os._exit(0)", "import sys; sys.exit(0)", "raise EOFError"])
def test_a_plugin_that_ends_the_process_has_failed(line: str, tmp_path: Path) -> None:
    ended = command(tmp_path, line, "-v", "run", "--until", "images", "--workers", "1")
    assert ended.returncode == 2, ended.stderr
    assert "the backend flags of the file" in ended.stderr
    assert "Aborted" not in ended.stderr
    assert 'flags.py", line' in ended.stderr, "with -v its traceback is shown"


@pytest.mark.endtoend
def test_errors_are_json_too(tmp_path: Path) -> None:
    for words, code in [(("run", "--json", "--until", "nothing"), 2), (("run", "--json", "--unknown"), 2)]:
        ended = command(tmp_path, "pass", *words)
        assert (ended.returncode, ended.stdout) == (code, "")
        data = json.loads(ended.stderr.splitlines()[-1])
        assert (data["level"], data["exit_code"]) == ("error", code)
        assert data["problem"] in data["said"]
