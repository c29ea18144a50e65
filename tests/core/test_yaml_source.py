from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.yaml_source import dotted, parse_yaml, read_yaml


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
