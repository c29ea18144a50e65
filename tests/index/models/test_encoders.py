"""The names of encoders: options are checked before anything is loaded, and what is not installed is named."""

import sys

import pytest

from culturekit.errors import MissingDependency, UsageError
from culturekit.index.encoders import ENCODERS


def test_every_encoder_is_known_by_name() -> None:
    assert {"embedded", "inception", "open_clip", "sentence", "transformers"} <= set(ENCODERS.names())


@pytest.mark.parametrize("name", ["transformers", "sentence"])
def test_options_are_checked_without_loading_anything(name: str) -> None:
    ENCODERS.check(f"{name}:owner/name?device=cuda:1&dtype=bfloat16&batch=8&revision=main")
    with pytest.raises(UsageError, match="Did you mean 'revision'"):
        ENCODERS.check(f"{name}:owner/name?revison=main")
    for wrong in ("dtype=float64", "batch=many", "batch=-1"):
        with pytest.raises(UsageError, match=f"an option of {name} is wrong"):
            ENCODERS.check(f"{name}:owner/name?{wrong}")


@pytest.mark.parametrize(
    ("spec", "package"),
    [("transformers:x", "torch"), ("transformers:x", "transformers"), ("sentence:x", "sentence_transformers")],
)
def test_a_package_that_is_not_installed_is_named_with_the_command(
    spec: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if package != "torch":
        pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"needs the package {package}.*pip install .*culturekit\[embed\]"):
        ENCODERS.make(spec)
