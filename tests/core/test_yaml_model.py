from dataclasses import dataclass
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict

from culturekit.core.errors import ConfigError
from culturekit.core.yaml_source import StrictModel, parse_yaml, validate


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
