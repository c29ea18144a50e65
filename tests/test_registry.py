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


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)


@given(words.filter(lambda w: not set(":?") & set(w)), st.dictionaries(words, words, max_size=3))
def test_a_spec_reads_back_as_it_was_written(name: str, options: dict[str, str]) -> None:
    keys = {key.translate({ord(c): None for c in "&=?#+%;"}): value for key, value in options.items()}
    spec = Spec(name, "", {key: value for key, value in keys.items() if key})
    assert parse_spec(str(spec)) == spec


@pytest.mark.parametrize("text", ["", ":x", "?a=1", "name?novalue"])
def test_what_is_no_spec_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        parse_spec(text)


def test_options_become_a_typed_dataclass() -> None:
    made, bread = TOASTERS.make("plain?degrees=2&steps=7&dry=true&place=here", bread="rye")
    assert made == Heat(2.0, 7, True, "here")
    assert bread == "rye"


def test_unknown_and_wrong_options_are_said_without_making_anything() -> None:
    with pytest.raises(UsageError, match="no option heat, step; expected degrees or steps or dry or place"):
        TOASTERS.check("plain?step=1&heat=2")
    with pytest.raises(UsageError, match="Did you mean 'degrees'"):
        TOASTERS.check("plain?degree=1")
    with pytest.raises(UsageError, match="an option of plain is wrong"):
        TOASTERS.check("plain?steps=many")


def test_an_unknown_name_lists_the_known_and_offers_the_closest() -> None:
    with pytest.raises(UsageError) as unknown:
        TOASTERS.make("plian")
    assert str(unknown.value) == "there is no toaster 'plian'; expected broken or fancy or plain. Did you mean 'plain'?"


def test_a_missing_package_is_one_line_with_the_command_that_installs_it() -> None:
    with pytest.raises(MissingDependency) as missing:
        TOASTERS.make("fancy")
    assert str(missing.value) == (
        "the toaster fancy needs the package no_such_package_anywhere, which is not installed. "
        "Install it with: pip install -c constraints.txt 'culturekit[embed]'"
    )


def test_a_hole_in_culturekit_itself_is_not_blamed_on_the_user() -> None:
    with pytest.raises(ModuleNotFoundError):
        TOASTERS.make("broken")


def test_other_packages_add_names_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, HERE, plugins.PLUGIN_GROUP) for name in ("toaster.theirs", "oven.x", "encoder.x")]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    assert TOASTERS.names() == ["broken", "fancy", "plain", "theirs"]
    assert TOASTERS.make("theirs?steps=9")[0].steps == 9


def test_a_thing_without_options_refuses_them() -> None:
    with pytest.raises(UsageError, match="takes no target and no options"):
        parse_spec("rules?x=1").refuse_options()


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


def test_the_name_of_a_key_is_read_and_written_as_it_is() -> None:
    spec = parse_spec("openai:m?api_key=${MY_KEY}")
    assert spec.options["api_key"] == "${MY_KEY}"
    assert str(spec) == "openai:m?api_key=${MY_KEY}"
