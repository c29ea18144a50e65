"""From the text of a reply to a value of its type, or to a reason why not.

What a model is asked for is a type: a `msgspec.Struct`, or a pydantic model.

```python
from typing import Annotated, Literal

import msgspec

from culturekit.llm.reading.schemas import check_shape, schema_of


class Judged(msgspec.Struct):
    id: str
    verdict: Literal["keep", "remove", "review"]
    reason: Annotated[str, msgspec.Meta(max_length=200, description="in one sentence")]


check_shape(Judged, "openai", "vllm")
schema_of(Judged, "openai")
```

It compiles for six targets, the same bytes in every process: `openai`, `vllm`, `llamacpp` and `ollama` take it as
`response_format`, `google-json` as `response_json_schema` (online), `google-schema` as `response_schema` (batches).
What a target cannot take is refused before anything is sent, with field, target and way out.

- All take texts, numbers, booleans, literals, enums, lists, structs, `None`, unions of structs with a tag, and nothing
  else; keys are letters, digits and underscores.
- A size that a target does not enforce is said in the field's description, and checked in the reply.
- A pattern is anchored with `^` and `$`, with classes written out (`[0-9]`, not a shorthand).
- `description` is part of a reply's key; docstrings are not.

`read_reply(request, text)` gives a value, or a `ParseFailure` with a code, the field, and `raw`; it never raises.
Limits are a million characters, 32 levels, 63 bits, 200 white space characters in a row. `Request.allowed`
(`verdicts[].id`) holds ids to those given, each once; `check_quotes(source, quotes)` finds each quote in the source.
With `fences="strip"`, as all askings have it, one code fence around one object is taken off: the row's detail is
`fenced`, the manifest counts it, `raw` keeps it. Text around the object is an error always.

A reply that cannot be read is followed by one more request, with the same data, a key of its own, nothing of the first
reply, and after the instructions:

```text
An earlier reply to this could not be used.
Error missing-key: A key that was asked for is missing.
Reply again, with nothing but one JSON object of this shape:
{"id": text, "verdict": "keep" | "remove" | "review", "reason": text}
```
"""
