"""OpenAI's files: uploaded as forms, read back, deleted."""

import time
from typing import Any

from tests.llm.server.error_replies import Refused, parse_form
from tests.llm.server.exchange import Exchange
from tests.llm.server.jobs import StoredFile
from tests.llm.server.wire import Departing, json_departing

_PURPOSES = {"assistants", "batch", "fine-tune", "vision", "user_data", "evals"}
_LARGEST = 200 * 1024 * 1024


def create_file(exchange: Exchange) -> Departing:
    """POST /files."""
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
    stored = exchange.service.storage.keep(
        "file-", "openai", content, filename=filename, purpose=purpose, created=int(time.time())
    )
    return json_departing(_told(stored))


def file_content(exchange: Exchange) -> Departing:
    """GET /files/{name}/content."""
    return Departing(200, [("content-type", "application/octet-stream")], _found(exchange).content)


def delete_file(exchange: Exchange) -> Departing:
    """DELETE /files/{name}."""
    stored = _found(exchange)
    del exchange.service.storage.files[stored.name]
    return json_departing({"id": stored.name, "object": "file", "deleted": True})


def _found(exchange: Exchange) -> StoredFile:
    stored = exchange.service.storage.files.get(exchange.groups["name"])
    if stored is None or stored.provider != "openai":
        raise Refused("not-found", f"No such File object: {exchange.groups['name']}", param="id", code="not_found")
    return stored


def _told(stored: StoredFile) -> dict[str, Any]:
    return {
        "id": stored.name,
        "object": "file",
        "bytes": len(stored.content),
        "created_at": stored.created,
        "filename": stored.filename,
        "purpose": stored.purpose,
        "status": "processed",
        "status_details": None,
        "expires_at": None,
    }
