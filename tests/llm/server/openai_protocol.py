"""What OpenAI takes in a request, and how it complains. Fields that this package sends; the real service knows more."""

import base64
import binascii
import hashlib
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import orjson
from msgspec import Meta

from tests.llm.server.answers import Answer, Question, count_image, count_text, data_of, picture_bytes
from tests.llm.server.error_replies import Refused, Strict, fitting, nodes, parse_form
from tests.llm.server.script import Script
from tests.llm.server.selling import (
    PAGE,
    Encode,
    Job,
    Line,
    LineResult,
    create,
    encoded,
    ends_now,
    found_job,
    line_of,
    listed,
    sell,
)
from tests.llm.server.service import Exchange, Service
from tests.llm.server.wire import Departing, json_departing

_Name: TypeAlias = Annotated[str, Meta(min_length=1)]
_Positive: TypeAlias = Annotated[int, Meta(ge=1)]
_Temperature: TypeAlias = Annotated[float, Meta(ge=0, le=2)]
_Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
_Address: TypeAlias = Annotated[str, Meta(max_length=20_000_000)]
_Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_Detail: TypeAlias = Literal["auto", "low", "high", "original"]


class _Image(Strict):
    url: _Address
    detail: _Detail = "auto"


class _Text(Strict, tag="text"):
    text: str


class _Picture(Strict, tag="image_url"):
    image_url: _Image


class _System(Strict, tag_field="role", tag="system"):
    content: str | list[_Text]


class _User(Strict, tag_field="role", tag="user"):
    content: str | Annotated[list[_Text | _Picture], Meta(min_length=1)]


class _Schema(Strict):
    name: Annotated[str, Meta(max_length=64)]
    schema: dict[str, Any]
    description: str = ""
    strict: bool | None = None


class _Format(Strict, tag="json_schema"):
    json_schema: _Schema


class Chat(Strict):
    messages: Annotated[list[_System | _User], Meta(min_length=1)]
    model: _Name
    logprobs: bool | None = None
    max_completion_tokens: _Positive | None = None
    max_tokens: _Positive | None = None
    reasoning_effort: _Effort | None = None
    response_format: _Format | None = None
    seed: int | None = None
    temperature: _Temperature | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    top_p: _Share | None = None


class _InputText(Strict, tag="input_text"):
    text: str


class _InputImage(Strict, tag="input_image"):
    detail: _Detail
    image_url: _Address | None = None


class _Item(Strict):
    role: Literal["user"]
    content: Annotated[list[_InputText | _InputImage], Meta(min_length=1)]


class _TextFormat(_Schema, tag="json_schema"):
    pass


class _TextOptions(Strict):
    format: _TextFormat


class _Reasoning(Strict):
    effort: _Effort | None = None


class Responses(Strict):
    """The body of a request for a response; it knows no seed, as the real one does not."""

    input: Annotated[list[_Item], Meta(min_length=1)]
    model: _Name
    instructions: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=16)] | None = None
    reasoning: _Reasoning | None = None
    store: bool | None = None
    temperature: _Temperature | None = None
    text: _TextOptions | None = None
    top_p: _Share | None = None


class Batch(Strict):
    completion_window: Literal["24h"]
    endpoint: Literal["/v1/chat/completions", "/v1/responses", "/v1/images/generations"]
    input_file_id: _Name
    metadata: (
        Annotated[dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)]
        | None
    ) = None


def check_chat(body: Any) -> None:
    """Refuse a chat completion request the service would not take."""
    fitting(Chat, body)
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise Refused("bad-request", "'max_tokens' and 'max_completion_tokens' cannot both be set.")
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise Refused("bad-request", "'top_logprobs' is only allowed when 'logprobs' is enabled.", param="top_logprobs")
    _check_strict((body.get("response_format") or {}).get("json_schema") or {})


def _check_strict(wanted: Mapping[str, Any]) -> None:
    if wanted.get("strict"):
        check_strict_schema(wanted["name"], wanted["schema"])


