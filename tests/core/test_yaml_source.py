from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.yaml_source import StrictModel, dotted, parse_yaml, read_yaml, validate


def test_scalars_stay_text_norway_stays_norway_and_only_an_unquoted_null_is_null() -> None:
    text = "countries: [NO, SE, on, y]\nyear: 1e3\noctal: 010\ndate: 2024-04-01\nversion: 1.10\n"
    assert parse_yaml(text, name="t").value == {
        "countries": ["NO", "SE", "on", "y"], "year": "1e3", "octal": "010", "date": "2024-04-01", "version": "1.10",
    }  # fmt: skip
    assert parse_yaml("a: null\nb: ~\nc:\nd: 'null'\ne: ''\n", name="t").value == {
        "a": None, "b": None, "c": None, "d": "null", "e": "",
    }  # fmt: skip
    text = "a: .inf\nb: -.INF\nc: inf\nd: '.inf'\n"
    assert parse_yaml(text, name="orders.yaml").value == {"a": "inf", "b": "-inf", "c": "inf", "d": ".inf"}


def test_every_value_knows_its_line() -> None:
    source = parse_yaml("a: 1\nb:\n  - c: 2\n  - d: 3\n", name="file.yaml")
    assert source.position(("b", 1, "d")).line == 4
    assert source.position(("b", 1, "nothing here")).line == 4
    assert source.position(("elsewhere",)).line == 1
    assert dotted(("b", 1, "d")) == "b[1].d"


def test_a_key_given_twice_is_a_problem_and_the_first_value_stands() -> None:
    source = parse_yaml("a: 1\na: 2\n", name="f")
    assert source.value == {"a": "1"}
    assert [str(problem) for problem in source.problems] == ["f:2: a: given twice, first in line 1"]


@pytest.mark.parametrize(("text", "message"), [
    ("a: [1", "t:1: not YAML"),
    ("a: [simulated?noise=1, b]", 't:1: not YAML.*; a value with \\? in it wants quotes: "..."'),
    ("a: 1\nb: A photo: of x", "t:2: not YAML.*; a value with : in it wants quotes"),
    ("{a: folder:{model}/x.png}", "t:1: not YAML.*; a value with { in it wants quotes"),
    ("a: {name} of {country}", "t:1: not YAML.*; a value with { in it wants quotes"),
    ("a: {b: [c], d: [@x]}", "t:1: not YAML.*; a value with @ in it wants quotes"),
    ("a: @x", "t:1: not YAML.*; a value with @ in it wants quotes"),
    ("a: [1, '?'", "t:1: not YAML: [^;]*$"),
    ("a: 1\n---\nb: 2\n", "t:2: not YAML"),
    ("a: &x [*x]\n", "t:1: a.0.: aliases make this document endless"),
    ("[" * 20_000, "nested too deeply"),
    ("a: \x00", "not YAML"),
])  # fmt: skip
def test_what_is_no_config_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_yaml(text, name="t")


def test_a_bomb_of_aliases_is_refused_quickly_and_tags_that_make_objects_too() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(ConfigError, match="endless"):
        parse_yaml("\n".join(lines), name="bomb")
    problems = parse_yaml("a: !!python/object/apply:os.system [id]\n", name="t").problems
    assert "tags are not read here" in str(problems[0])


def test_a_missing_or_unreadable_file_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("a: é".encode("latin-1"))
    for name in ("none.yaml", "latin", "."):
        with pytest.raises(UsageError):
            read_yaml(tmp_path / name)


@given(st.text(max_size=200))
def test_any_text_gives_a_value_or_a_config_error(text: str) -> None:
    try:
        parse_yaml(text, name="any")
    except ConfigError as error:
        assert "any" in str(error)


@dataclass(frozen=True, slots=True)
class Walk:
    hops: int = 3
    order: Literal["deep", "wide"] = "wide"


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    share: float = 1.0


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str
    walk: Walk = Walk()
    parts: tuple[Part, ...] = ()
    maybe: Part | None = None
    by_name: dict[str, Part] = {}
    flag: bool = False


def messages(text: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        validate(parse_yaml(text, name="f.yaml"), Whole)
    return str(error.value).splitlines()


def test_text_becomes_what_the_model_says_it_is() -> None:
    text = "title: 007\nwalk: {hops: 4}\nparts: [{name: NO, share: 1e-1}]\nflag: yes\n"
    whole = validate(parse_yaml(text, name="f"), Whole)
    assert (whole.title, whole.walk.hops, whole.flag) == ("007", 4, True)
    assert whole.parts[0] == Part(name="NO", share=0.1)


def test_all_problems_come_at_once_in_file_order_with_line_key_and_closest_word() -> None:
    text = """titel: x
walk:
  hop: 3
  order: dep
parts:
  - {name: a, share: much}
  - {share: 1}
maybe: {nme: b}
by_name: {z: {name: c, shar: 1}}
flag: maybe
flag: yes
"""
    assert messages(text) == [
        "f.yaml:1: titel: unknown key; did you mean 'title'? accepted: by_name, flag, maybe, parts, title, walk",
        "f.yaml:1: title: this key is required and missing",
        "f.yaml:3: walk.hop: unknown key; did you mean 'hops'? accepted: hops, order",
        "f.yaml:4: walk.order: 'dep' is not accepted; did you mean 'deep'? accepted: deep, wide",
        "f.yaml:6: parts[0].share: input should be a valid number, unable to parse string as a number, found 'much'",
        "f.yaml:7: parts[1].name: this key is required and missing",
        "f.yaml:8: maybe.name: this key is required and missing",
        "f.yaml:8: maybe.nme: unknown key; did you mean 'name'? accepted: name, share",
        "f.yaml:9: by_name.z.shar: unknown key; did you mean 'share'? accepted: name, share",
        "f.yaml:10: flag: input should be a valid boolean, unable to interpret input, found 'maybe'",
        "f.yaml:11: flag: given twice, first in line 10",
    ]


def test_a_list_where_a_mapping_belongs_is_one_problem_and_an_empty_file_lacks_what_is_required() -> None:
    assert len(messages("- a\n- b\n")) == 1
    assert messages("") == ["f.yaml: title: this key is required and missing"]


class WordOrList(StrictModel):
    among: Literal["all"] | tuple[int, ...] = "all"


@pytest.mark.parametrize(("text", "message"), [
    ("among: none", "f.yaml:1: among: 'none' is not accepted; accepted: all, a list"),
    ("among: [1, x]", "f.yaml:1: among[1]: input should be a valid integer"),
    ("among: {a: 1}", "f.yaml:1: among: dict is not accepted; accepted: all, a list"),
])  # fmt: skip
def test_of_a_word_or_a_list_only_what_was_meant_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(parse_yaml(text, name="f.yaml"), WordOrList)
    assert len(caught.value.problems) == 1
    assert str(caught.value).startswith(message)
