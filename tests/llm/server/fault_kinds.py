"""Every fault a server can be told to have, with what it does, by the place where it strikes."""

__all__ = [
    "ANSWER_FAULTS",
    "BODY_FAULTS",
    "CONNECTION_FAULTS",
    "FAULT_KINDS",
    "LINE_FAULTS",
    "PLAIN_FAULTS",
    "STATUS_FAULTS",
    "TEXT_FAULTS",
]

CONNECTION_FAULTS = {
    "stall": "nothing comes for `delay` seconds (None: for ever), then the normal reply",
    "drop-before": "the connection is cut before the request is worked on; nothing is billed",
    "drop-inside": "the connection is cut in the middle of the reply, which is billed",
    "drop-after": "the work is done and billed, the connection cut before a byte of the reply",
    "drip": "the reply comes in small pieces over `delay` seconds",
}
"""What happens to the connection."""

STATUS_FAULTS: dict[str, tuple[int, str]] = {
    "busy": (429, "too many requests, with a `hint` of `wait` seconds"),
    "insufficient-quota": (429, "the account is out of money; waiting does not help"),
    "server-error": (500, "an internal error"),
    "bad-gateway": (502, "a bad gateway"),
    "unavailable": (503, "the service is overloaded, with a `hint` of `wait` seconds"),
    "gateway-timeout": (504, "a gateway timeout"),
    "unauthorized": (401, "the key is not known"),
    "key-invalid": (400, "the key is not known, as Google says it"),
    "forbidden": (403, "the key may not do this"),
    "not-found": (404, "there is no such model"),
    "bad-request": (400, "the request is not valid; `text` says why"),
    "context-length": (400, "the request is longer than the model's context"),
    "content-policy": (400, "the request was rejected by the safety system"),
    "moderation": (400, "the prompt was blocked before an image was made, as gpt-image says it"),
    "conflict": (409, "another request holds the resource"),
    "too-large": (413, "the request is too large"),
}
"""Replies that say no: their status and what they mean."""

BODY_FAULTS = {
    "broken-json": "200, the JSON ends in the middle",
    "empty-body": "200, no body at all",
    "deep-envelope": "200, lists in lists, `size` deep (100,000), where an answer belongs",
    "error-in-200": "200, an error object inside",
    "html-page": "200, a page for people",
    "nan-envelope": "200, NaN among the numbers around the answer",
    "surrogate-envelope": "200, the text holds half a surrogate pair",
    "null-content": "200, the text is null",
    "no-choices": "200, a list of no choices or candidates",
    "no-usage": "200, no usage in the reply; it is billed all the same",
    "other-model": "200, the model named is `text`, not the one asked for",
}
"""Damage to the body around the answer; in a stream, to its first event, after which nothing comes."""

ANSWER_FAULTS = {
    "truncated": "the answer ends at the limit of tokens",
    "truncated-empty": "thinking used up all tokens, so there is no text",
    "refusal": "the model declines (a refusal field; plain text where there is no such field)",
    "content-filter": "a filter stopped the answer",
    "recitation": "the answer was stopped as a recitation",
    "prohibited": "the answer was stopped as prohibited content",
    "prompt-blocked": "the question was blocked, `text` names the reason; no candidates",
    "no-candidates": "no candidates and no reason",
    "white-space": "white space without end, until the limit of tokens",
}
"""Ways a model stops that are not the normal one."""

TEXT_FAULTS = {
    "says": "the model says `text`, in which {id} stands for the row's id",
    "wrong-id": "an id that was never given",
    "other-row": "the answer to the row named in `text`, or to the row asked before",
    "missing-key": "one key too few",
    "unknown-key": "one key too many",
    "duplicate-key": "a key twice, with two values",
    "not-in-enum": "a value that the schema does not list",
    "wrong-type": "a number where a text belongs",
    "prose": "a sentence, no JSON",
    "code-fence": "the JSON within a code fence",
    "prose-around": "the JSON within sentences",
    "two-objects": "the JSON twice in a row",
    "cut-text": "half of the JSON, as if it were all",
    "long-string": "a string of `size` bytes (10 MB)",
    "deep-nesting": "lists in lists, `size` deep (100,000)",
    "nan": "NaN among the values",
    "lone-surrogate": "half a surrogate pair among the texts",
    "empty-text": "nothing, as if it were an answer",
    "array": "the object in a list",
    "null": "null instead of the object",
}
"""What a model says that is not an answer. `text` names the key that is meant, where one is. They come whole, however
long, and are billed no more than the limit of tokens."""

FAULT_KINDS: dict[str, str] = {
    "none": "nothing; a rule with it keeps later rules away",
    **CONNECTION_FAULTS,
    **{kind: f"{status}: {meaning}" for kind, (status, meaning) in STATUS_FAULTS.items()},
    **BODY_FAULTS,
    **ANSWER_FAULTS,
    **TEXT_FAULTS,
}

PLAIN_FAULTS = frozenset(
    {*CONNECTION_FAULTS, *STATUS_FAULTS}
    | {"broken-json", "deep-envelope", "empty-body", "error-in-200", "html-page", "none"}
)
"""What can happen to a request that asks no model: files, batches, models."""

LINE_FAULTS = (
    frozenset(FAULT_KINDS) - frozenset(CONNECTION_FAULTS) - {"broken-json", "deep-envelope", "empty-body", "html-page"}
)
"""What can happen to a line of a batch."""
