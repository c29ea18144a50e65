"""Scenes that three people mark, as the stages of the recipe find them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from culturekit.core.inputs import Files, Numbered
from culturekit.core.schemas import ANNOTATIONS, AUDIT_SAMPLE, DESCRIPTORS, JUDGMENTS, PROMPTS, SCORES
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.recipes.cultivate.marks import marks_stage, scene_items_stage
from culturekit.recipes.cultivate.scores import PhraseVectors
from tests.recipes.built import built, scores_row, stored

Rows: TypeAlias = list[dict[str, Any]]

REFERENCES = {"objects": ("samovar", "hand drums"), "attire": ("silk sari",)}
EXTRACTED = {"objects": ("a samovar", "gondola"), "attire": ("beret",)}
OFFERED = ("beret", "gondola", "hand drums", "samovar", "silk sari")
PROMPT = {"benchmark": "cultivate", "kind": "activity", "language": "en", "template_id": "t", "concept": "games"}


def answered(ticks: Mapping[str, Sequence[Any]], *, flags: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Let three people fill in the form about two images: what each ticks, by question; `other` is a text."""
    rows = []
    for item, country in (("i-IR", "IR"), ("i-FR", "FR")):
        for person in range(3):
            about = {"item_id": item, "annotator": f"{country}-{person}", "annotator_region": country,
                     "in_region": True, "scheme": "cultivate", "seconds": 9.0,
                     "flags": list(flags) if person == 2 else []}  # fmt: skip
            rows += [{**about, "criterion": name, "value": 2.0, "choice": "2"} for name in ("faith", "exag")]
            if other := ticks.get("other"):
                rows.append({**about, "criterion": "other", "text": other[person]})
            rows += [
                {**about, "criterion": f"{question}/{phrase}", "value": float(phrase in ticks[question][person])}
                for question in ("shown", "relevant")
                for phrase in OFFERED
                if ticks[question][person]  # who ticks nothing has not answered the question
            ]
    return rows


def blank(item: str) -> Callable[[Rows], Rows]:
    """Leave an image without a tick of anybody."""
    return lambda rows: [row for row in rows if row["item_id"] != item or "/" not in row["criterion"]]


def marked(
    root: Path, ticks: Mapping[str, Sequence[Any]], *, flags: Sequence[str] = (), aggregate: str = "dimension",
    references: Mapping[str, Sequence[str]] = REFERENCES, change: Callable[[Rows], Rows] = list,
) -> Path:  # fmt: skip
    """List what is to be marked, have it marked, and score the marks; give the folder of the marks."""
    prompts = stored(root / "prompts", PROMPTS, [
        {"prompt_id": f"p-{iso}", "text": "A photo of wrestling.", "country": iso, **PROMPT} for iso in ("IR", "FR")
    ])  # fmt: skip
    descriptors = stored(root / "descriptors", DESCRIPTORS, [
        {"prompt_id": f"p-{iso}", "dimension": kind, "token": token, "style": "neutral", "necessity": "optional",
         "proposers": ["a"]}
        for iso in ("IR", "FR") for kind, tokens in references.items() for token in tokens
    ])  # fmt: skip
    extracted = stored(root / "extracted", JUDGMENTS, [
        {"image_id": f"i-{iso}", "prompt_id": f"p-{iso}", "judge": "j", "task": "extract", "item": token,
         "dimension": kind, "raw": "", "outcome": "ok"}
        for iso in ("IR", "FR") for kind, tokens in EXTRACTED.items() for token in tokens
    ])  # fmt: skip
    sample = stored(root / "sample", AUDIT_SAMPLE, [
        {"image_id": f"i-{iso}", "model": "m", "prompt_id": f"p-{iso}", "stratum": iso, "chance": 1.0,
         "concept": "games"}
        for iso in ("IR", "FR")
    ])  # fmt: skip
    scores = stored(root / "ahead", SCORES, [scores_row("align", params=f'{{"tau":0.52,"aggregate":"{aggregate}"}}')])
    marking = scene_items_stage(Files({"sample": sample}), prompts, descriptors, Numbered([extracted]))
    items = built(marking, root / "items") / "scene_items.parquet"
    phrases = built(embed_stage(EmbedSource(texts=(descriptors, extracted)), encoder="letters"), root / "phrases")
    annotations = stored(root / "answers", ANNOTATIONS, change(answered(ticks, flags=flags)))
    return built(marks_stage(annotations, items, descriptors, PhraseVectors(phrases), scores), root / "marks")
