import re
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core import plugins
from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.registry import Entry, Registry, Spec, parse_spec


@dataclass(frozen=True, slots=True)
class Heat:
    degrees: float = 1.0
    steps: int = 3
    dry: bool = False
    place: str | None = None


def make_toaster(spec: Spec, *, bread: str = "none") -> tuple[Heat, str]:
    return spec.read(Heat), bread


HERE = f"{__name__}:make_toaster"
TOASTERS: Registry[tuple[Heat, str]] = Registry(
    "toaster",
    [
        Entry("plain", HERE, "a toaster", options=f"{__name__}:Heat"),
        Entry("fancy", "no_such_package_anywhere.toast:make", "needs a package", extra="embed"),
        Entry("broken", "culturekit.no_such_module:make", "our own mistake"),
    ],
    point="toaster",
)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[make_toaster.__module__])


def test_the_parts_of_a_spec() -> None:
    spec = parse_spec("openai:gpt-4o-mini?base_url=http://127.0.0.1:8000/v1&price=0.15/0.60")
    assert (spec.name, spec.target) == ("openai", "gpt-4o-mini")
    assert spec.options == {"base_url": "http://127.0.0.1:8000/v1", "price": "0.15/0.60"}
    assert parse_spec("rules") == Spec("rules", "", {})
    assert parse_spec("transformers:/models/clip").target == "/models/clip"
    named = parse_spec("openai:m?api_key=${MY_KEY}")  # the name of a key, read and written as it is
    assert (named.options["api_key"], str(named)) == ("${MY_KEY}", "openai:m?api_key=${MY_KEY}")
    with pytest.raises(UsageError, match="takes no target and no options"):
        parse_spec("rules?x=1").refuse_options()


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)


@given(words.filter(lambda w: not set(":?") & set(w)), st.dictionaries(words, words, max_size=3))
def test_a_spec_reads_back_as_it_was_written(name: str, options: dict[str, str]) -> None:
    keys = {key.translate({ord(c): None for c in "&=?#+%;"}): value for key, value in options.items()}
    spec = Spec(name, "", {key: value for key, value in keys.items() if key})
    assert parse_spec(str(spec)) == spec


def test_options_become_a_typed_dataclass() -> None:
    made, bread = TOASTERS.make("plain?degrees=2&steps=7&dry=true&place=here", bread="rye")
    assert made == Heat(2.0, 7, True, "here")
    assert bread == "rye"


REFUSED = {
    **dict.fromkeys(("", ":x", "?a=1", "name?novalue"), "a SPEC"),
    "plain?step=1&heat=2": "no option heat, step; expected degrees or steps or dry or place",
    "plain?degree=1": "Did you mean 'degrees'", "plain?steps=many": "an option of plain is wrong",
    "plian": "there is no toaster 'plian'; expected broken or fancy or plain. Did you mean 'plain'?",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_made_is_said_without_making_anything(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(REFUSED[text])):
        TOASTERS.check(text)


def test_a_missing_package_is_one_line_with_the_command_that_installs_it_unless_the_hole_is_ours() -> None:
    with pytest.raises(MissingDependency) as missing:
        TOASTERS.make("fancy")
    assert str(missing.value) == (
        "the toaster fancy needs the package no_such_package_anywhere, which is not installed. "
        "Install it with: pip install -c constraints.txt 'culturekit[embed]'"
    )
    with pytest.raises(ModuleNotFoundError):
        TOASTERS.make("broken")


def test_other_packages_add_names_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, HERE, plugins.PLUGIN_GROUP) for name in ("toaster.theirs", "oven.x", "encoder.x")]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    assert TOASTERS.names() == ["broken", "fancy", "plain", "theirs"]
    assert TOASTERS.make("theirs?steps=9")[0].steps == 9


@pytest.mark.parametrize("name", ["apikey_", "api_kye", "pasword", "tokn", "authorisation", "secrte"])
def test_a_misspelled_key_is_not_repeated(name: str) -> None:
    with pytest.raises(UsageError, match=f"plain has no option {name}") as caught:
        TOASTERS.make(f"plain?{name}=canary&degrees=2")
    assert "canary" not in str(caught.value)
    assert f"plain?{name}=...&degrees=2" in str(caught.value) or f"plain?degrees=2&{name}=..." in str(caught.value)


@pytest.mark.parametrize(
    "spec", ["plain?api_key=canary", "plain?api_key:canary=1", "plain:sk-canary1234567890", "?token=canary"]
)
def test_a_key_that_is_written_out_is_refused_and_not_repeated(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        TOASTERS.check(spec)
    assert "canary" not in str(caught.value)
