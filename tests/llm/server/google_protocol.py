"""What Gemini takes in a request, and how it complains. Fields that this package sends; the real service knows more."""

import base64
import binascii
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta

from tests.llm.server.answers import CONTENT_TYPES, Answer, Question, count_image, count_text, data_of, picture_bytes
from tests.llm.server.error_replies import Refused, Strict, fitting, nodes
from tests.llm.server.script import Script
from tests.llm.server.selling import PAGE, Job, LineResult, create, encoded, ends_now, found_job, line_of, listed, sell
from tests.llm.server.service import Exchange, Service, StoredFile
from tests.llm.server.wire import Departing, json_departing

# The fields of the service's Schema message, by their JSON names.
_SCHEMA_NAMES = """
type format title description nullable enum maxItems minItems properties required minProperties maxProperties
minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum
"""
SCHEMA_FIELDS = frozenset(_SCHEMA_NAMES.split())
# The keywords that `responseJsonSchema` supports; others would be ignored without a word, so here they are refused.
_KEYWORDS = """
$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum
anyOf oneOf properties additionalProperties required propertyOrdering
"""
_JSON_SCHEMA_KEYWORDS = frozenset(_KEYWORDS.split())
_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_FORMATS = {"STRING": {"enum", "date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}
_LARGEST = 20 * 1024 * 1024
# What stands below these is not spelled by the service.
_FREE = {"responseSchema", "responseJsonSchema", "metadata"}


def camelled(value: Any) -> Any:
    """Spell the names of fields as JSON does; the service takes their proto names too."""
    if isinstance(value, list):
        return [camelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {camel(name): below for name, below in value.items()}
    return {name: below if name in _FREE else camelled(below) for name, below in named.items()}


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class _Google(Strict, rename="camel"):
    pass


class _Blob(_Google):
    data: str
    mime_type: Annotated[str, Meta(min_length=1)] = "image/png"

    def __post_init__(self) -> None:
        try:  # of the letters that are safe in a URL and those that are usual, JSON of protocol buffers takes both
            base64.b64decode(self.data.translate(str.maketrans("-_", "+/")), validate=True)
        except binascii.Error:
            raise ValueError("this is not base64") from None


class _Part(_Google):
    text: str = ""
    inline_data: _Blob | None = None


class _Content(_Google):
    parts: Annotated[list[_Part], Meta(min_length=1)]
    role: Literal["user", "model"] = "user"


class _Thinking(_Google):
    thinking_budget: Annotated[int, Meta(ge=-1, lt=2**31)] = 0
    thinking_level: Literal["MINIMAL", "LOW", "MEDIUM", "HIGH"] = "LOW"


class _ImageConfig(_Google):
    aspect_ratio: str = ""
    image_size: Literal["512", "1K", "2K", "4K"] = "1K"


class _Safety(_Google):
    category: Annotated[
        str,
        Meta(pattern="^HARM_CATEGORY_(HARASSMENT|HATE_SPEECH|SEXUALLY_EXPLICIT|DANGEROUS_CONTENT|CIVIC_INTEGRITY)$"),
    ]
    threshold: Annotated[str, Meta(pattern="^(BLOCK_(LOW_AND_ABOVE|MEDIUM_AND_ABOVE|ONLY_HIGH|NONE)|OFF)$")]


class Config(_Google):
    response_mime_type: Literal["application/json"] | None = None
    response_schema: dict[str, Any] | None = None
    response_json_schema: Any = None
    response_modalities: tuple[Literal["TEXT", "IMAGE"], ...] = ()
    max_output_tokens: Annotated[int, Meta(ge=1, lt=2**31)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    image_config: _ImageConfig | None = None
    seed: Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None = None
    thinking_config: _Thinking | None = None
    media_resolution: Annotated[str, Meta(pattern="^MEDIA_RESOLUTION_(LOW|MEDIUM|HIGH)$")] | None = None


class _Instruction(_Google):
    parts: Annotated[list[_Part], Meta(min_length=1)]
    role: str = ""


class Generate(_Google):
    contents: Annotated[list[_Content], Meta(min_length=1)]
    model: str = ""
    system_instruction: _Instruction | None = None
    generation_config: Config | None = None
    safety_settings: tuple[_Safety, ...] = ()


class _Inlined(_Google):
    request: Any
    metadata: Any = None


class _Inline(_Google):
    requests: Annotated[list[_Inlined], Meta(min_length=1)]


class _Input(_Google):
    file_name: Annotated[str, Meta(min_length=1)] | None = None
    requests: _Inline | None = None

    def __post_init__(self) -> None:
        if (self.file_name is None) == (self.requests is None):
            raise ValueError("exactly one of file_name and requests must be set")


class _Batch(_Google):
    input_config: _Input
    display_name: str = ""
    model: str = ""


class MakeBatch(_Google):
    """The body that makes a batch; its inline requests are looked into one by one, as lines of a file are."""

    batch: _Batch


def check_size(size: int) -> None:
    if size > _LARGEST:
        raise Refused("too-large", f"Request payload size exceeds the limit: {_LARGEST} bytes.")


def check_generate(body: Any) -> None:
    """Refuse a generateContent request the service would not take; its fields go by their JSON names."""
    fitting(Generate, body)
    config = body.get("generationConfig") or {}
    schema, standard = config.get("responseSchema"), config.get("responseJsonSchema")
    if schema is not None and standard is not None:
        raise Refused("bad-request", "Only one of response_schema and response_json_schema may be set.")
    if (schema is not None or standard is not None) and config.get("responseMimeType") != "application/json":
        raise Refused("bad-request", "responseMimeType: a response schema requires 'application/json'")
    for value, problems in ((schema, schema_problems), (standard, json_schema_problems)):
        if value is not None and (problem := _first_problem(orjson.dumps(value), problems)):
            raise Refused("bad-request", problem)


@lru_cache(maxsize=256)
def _first_problem(written: bytes, problems: Callable[[Any], Iterator[str]]) -> str:
    return next(problems(orjson.loads(written)), "")


def schema_problems(schema: Any) -> Iterator[str]:
    for named, where, _ in nodes(schema, "response_schema"):
        if not isinstance(named, dict):
            yield f"Invalid value at '{where}', {named!r}"
            continue
        for name in named.keys() - SCHEMA_FIELDS:
            yield f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field."
        kind = named.get("type", "TYPE_UNSPECIFIED" if "anyOf" not in named else "")
        if kind and kind not in _TYPES:
            yield f"* {where}.type: must be one of {', '.join(sorted(_TYPES))}, not {kind!r}"
        properties, values = named.get("properties") or {}, named.get("enum")
        if bool(properties) != (kind == "OBJECT"):
            yield f"* {where}.properties: non-empty for OBJECT type, and allowed for no other"
        if kind == "ARRAY" and "items" not in named:
            yield f"* {where}.items: missing field."
        if values is not None and (
            kind != "STRING" or not values or not all(isinstance(one, str) and one for one in values)
        ):
            yield f"* {where}.enum: only allowed for STRING type, with non-empty strings"
        for field in ("required", "propertyOrdering"):
            for at, name in enumerate(named.get(field) or ()):
                if name not in properties:
                    yield f"* {where}.{field}[{at}]: property is not defined"
        if named.get("format") and named["format"] not in _FORMATS.get(kind, ()):
            yield f"* {where}.format: only {sorted(_FORMATS.get(kind, ()))} are supported for {kind} type"


def json_schema_problems(schema: Any) -> Iterator[str]:
    """Say what is not within the supported part of JSON schema, and where."""
    for node, where, _ in nodes(schema, "response_json_schema"):
        if not isinstance(node, dict):
            yield f"Invalid JSON schema at '{where}': {node!r} is no schema"
            continue
        for keyword in node.keys() - _JSON_SCHEMA_KEYWORDS:
            yield f"Invalid JSON schema at '{where}': the keyword '{keyword}' is not supported"
        if "$ref" in node:
            if any(not keyword.startswith("$") for keyword in node):
                yield f"Invalid JSON schema at '{where}': nothing but $-keywords may stand beside $ref"
            if node["$ref"] != "#" and str(node["$ref"]).removeprefix("#/$defs/") not in (schema.get("$defs") or {}):
                yield f"Invalid JSON schema at '{where}': {node['$ref']!r} is not defined"
        if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in node.get("enum") or ()):
            yield f"Invalid JSON schema at '{where}': an enum may list strings and numbers only"


_DEFAULT_LIMIT = 65_536
# Why an answer in words ends, and why a picture does not come.
_FINISH = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "refusal": "STOP",
    "content-filter": "SAFETY",
    "recitation": "RECITATION",
    "prohibited": "PROHIBITED_CONTENT",
}
_NO_IMAGE = {
    "content-filter": "IMAGE_SAFETY",
    "prohibited": "IMAGE_PROHIBITED_CONTENT",
    "recitation": "IMAGE_RECITATION",
    "length": "MAX_TOKENS",
}


def _part_tokens(part: Mapping[str, Any]) -> int:
    if image := part.get("inlineData"):
        return count_image(base64.urlsafe_b64decode(image["data"].translate(str.maketrans("+/", "-_"))), "google")
    return count_text(part.get("text") or "")


def generate_question(sent: Any, model: str, mode: Any = "online") -> Question:
    """Read what is asked, where the service would take it. In batches it ignores `responseJsonSchema`."""
    body = camelled(sent)
    check_generate(body)
    config, system = body.get("generationConfig") or {}, body.get("systemInstruction")
    schema = config.get("responseSchema")
    if schema is None and mode == "online":
        schema = config.get("responseJsonSchema")
    contents = [*([system] if system else []), *body["contents"]]
    tokens = sum(2 + sum(map(_part_tokens, content["parts"])) for content in contents)
    text = "\n".join(_texts(content) for content in body["contents"] if content.get("role", "user") == "user")
    data, row = data_of(text)
    drawn = "IMAGE" in (config.get("responseModalities") or ())
    # requests within batches name the model once more: the same question is the same all the same
    asked = {name: held for name, held in sent.items() if name != "model"}
    return Question(
        provider="google", operation="images" if drawn else "generate", model=model, instructions=_texts(system or {}),
        user=text, data=data, row=text if drawn else row, schema=schema,
        json_wanted=config.get("responseMimeType") == "application/json",
        max_tokens=1290 if drawn else config.get("maxOutputTokens") or _DEFAULT_LIMIT, seed=config.get("seed") or 0,
        input_tokens=tokens + (count_text(orjson.dumps(schema).decode()) if schema else 0),
        digest=hashlib.sha256(model.encode() + orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest(), mode=mode,
    )  # fmt: skip


def _texts(content: Mapping[str, Any]) -> str:
    return "\n".join(part["text"] for part in content.get("parts") or () if part.get("text"))


def writes_generated(script: Script) -> Callable[[Question, Answer], dict[str, Any]]:
    """Write answers in words, or as this script has pictures; a blocked prompt has no candidates.

    Thinking stands apart from the candidates in the counts here, and zero counts are left out.
    """

    def write(question: Question, answer: Answer) -> dict[str, Any]:
        counts = {
            "candidatesTokenCount": answer.output_tokens - answer.thinking_tokens,
            "thoughtsTokenCount": answer.thinking_tokens,
            "cachedContentTokenCount": answer.cached_tokens,
        }
        reply: dict[str, Any] = {
            "usageMetadata": {
                "promptTokenCount": answer.input_tokens,
                "totalTokenCount": answer.input_tokens + answer.output_tokens,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": answer.input_tokens}],
                **{name: count for name, count in counts.items() if count},
            },
            "modelVersion": question.model,
            "responseId": question.digest[:22],
        }
        if answer.ending == "prompt-blocked":
            reply["promptFeedback"] = {"blockReason": answer.detail}
        elif answer.ending != "no-candidates":
            drawn = question.operation == "images"
            reply["candidates"] = [_drawn(question, answer, script) if drawn else _said(answer)]
        return reply

    return write


def _said(answer: Answer) -> dict[str, Any]:
    """Write the one candidate; what was blocked has no parts."""
    stopped = answer.ending in {"content-filter", "recitation", "prohibited"}
    candidate: dict[str, Any] = {"finishReason": _FINISH[answer.ending], "index": 0}
    if answer.ending == "content-filter":
        rating = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
        candidate["safetyRatings"] = [rating]
    if answer.detail and stopped:
        candidate["finishMessage"] = answer.detail
    if not stopped:
        candidate["content"] = {**({"parts": [{"text": answer.text}]} if answer.text else {}), "role": "model"}
    return candidate


def _drawn(question: Question, answer: Answer, script: Script) -> dict[str, Any]:
    told = script.pictures
    if answer.ending in _NO_IMAGE:
        return {"index": 0, "finishReason": _NO_IMAGE[answer.ending], "finishMessage": "Unable to show this image."}
    if answer.ending == "refusal":
        return {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": answer.text}]}}
    if told.form == "none":
        return {"index": 0, "finishReason": "NO_IMAGE"}
    kind = CONTENT_TYPES.get(told.form, "image/png")

    def part(content: bytes) -> dict[str, Any]:
        return {"inlineData": {"mimeType": kind, "data": base64.b64encode(content).decode()}}

    pictures = [part(picture_bytes(question.digest, at, told)) for at in range(1 + told.more)]
    ratings = [{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"}]
    content = {"role": "model", "parts": [{"thought": True, **part(b"a draft")}, {"text": "Here it is."}, *pictures]}
    return {"index": 0, "finishReason": "STOP", "content": content, "safetyRatings": ratings}


def generate(exchange: Exchange) -> Departing:
    check_size(len(exchange.arrived.body))
    question = generate_question(exchange.json(), exchange.groups["name"])
    return sell(exchange, question, writes_generated(exchange.service.script))


_STATES = {"running": "RUNNING", "completed": "SUCCEEDED", "failed": "FAILED"}
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch"
_TWO_DAYS = 172_800


def start_upload(exchange: Exchange) -> Departing:
    """POST /upload/.../files: say what comes, and be told where to send it."""
    headers, storage = exchange.arrived.headers, exchange.service.storage
    if headers.get("x-goog-upload-protocol") != "resumable" or headers.get("x-goog-upload-command") != "start":
        raise Refused("bad-request", "Uploads start with X-Goog-Upload-Protocol: resumable and the command start.")
    size = headers.get("x-goog-upload-header-content-length", "")
    if not size.isdigit():
        raise Refused("bad-request", "X-Goog-Upload-Header-Content-Length must say how many bytes come.")
    given = camelled(exchange.json()).get("file") or {}
    name, upload = given.get("name") or storage.new_name("files/"), storage.new_name("upload-")
    media = headers.get("x-goog-upload-header-content-type") or "application/octet-stream"
    storage.uploads[upload] = StoredFile(name, "google", given.get("displayName") or "", media, b"", int(size))
    host = headers.get("host", "127.0.0.1")
    url = f"http://{host}/google/upload/v1beta/files?upload_id={upload}&upload_protocol=resumable"
    return json_departing({}, headers=[("x-goog-upload-url", url), ("x-goog-upload-status", "active")])


def take_upload(exchange: Exchange) -> Departing:
    """POST to the place told: a piece of the file, the last one with the word finalize."""
    headers, storage = exchange.arrived.headers, exchange.service.storage
    upload = exchange.arrived.query["upload_id"]
    stored = storage.uploads.get(upload)
    if stored is None:
        raise Refused("not-found", "There is no such upload.")
    if headers.get("x-goog-upload-offset") != str(len(stored.content)):
        raise Refused("bad-request", f"The upload goes on at offset {len(stored.content)}.")
    stored.content += exchange.arrived.body
    if "finalize" not in headers.get("x-goog-upload-command", ""):
        return json_departing({}, headers=[("x-goog-upload-status", "active")])
    if len(stored.content) != stored.announced:
        raise Refused("bad-request", f"Announced were {stored.announced} bytes, {len(stored.content)} came.")
    del storage.uploads[upload]
    storage.files[stored.name] = stored
    base = f"http://{headers.get('host', '127.0.0.1')}/google/v1beta"
    told = {
        "name": stored.name, "displayName": stored.filename, "mimeType": stored.purpose,
        "sizeBytes": str(len(stored.content)), "createTime": _time(stored.created), "updateTime": _time(stored.created),
        "expirationTime": _time(stored.created + _TWO_DAYS),
        "sha256Hash": base64.b64encode(hashlib.sha256(stored.content).hexdigest().encode()).decode(),
        "uri": f"{base}/{stored.name}", "state": "ACTIVE", "source": "UPLOADED",
    }  # fmt: skip
    return json_departing({"file": told}, headers=[("x-goog-upload-status", "final")])


def delete_file(exchange: Exchange) -> Departing:
    del exchange.service.storage.files[exchange.file("files/").name]
    return json_departing({})


def download_file(exchange: Exchange) -> Departing:
    """GET /files/{name}:download; only what a job wrote can be read back."""
    stored = exchange.file("files/")
    if stored.purpose != "batch_output" or exchange.arrived.query.get("alt") != "media":
        raise Refused("bad-request", "Only generated files can be downloaded, with alt=media.")
    return Departing(200, [("content-type", "application/jsonl")], stored.content)


class _RequestLine(Strict):
    request: Any
    key: str = ""
    metadata: Any = None


def create_batch(exchange: Exchange) -> Departing:
    service, model, body = exchange.service, exchange.groups["name"], camelled(exchange.json())
    check_size(len(exchange.arrived.body))
    fitting(MakeBatch, body)
    given = body["batch"]["inputConfig"]
    source = given.get("fileName") or ""
    rows = _file_rows(service, source) if source else given["requests"]["requests"]
    lines = []
    for at, row in enumerate(rows):
        metadata = row.get("metadata") or {}
        name = str(row.get("key") or metadata.get("key", at))
        lines.append(line_of(name, partial(generate_question, row["request"], model, "batch"), metadata))
    return create(
        service, _told, "batches/", provider="google", model=f"models/{model}", endpoint="generate", source=source,
        tag=body["batch"].get("displayName") or "", lines=lines,
    )  # fmt: skip


def _file_rows(service: Service, name: str) -> list[dict[str, Any]]:
    stored = service.storage.files.get(name)
    if stored is None or stored.provider != "google":
        raise Refused("not-found", f"The file {name} was not found.")
    try:
        rows = [orjson.loads(written) for written in stored.content.splitlines()]
    except ValueError:
        raise Refused("bad-request", f"A line of {name} is not valid JSON.") from None
    for row in rows:
        fitting(_RequestLine, row)
    return rows


def get_batch(exchange: Exchange) -> Departing:
    job = _looked_at(exchange.service, found_job(exchange, "batches/"))
    return json_departing(_told(exchange.service, job))


def list_batches(exchange: Exchange) -> Departing:
    service, query = exchange.service, exchange.arrived.query
    jobs, start = listed(service, "google"), int(query.get("pageToken") or 0)
    end = start + min(int(query.get("pageSize") or PAGE), PAGE)
    told = {"operations": [_told(service, _looked_at(service, job)) for job in jobs[start:end]]}
    return json_departing({**told, **({"nextPageToken": str(end)} if end < len(jobs) else {})})


def _looked_at(service: Service, job: Job) -> Job:
    if ends_now(service, job, writes_generated(service.script)) and job.source and job.results:
        content = b"".join(encoded({"key": result.name, **_outcome(result)}) + b"\n" for result in job.results)
        keep = service.storage.keep
        job.output_file = keep("files/batch-", "google", content, filename="", purpose="batch_output").name
    return job


def _outcome(result: LineResult) -> dict[str, Any]:
    if result.status == 200:
        return {"response": result.body}
    error = (result.body or {}).get("error", {})
    return {"error": {"code": error.get("code"), "message": error.get("message")}}


def _inlined(result: LineResult) -> dict[str, Any]:
    metadata = dict(result.line.metadata or {})
    if "key" in metadata:
        metadata["key"] = result.name
    return {**_outcome(result), **({"metadata": metadata} if metadata else {})}


def _told(service: Service, job: Job) -> dict[str, Any]:
    running, wall = job.state == "running", time.time() - service.now()
    state = _STATES.get(job.state, job.state.upper())
    stats = {"requestCount": str(len(job.lines))}
    if running:
        stats["pendingRequestCount"] = str(len(job.lines) - job.done)
    else:
        failed = len(job.results) - job.answered
        stats |= {"successfulRequestCount": str(job.answered), "failedRequestCount": str(failed)}
    metadata: dict[str, Any] = {
        "@type": _TYPE, "model": job.model, "displayName": job.tag, "createTime": _time(wall + job.created),
        "updateTime": _time(wall + (job.ended or job.created)), "batchStats": stats,
        "state": f"BATCH_STATE_{'PENDING' if running and not job.looks else state}", "name": job.name,
    }  # fmt: skip
    told: dict[str, Any] = {"name": job.name, "metadata": metadata}
    if running:
        return told
    metadata["endTime"] = _time(wall + job.ended)
    if job.results:
        inline = {"inlinedResponses": [_inlined(result) for result in job.results]}
        metadata["output"] = {"responsesFile": job.output_file} if job.source else {"inlinedResponses": inline}
        told["response"] = {"@type": f"{_TYPE}Output", **metadata["output"]}
    if job.state == "failed":
        told["error"] = {"code": 13, "message": "The batch failed: internal_error."}
    return {**told, "done": True}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
