"""Packages that bring something of their own, put where Python finds them as if somebody had installed them."""

import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PLUGINS = Path(__file__).parent / "fixtures/plugins"


def install(source: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy a package into a folder on the path, with the entry points that its pyproject.toml names."""
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(source / project["name"], site / project["name"])
    write_metadata(site, project["name"], project["version"], project["entry-points"])
    monkeypatch.syspath_prepend(site)
    return site / str(project["name"])


def write_package(site: Path, name: str, points: Mapping[str, str], text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a package of one module, with the entry points of culturekit that it names; give the module."""
    site.mkdir(exist_ok=True)
    (site / f"{name}.py").write_text(text, encoding="utf-8")
    write_metadata(site, name, "1.0", {"culturekit.plugins": points})
    monkeypatch.syspath_prepend(site)
    return site / f"{name}.py"


def write_metadata(site: Path, name: str, version: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{point} = {place}" for point, place in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def forget(*names: str) -> None:
    for module in [module for module in sys.modules if module.partition(".")[0] in names]:
        del sys.modules[module]
