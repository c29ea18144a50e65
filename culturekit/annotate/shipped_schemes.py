"""Schemes by name, from those that are shipped, or by the path of a YAML file."""

from pathlib import Path

from culturekit.annotate.scheme import Scheme
from culturekit.errors import UsageError
from culturekit.storage.package_data import shipped, shipped_names
from culturekit.storage.yaml_model import load_model

__all__ = ["load_scheme", "scheme_file", "scheme_names"]

FOLDER = "annotate/schemes"


def scheme_names() -> list[str]:
    """List the shipped schemes."""
    return shipped_names(FOLDER, ".yaml")


def scheme_file(name: str) -> Path:
    """Find the file of a scheme: a shipped name, or a path that ends in .yaml or .yml."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    if name not in scheme_names():
        raise UsageError(
            "there is no such scheme", found=repr(name), expected=f"{', '.join(scheme_names())}, or the path of a .yaml"
        )
    return shipped(f"{FOLDER}/{name}.yaml")


def load_scheme(name: str) -> Scheme:
    """Load a scheme; a ConfigError names every mistake in it."""
    return load_model(scheme_file(name), Scheme)
