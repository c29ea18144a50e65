"""Questions for lists say in the schema how many items they want: a server that enforces it never runs on."""

from typing import Annotated, Any

import msgspec
import pytest

from culturekit.builders.activities.extracting import AT_MOST, section_request
from culturekit.builders.asking import bounded
from culturekit.builders.captions.expanding import SAMPLED, Question, culture_file, load_culture
from culturekit.builders.descriptors.proposing import ActivityDimension, proposal_request, stereotype_request
from culturekit.llm.client import Request
from culturekit.llm.reply_schema import TARGETS, Target, schema_of
from culturekit.recipes.linguistic.dialects import PER_QUESTION, DialectOptions, pair_requests

ROW = ActivityDimension("p1", "wedding", "rites", "JP", "objects")
SECTION = {
    "page_id": "a", "number": 1, "country": "JP", "title": "T", "section": "S", "text": "tea", "categories": ["rites"],
}  # fmt: skip

REQUESTS: dict[str, tuple[Request, str, int]] = {
    "mentions": (section_request(SECTION, instructions="words"), "activities", AT_MOST),
    "captions": (Question(1, 1, ()).request(load_culture(culture_file("chinese")), "words", 0), "captions", SAMPLED),
    "descriptors": (proposal_request(ROW, at_most=7, instructions="words"), "descriptors", 7),
    "stereotypes": (stereotype_request("JP", at_most=9, instructions="words"), "stereotypes", 9),
    "dialects": (list(pair_requests(DialectOptions(count=PER_QUESTION + 3)))[1], "pairs", 3),
}  # fmt: skip


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    names: Annotated[list[str], msgspec.Meta(max_length=200)]


@pytest.mark.parametrize("target", TARGETS)
def test_one_list_is_narrowed_and_all_else_stays(target: Target) -> None:
    wide, narrow = (schema_of(kind, target) for kind in (Named, bounded(Named, "names", 2)))
    assert (wide["properties"]["names"].pop("maxItems"), narrow["properties"]["names"].pop("maxItems")) == (200, 2)
    assert wide == narrow
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"id": "1", "names": [], "more": 1}', type=bounded(Named, "names", 2))


@pytest.mark.parametrize("name", REQUESTS)
def test_a_list_may_be_as_long_as_was_asked_for_and_what_is_longer_is_still_read(name: str) -> None:
    request, field, most = REQUESTS[name]
    asked: Any = schema_of(request.schema_type, "llamacpp")
    read: Any = schema_of(request.reply, "llamacpp")
    assert asked["properties"][field]["maxItems"] == most
    assert read["properties"][field]["maxItems"] > most
