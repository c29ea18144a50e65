"""A package that brings a metric of its own, put where Python finds it as if somebody had installed it."""

import shutil
import tomllib
from pathlib import Path

import pytest

__all__ = ["ABSTENTION", "install"]

ABSTENTION = Path(__file__).parent / "fixtures/outside_metric"


def install(source: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy a package into a folder on the path, with the entry points that its pyproject.toml names."""
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(source / project["name"], site / project["name"])
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in points.items())])
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    return site / str(project["name"])