def check_strict_schema(name: str, schema: Mapping[str, Any]) -> None:
    """Refuse a schema that strict mode does not take."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise Refused("bad-request", f"Invalid 'response_format.json_schema.name': {name!r}.", code="invalid_value")
    if problem := _first_problem(orjson.dumps(schema)):
        message = f"Invalid schema for response_format '{name}': In context={problem}"
        raise Refused("bad-request", message, param="response_format")


@lru_cache(maxsize=256)
def _first_problem(written: bytes) -> str:
    """Find the first problem; the schemas of a run are few, its requests many."""
    return next(_problems(orjson.loads(written)), "")


_ANYWHERE = {"type", "description", "title", "enum", "const", "anyOf", "$ref", "$defs", "definitions"}
_BY_TYPE = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"pattern", "format"},
    "number": {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set[str](),
    "null": set[str](),
}
_BY_TYPE["integer"] = _BY_TYPE["number"]
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_MOST = {"properties": 5000, "enum values": 1000, "characters in its strings": 120_000}
_DEEPEST = 10


def _problems(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object" or "anyOf" in schema:
        yield f"(), schema must be a JSON Schema of 'type: \"object\"', got 'type: {schema.get('type')!r}'."
    defined = {"#", *(f"#/{group}/{name}" for group in ("$defs", "definitions") for name in schema.get(group) or {})}
    sizes = dict.fromkeys(_MOST, 0)
    for node, where, depth in nodes(schema, ""):
        yield from (f"{where}, {problem}" for problem in _problems_of(node, depth, defined))
        names, values = node.get("properties") or {}, node.get("enum") or ()
        sizes["properties"] += len(names)
        sizes["enum values"] += len(values)
        sizes["characters in its strings"] += sum(len(str(one)) for one in (*names, *values, node.get("const", "")))
    for what, size in sizes.items():
        if size > _MOST[what]:
            yield f"(), there are {size} {what}, at most {_MOST[what]} are allowed."


def _problems_of(node: Any, depth: int, defined: set[str]) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{node!r} is not of type 'object'."
        return
    given = node.get("type", [])
    kinds = [given] if isinstance(given, str) else given
    if unknown := [kind for kind in kinds if kind not in _BY_TYPE]:
        yield f"{unknown[0]!r} is not one of the known types."
    allowed = _ANYWHERE.union(*(_BY_TYPE.get(kind, ()) for kind in kinds))
    yield from (f"'{keyword}' is not permitted." for keyword in sorted(node.keys() - allowed))
    if depth > _DEEPEST:
        yield f"nesting is deeper than {_DEEPEST} levels."
    if not kinds and not {"anyOf", "$ref"} & node.keys():
        yield "schema must have a 'type' key."
    if "$ref" in node and node["$ref"] not in defined:
        yield f"reference can only point to definitions defined at the top level: {node['$ref']!r}."
    if "$ref" in node and node.keys() - {"$ref", "description"}:
        yield "$ref cannot have keywords beside it."
    if "format" in node and node["format"] not in _FORMATS:
        yield f"format {node['format']!r} is not supported."
    if "enum" in node and not node["enum"]:
        yield "enum must not be empty."
    if "object" in kinds or "properties" in node:
        properties, required = node.get("properties") or {}, node.get("required")
        if node.get("additionalProperties") is not False:
            yield "'additionalProperties' is required to be supplied and to be false."
        if not isinstance(required, list) or set(required) != set(properties):
            missing = sorted(set(properties) ^ set(required or ()))
            yield f"'required' is required to be supplied and to include every key in properties. See {missing}."


_DATA_URL = re.compile(r"data:image/(png|jpeg|jpg|gif|webp);base64,(.*)", re.DOTALL)
_DEFAULT_LIMIT = 16_384
_BLOCKED = ("content-filter", "recitation", "prohibited", "prompt-blocked")
_FINISH = {"length": "length", **dict.fromkeys(_BLOCKED, "content_filter")}
_INCOMPLETE = {"length": "max_output_tokens", **dict.fromkeys(_BLOCKED, "content_filter")}


def _image_tokens(url: str | None, detail: str | None) -> int:
    """Count the tokens of an image by its data URL: 85 in low detail, by tiles otherwise."""
    found = _DATA_URL.fullmatch(url or "")
    if found is None:
        raise Refused("bad-request", "Invalid image data URL.", param="url", code="invalid_image_url")
    try:
        content = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        raise Refused("bad-request", "Invalid base64 image_url.", code="invalid_base64") from None
    return 85 if detail == "low" else count_image(content, "openai")


def _question(
    body: Mapping[str, Any],
    said: Iterable[tuple[str, Any]],
    schema: Any,
    *,
    operation: str,
    limit: int | None,
    mode: Any,
) -> Question:
    """Read what is asked, from who says what, in either protocol."""
    instructions: list[str] = []
    user: list[str] = []
    tokens = 3
    for role, content in said:
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        tokens += 4
        for part in parts:
            if "text" in part:
                tokens += count_text(part["text"])
                (instructions if role in {"system", "developer"} else user).append(part["text"])
            else:
                image = part.get("image_url")
                where = image if isinstance(image, dict) else {"url": image, "detail": part.get("detail")}
                tokens += _image_tokens(where["url"], where.get("detail"))
    text = "\n".join(user)
    data, row = data_of(text)
    return Question(
        provider="openai", operation=operation, model=body["model"], instructions="\n".join(instructions), user=text,
        data=data, row=row, schema=schema, json_wanted=schema is not None, max_tokens=limit or _DEFAULT_LIMIT,
        seed=body.get("seed") or 0,
        input_tokens=tokens + (count_text(orjson.dumps(schema).decode()) if schema is not None else 0),
        digest=hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(), mode=mode,
        options={"top_logprobs": body.get("top_logprobs") or 0 if body.get("logprobs") else None},
    )  # fmt: skip


def chat_question(body: Mapping[str, Any], mode: Any = "online") -> Question:
    check_chat(body)
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    said = ((message["role"], message.get("content")) for message in body["messages"])
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    return _question(body, said, schema, operation="chat", limit=limit, mode=mode)


def responses_question(body: Mapping[str, Any], mode: Any = "online") -> Question:
    fitting(Responses, body)
    wanted = (body.get("text") or {}).get("format") or {}
    _check_strict(wanted)
    schema = wanted.get("schema")
    said = [("system", body.get("instructions") or ""), *((item["role"], item["content"]) for item in body["input"])]
    return _question(body, said, schema, operation="responses", limit=body.get("max_output_tokens"), mode=mode)


def created_at(question: Question) -> int:
    """Date an answer by what was asked, so that the same question brings the same bytes at any time."""
    return 1_780_000_000 + int(question.digest[:6], 16)


def chat_completion(question: Question, answer: Answer) -> dict[str, Any]:
    """Write an answer as a completion; the same answer always has the same id."""
    declined = answer.ending == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if declined else answer.text,
        "refusal": answer.text if declined else None,
        "annotations": [],
    }
    finish = _FINISH.get(answer.ending, "stop")
    choice = {"index": 0, "message": message, "logprobs": _first_logprobs(question, answer), "finish_reason": finish}
    others = dict.fromkeys(("audio_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens"), 0)
    return {
        "id": f"chatcmpl-{question.digest[:29]}",
        "object": "chat.completion",
        "created": created_at(question),
        "model": question.model,
        "choices": [] if answer.ending == "no-candidates" else [choice],
        "usage": {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": answer.thinking_tokens, **others},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_loopback",
    }


def _first_logprobs(question: Question, answer: Answer) -> dict[str, Any] | None:
    """List the likeliest first tokens, where asked for: those of the answer, or drawn by a hash of the question."""
    wanted = question.options.get("top_logprobs")
    if wanted is None or answer.logprobs is None:
        return None
    yes = 0.02 + 0.9 * int(question.digest[:8], 16) / 2**32  # a twentieth is left to other words
    shares = {"Yes": yes, "No": 0.95 - yes, "The": 0.03, "I": 0.02}
    drawn = [(token, math.log(share)) for token, share in sorted(shares.items(), key=lambda item: -item[1])]
    told = [
        {"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in answer.logprobs or drawn
    ]
    return {"content": [{**told[0], "top_logprobs": told[:wanted]}], "refusal": None}


def response(question: Question, answer: Answer) -> dict[str, Any]:
    """Write an answer as a response; the same answer always has the same id."""
    reason = _INCOMPLETE.get(answer.ending)
    part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    if answer.ending == "refusal":
        part = {"type": "refusal", "refusal": answer.text}
    status = "incomplete" if reason else "completed"
    message = {"id": f"msg_{question.digest[:40]}", "type": "message", "role": "assistant", "status": status}
    said = answer.ending != "no-candidates" and (answer.text or not reason)
    return {
        "id": f"resp_{question.digest[:40]}",
        "object": "response",
        "created_at": created_at(question),
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": question.instructions,
        "metadata": {},
        "model": question.model,
        "output": [{**message, "content": [part]}] if said else [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": answer.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": answer.thinking_tokens},
            "total_tokens": answer.input_tokens + answer.output_tokens,
        },
    }


_TOKENS = {"low": 272, "medium": 1056, "high": 4160}


class _MakeImage(Strict):
    model: Annotated[str, Meta(min_length=1)]
    prompt: Annotated[str, Meta(min_length=1, max_length=32_000)]
    n: Annotated[int, Meta(ge=1, le=10)] | None = None
    size: Annotated[str, Meta(pattern=r"^(auto|\d{3,4}x\d{3,4})$")] | None = None
    quality: Literal["auto", "low", "medium", "high", "standard", "hd"] | None = None
    background: Literal["auto", "transparent", "opaque"] | None = None
    moderation: Literal["auto", "low"] | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    output_compression: Annotated[int, Meta(ge=0, le=100)] | None = None
    response_format: Literal["b64_json", "url"] | None = None
    style: Literal["vivid", "natural"] | None = None
    user: str = ""


def image_question(body: Any, mode: Any = "online") -> Question:
    """Read what is asked, where the service would take it; the row is the prompt itself."""
    fitting(_MakeImage, body)
    count = body.get("n") or 1
    return Question(
        provider="openai", operation="images", model=body["model"], instructions="", user=body["prompt"], data={},
        row=body["prompt"], schema=None, json_wanted=False,
        max_tokens=count * _TOKENS.get(body.get("quality") or "medium", 1000), seed=0,
        input_tokens=count_text(body["prompt"]),
        digest=hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(), mode=mode,
        options={**body, "n": count},
    )  # fmt: skip


def writes_images(script: Script) -> Callable[[Question, Answer], dict[str, Any]]:
    def write(question: Question, answer: Answer) -> dict[str, Any]:
        asked = question.options
        count = max(0, asked["n"] + script.pictures.more) if answer.ending != "no-candidates" else 0
        item = _picture if answer.ending == "stop" else _filtered
        reply: dict[str, Any] = {"created": 1_790_000_000, "data": [item(question, at, script) for at in range(count)]}
        if question.model.startswith("gpt-image"):
            reply |= {name: asked.get(name) or "auto" for name in ("size", "quality", "background")}
            reply["usage"] = {
                "input_tokens": answer.input_tokens,
                "input_tokens_details": {"text_tokens": answer.input_tokens, "image_tokens": 0},
                "output_tokens": answer.output_tokens,
                "total_tokens": answer.input_tokens + answer.output_tokens,
            }
        return reply

    return write


def _filtered(question: Question, at: int, script: Script) -> dict[str, Any]:
    found = {"filtered": True, "severity": "high"}
    return {"content_filter_results": {"violence": found, "hate": {"filtered": False, "severity": "safe"}}}


def _picture(question: Question, at: int, script: Script) -> dict[str, Any]:
    told = script.pictures
    item: dict[str, Any] = {"revised_prompt": f"A photo of {question.user}"} if told.revised else {}
    if told.address:
        return {**item, "url": told.address.replace("{digest}", question.digest).replace("{place}", str(at))}
    return {**item, "b64_json": base64.b64encode(picture_bytes(question.digest, at, told)).decode()}


# How the body of each endpoint is read.
READERS: dict[str, Callable[..., Question]] = {
    "/v1/chat/completions": chat_question,
    "/v1/responses": responses_question,
    "/v1/images/generations": image_question,
}


def writer(endpoint: str, script: Script) -> Encode:
    encode: dict[str, Encode] = {"/v1/chat/completions": chat_completion, "/v1/responses": response}
    return encode.get(endpoint) or writes_images(script)


def answer(endpoint: str, exchange: Exchange) -> Departing:
    return sell(exchange, READERS[endpoint](exchange.json()), writer(endpoint, exchange.service.script))


_PURPOSES = {"assistants", "batch", "fine-tune", "vision", "user_data", "evals"}
_LARGEST = 200 * 1024 * 1024
_MOST_LINES = 50_000
_DAY = 86_400


def create_file(exchange: Exchange) -> Departing:
    form = parse_form(exchange.arrived.headers.get("content-type", ""), exchange.arrived.body)
    for name in form.keys() - {"purpose", "file", "expires_after[anchor]", "expires_after[seconds]"}:
        raise Refused("bad-request", f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    if "file" not in form or form["file"].filename is None:
        raise Refused("bad-request", "'file' is a required property", param="file")
    purpose = form["purpose"].content.decode() if "purpose" in form else ""
    if purpose not in _PURPOSES:
        raise Refused("bad-request", f"{purpose!r} is not one of {sorted(_PURPOSES)} - 'purpose'", param="purpose")
    filename, content = form["file"].filename, form["file"].content
    if purpose == "batch" and not filename.endswith(".jsonl"):
        raise Refused("bad-request", f"Invalid file format. Batch API only supports .jsonl files, found {filename!r}.")
    if purpose == "batch" and len(content) > _LARGEST:
        raise Refused("too-large", f"A batch file may have at most {_LARGEST} bytes.")
    stored = exchange.service.storage.keep("file-", "openai", content, filename=filename, purpose=purpose)
    return json_departing({
        "id": stored.name, "object": "file", "bytes": len(stored.content), "created_at": stored.created,
        "filename": stored.filename, "purpose": stored.purpose, "status": "processed", "status_details": None,
        "expires_at": None,
    })  # fmt: skip


def file_content(exchange: Exchange) -> Departing:
    return Departing(200, [("content-type", "application/octet-stream")], exchange.file().content)


def delete_file(exchange: Exchange) -> Departing:
    name = exchange.file().name
    del exchange.service.storage.files[name]
    return json_departing({"id": name, "object": "file", "deleted": True})


class _RequestLine(Strict):
    custom_id: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    method: Literal["POST"]
    url: str
    body: Any


def _read_lines(content: bytes, endpoint: str) -> list[Line]:
    """Read an input file; one that is wrong is refused as a whole, a body the model cannot take fails its line only."""
    lines = [orjson.loads(written) for written in content.splitlines()]
    for line in lines:
        fitting(_RequestLine, line)
    names = {line["custom_id"] for line in lines}
    alike = {(line["url"], line["body"].get("model")) for line in lines}
    if len(names) < len(lines) or len(alike) != 1 or next(iter(alike))[0] != endpoint or len(lines) > _MOST_LINES:
        raise Refused("bad-request", "The lines of a batch have names of their own, one endpoint and one model.")
    return [line_of(line["custom_id"], partial(READERS[endpoint], line["body"], "batch")) for line in lines]


def create_batch(exchange: Exchange) -> Departing:
    service, body = exchange.service, exchange.json()
    fitting(Batch, body)
    name, endpoint = body["input_file_id"], body["endpoint"]
    stored = service.storage.files.get(name)
    if stored is None or stored.provider != "openai" or stored.purpose != "batch":
        raise Refused("bad-request", f"No such File object of the purpose 'batch': {name}", param="input_file_id")
    lines = _read_lines(stored.content, endpoint)
    model = next((line.question.model for line in lines if line.question is not None), "")
    return create(
        service, _told, "batch_",
        provider="openai", model=model, endpoint=endpoint, source=name, tag=body.get("metadata"), lines=lines,
    )  # fmt: skip


def retrieve_batch(exchange: Exchange) -> Departing:
    job = _looked_at(exchange.service, found_job(exchange, ""))
    return json_departing(_told(exchange.service, job))


def list_batches(exchange: Exchange) -> Departing:
    service, query = exchange.service, exchange.arrived.query
    limit = min(int(query.get("limit", "20")), PAGE)
    jobs = listed(service, "openai")
    names = [job.name for job in jobs]
    if "after" in query and query["after"] not in names:
        raise Refused("bad-request", f"No batch found with id '{query['after']}'.", param="after")
    start = names.index(query["after"]) + 1 if "after" in query else 0
    page = [_told(service, _looked_at(service, job)) for job in jobs[start : start + limit]]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return json_departing({"object": "list", "data": page, **ends, "has_more": start + limit < len(jobs)})


def _looked_at(service: Service, job: Job) -> Job:
    if ends_now(service, job, writer(job.endpoint, service.script)) and job.state != "failed":
        job.output_file = _kept(service, job, "output", (one for one in job.results if one.status == 200), ())
        # the error file names those that were never reached too
        job.error_file = _kept(service, job, "error", (one for one in job.results if one.status != 200), job.undone)
    return job


def _kept(service: Service, job: Job, what: str, results: Iterable[LineResult], undone: Iterable[Line]) -> str:
    rows: list[dict[str, Any]] = []
    for one in results:
        name = one.line.question.digest[:32] if one.line.question is not None else one.line.name
        answer = {"status_code": one.status, "request_id": f"req_{name}", "body": one.body}
        rows.append({"id": f"batch_req_{name}", "custom_id": one.name, "response": answer, "error": None})
    why = "expired" if job.state == "expired" else "was cancelled"
    message = f"This request could not be executed before the batch {why}."
    for line in undone if job.state in {"expired", "cancelled"} else ():
        error = {"code": f"batch_{job.state}", "message": message}
        rows.append({"id": f"batch_req_{line.name[:32]}", "custom_id": line.name, "response": None, "error": error})
    if not rows:
        return ""
    content = b"".join(encoded(row) + b"\n" for row in rows)
    filename = f"{job.name}_{what}.jsonl"
    return service.storage.keep("file-", "openai", content, filename=filename, purpose="batch_output").name


def _told(service: Service, job: Job) -> dict[str, Any]:
    running = job.state == "running"
    state = "validating" if running and job.looks == 0 else "in_progress" if running else job.state
    wall = time.time() - service.now()
    created = int(wall + job.created)
    message = "The batch failed for a reason inside the service."
    errors = [{"code": "internal_error", "line": None, "message": message, "param": None}]
    return {
        "id": job.name,
        "object": "batch",
        "endpoint": job.endpoint,
        "model": job.model,
        "errors": {"object": "list", "data": errors} if job.state == "failed" else None,
        "input_file_id": job.source,
        "completion_window": "24h",
        "status": state,
        "output_file_id": job.output_file or None,
        "error_file_id": job.error_file or None,
        "created_at": created,
        "in_progress_at": created if job.looks else None,
        "expires_at": created + _DAY,
        "completed_at": int(wall + job.ended) if job.state == "completed" else None,
        "request_counts": {
            "total": len(job.lines) if job.looks else 0,
            "completed": job.done if running else job.answered,
            "failed": 0 if running else len(job.results) - job.answered,
        },
        "metadata": job.tag,
    }
