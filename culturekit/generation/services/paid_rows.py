"""The rows of images that were bought: what was sent, what the provider made of it, and the picture on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.generation.backend import ImageRequest
from culturekit.generation.folder.folder_intake import other_colours
from culturekit.generation.picture_files import folder_of_prompt, linked, placed
from culturekit.generation.picture_store import PictureStore
from culturekit.generation.services.image_client import ImageService
from culturekit.generation.services.image_question import Call, Candidate, Made
from culturekit.generation.services.image_replies import KEPT, URL
from culturekit.generation.services.picture_fetch import fetched
from culturekit.llm.clients.error_bodies import read_error
from culturekit.llm.outcomes import Answered
from culturekit.records.choices import PictureFormat
from culturekit.records.schemas import IMAGES
from culturekit.storage.digests import canonical_json, digest, digest_bytes
from culturekit.storage.picture_reading import NoPicture, picture_from
from culturekit.storage.picture_writing import encoded

__all__ = ["PAID_SCHEMA", "RowMaker"]

PAID_SCHEMA: Mapping[str, pl.DataType] = {
    **IMAGES.schema,
    **{name: IMAGES.optional[name].dtype for name in ("concept", "country", "source_sha256")},
}
"""The columns of an images table that was bought; `source_sha256` is the picture as it came."""

SUFFIXES = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
ENDED = {"refused": "refused", "blocked": "filtered"}
"""How a call that brought no image stands in the table; every other end is `failed`."""


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes the rows of calls; it may do so in several threads at once."""

    out: Path
    client: ImageService
    store: PictureStore
    model: str
    format: PictureFormat

    def rows(self, call: Call, answered: Answered, at: float | None) -> list[dict[str, Any]]:
        """Give one row for each image that a call asked for."""
        said = "; ".join(filter(None, [answered.detail, error_message(answered)]))
        if not isinstance(answered.value, Made):
            status = ENDED.get(answered.outcome, "failed")
            reason = said or answered.outcome
            safety = (error_code(answered) or answered.detail) if status == "filtered" else None
            ended = {"status": status, "reason": reason, "safety": safety or None}
            return [{**self.row(request, at, {}), **ended} for request in call]
        made = answered.value
        facts = {**self.client.sent_options, "n": len(call), **stated_facts(made)}
        if len(made.candidates) > len(call):
            facts["candidates"] = len(made.candidates)
        return [
            {
                **self.row(request, at, facts),
                "model_version": made.version or self.client.model,
                **(self.made(request, made.candidates[place]) if place < len(made.candidates) else missing(made)),
            }
            for place, request in enumerate(call)
        ]

    def row(self, request: ImageRequest, at: float | None, facts: Mapping[str, object]) -> dict[str, Any]:
        """Describe an image before it is known what came."""
        params = {**(facts or self.client.sent_options)}
        if request.negative_text:
            params["negative_text"] = "not sent: the API takes none"
        identity = [self.model, request.prompt_id, request.repeat, request.slot, request.seed]
        return {
            "image_id": digest(identity)[:16],
            "path": "",
            "prompt_id": request.prompt_id,
            "model": self.model,
            "model_version": self.client.model,
            "seed": request.seed,
            "seed_honoured": self.client.seeds,
            "repeat": request.repeat,
            "slot": request.slot,
            "prompt_sent": request.text,
            "rewriter": self.client.rewriter,
            "requested_at": None if at is None else datetime.fromtimestamp(at, UTC),
            "provider_params": canonical_json(params).decode(),
            "sha256": "",
            "width": 0,
            "height": 0,
            "concept": request.concept,
            "country": request.country,
        }

    def made(self, request: ImageRequest, candidate: Candidate) -> dict[str, Any]:
        """Bring one image of a reply into the folder."""
        told: dict[str, Any] = {"prompt_revised": candidate.revised or None, "safety": candidate.safety or None}
        if candidate.revised:
            told["rewriter"] = "on"
        if not candidate.picture:
            return {**told, "status": "filtered" if candidate.safety else "failed", "reason": candidate.reason}
        if self.client.filters and not candidate.safety:
            told["safety"] = "passed"
        sha256 = candidate.picture.removeprefix(KEPT)
        if candidate.picture.startswith(URL):
            came = fetched(candidate.picture.removeprefix(URL), self.store, base_url=self.client.identity.base_url)
            if came.reason:
                return {**told, "status": "failed", "reason": came.reason}
            sha256 = came.sha256
        return {**told, "source_sha256": sha256, **self.taken(request, sha256)}

    def taken(self, request: ImageRequest, sha256: str) -> dict[str, Any]:
        """Read a picture, and put it where its row says; one that needs no change stays as it came."""
        content = self.store.get(sha256)
        picture = picture_from(content)
        if isinstance(picture, NoPicture):
            why = f"{picture.reason}: {picture.detail}" if picture.detail else picture.reason
            return {"status": "failed", "reason": f"paid for, but not read: {why}"}
        changed = picture.changed or other_colours(content, picture.format)
        form = self.format if changed else SUFFIXES.get(picture.format, self.format)
        stays = not changed and picture.format in SUFFIXES
        relative = f"files/{folder_of_prompt(request.prompt_id)}/{request.repeat:04d}-{request.slot:02d}.{form}"
        to = self.out / relative
        if not stays:
            content = encoded(picture.pixels, self.format)
        to.parent.mkdir(parents=True, exist_ok=True)
        if not stays or not linked(self.store.path(sha256), to):
            placed(content, to)
        height, width, _ = picture.pixels.shape
        return {
            "path": relative,
            "sha256": digest_bytes(content),
            "width": width,
            "height": height,
            "status": "ok",
            "reason": "; ".join(changed) or None,
        }


def stated_facts(made: Made) -> dict[str, Any]:
    """Read what a reply said of its images; it outweighs what was asked."""
    facts: dict[str, Any] = msgspec.json.decode(made.facts.encode())
    return facts


def missing(made: Made) -> dict[str, Any]:
    """Describe an image that a call asked for and did not bring."""
    told: Sequence[str] = sorted({candidate.reason for candidate in made.candidates if candidate.reason})
    count = len(made.candidates)
    reason = f"the reply has {count} image{'' if count == 1 else 's'} in place of those asked for"
    return {"status": "filtered", "reason": "; ".join([reason, *told]), "safety": "left out of the reply"}


def error_message(answered: Answered) -> str:
    """Read what an error said that closed a call."""
    if answered.outcome not in {"blocked", "invalid"} or not answered.raw:
        return ""
    error = read_error(answered.raw.encode("utf-8", "replace"))
    return ": ".join(filter(None, [error_code(answered), error.message]))


def error_code(answered: Answered) -> str:
    """Name the codes of an error that closed a call."""
    if not answered.raw:
        return ""
    return " ".join(sorted(read_error(answered.raw.encode("utf-8", "replace")).codes))
