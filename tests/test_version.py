"""The line that installs more of culturekit."""

from pathlib import Path

import pytest

from culturekit import version
from culturekit.version import install_line


def test_versions_that_are_known_to_work_are_named_with_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = tmp_path / "a checkout/constraints.txt"
    monkeypatch.setattr(version, "CONSTRAINTS", known)
    assert install_line("embed") == "pip install 'culturekit[embed]'"
    assert install_line(packages="protobuf") == "pip install protobuf"
    known.parent.mkdir()
    known.touch()
    assert install_line("embed") == f"pip install -c '{known}' 'culturekit[embed]'"
    monkeypatch.chdir(known.parent)
    assert install_line("embed") == "pip install -c constraints.txt 'culturekit[embed]'"
