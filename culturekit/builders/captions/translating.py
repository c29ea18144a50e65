"""Captions in another language, by a model or as somebody gives them; what is no translation says why."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import AskedRows, row_id
from culturekit.builders.captions.caption_files import CaptionsToRead, finished, read_captions
from culturekit.builders.folded_names import folded
from culturekit.builders.wordings import wording
from culturekit.errors import UsageError
from culturekit.index.embedding.embed_table import USUAL, TextColumns, texts_of
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.untrusted.untrusted import strip_hidden
from culturekit.records.schemas import TRANSLATIONS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import write_table

__all__ = ["TRANSLATE", "TranslateOptions", "TranslateReads", "translate_captions", "translation_request"]

TRANSLATE = "captions.translate"
GIVEN = "given"
MISSING, EMPTY, SAME = "no translation", "empty translation", "translation is the caption itself"
REPLY_TOKENS = 1024


class Translation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers."""

    id: str
    translation: str


@dataclass(frozen=True, slots=True)
class TranslateReads:
    """Captions, and their translations where these are given."""

    captions: CaptionsToRead
    table: Annotated[
        Path | None,
        Field(description="Table with id and text of their translations, where no model is asked."),
    ] = None
    columns: TextColumns = USUAL


@dataclass(frozen=True, slots=True)
class TranslateOptions:
    """Who translates, and into what."""

    translator: Annotated[
        str | None,
        Field(description="Who translates, as a SPEC: openai:MODEL, google:MODEL, .... [those of --table]"),
        Typed("llm"),
    ] = None
    language: Annotated[
        str,
        Field(
            pattern="^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", description="Language to translate into, such as fr or pt-BR."
        ),
    ] = "en"


def translation_request(row: Mapping[str, Any], language: str) -> Request:
    """Ask for the translation of a caption."""
    asked = row_id(row["id"])
    data = {"id": asked, "caption": row["text"], "language": language}
    words = wording("captions_translate")
    return Request(TRANSLATE, words, data, Translation, allowed={"id": (asked,)}, max_tokens=REPLY_TOKENS)


def translate_captions(
    work: Work,
    given: TranslateReads,
    language: str,
    client: Client | FreeClient | None = None,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Write the translation of each caption; where it is missing, empty or the caption itself, a drop says so."""
    captions, left_out = read_captions(given.captions, given.columns)
    rows = list(captions.iter_rows(named=True))
    asked: AskedRows[Mapping[str, Any]] | None = None
    if client is None:
        said = given_translations(given, {row["id"] for row in rows})
    else:
        asked = AskedRows(TRANSLATE, client, llm, lambda row: str(row["id"]))
        came = asked.ask(work, rows, lambda row: translation_request(row, language), unit="captions")
        said = {row["id"]: value.translation for row, value in came if isinstance(value, Translation)}
    translator, found = GIVEN if client is None else client.model, []
    for row in rows:
        text = " ".join(strip_hidden(said.get(row["id"]) or "").split())
        problem = "" if text else EMPTY if row["id"] in said else MISSING
        if text and folded(text) == folded(row["text"]):
            problem = SAME
        if not problem:
            place = {"id": row["id"], "text": text, "source": row["text"]}
            found.append({**place, "language": language, "translator": translator})
        elif problem != MISSING or asked is None:
            left_out.append((row["id"], problem, row["text"]))
    write_table(work.out, TRANSLATIONS, pl.DataFrame(found, schema=TRANSLATIONS.schema))
    lacking = f"{len(rows) - len(found):,} of {len(rows):,} captions have no translation"
    findings = {"findings": [lacking]} if len(found) < len(rows) else {}
    counts = {"captions": len(rows), "translations": len(found)}
    return finished(work, counts, left_out, TRANSLATE, asked, **findings)


def given_translations(given: TranslateReads, known: set[str]) -> dict[str, str]:
    """Read the translations of a table; one of a caption that is not there is refused."""
    if given.table is None:
        raise UsageError("nobody translates", expected="--llm SPEC, or --table TABLE with translations")
    found = texts_of((given.table,), given.columns)
    said = {**found.texts, **{key: "" for key, _, _ in found.left_out}}
    strange = sorted(set(said) - known)
    if strange:
        raise UsageError(
            f"{len(strange)} translations are of captions that are not there",
            where=str(given.table), found=", ".join(strange[:5]), expected=f"ids of {given.captions}",
        )  # fmt: skip
    return said
