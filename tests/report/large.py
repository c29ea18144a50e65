"""A report as large as people make them: pictures of many prompts and models, made by hand."""

from dataclasses import replace

from culturekit.report.thumbnails import (
    ARTIFACTS,
    PER_MODEL,
    PROMPTS_SHOWN,
    SHOTS,
    TILES,
    Mosaic,
    MosaicModel,
    PromptImages,
    PromptLine,
    Tile,
)
from culturekit.report.write import ReportData
from tests.report.pages import figure, line, page

MODELS = ("atlas", "bestseller", "compatriot", "echo", "mirage")
CONCEPTS = ("art", "cuisine", "landmarks")


def large_page(images: int) -> ReportData:
    """A page that shows so many images of five models, each with what it was mapped to."""
    data = page()
    names = iter(range(images))

    def tiles(count: int) -> tuple[Tile, ...]:
        taken = [number for _, number in zip(range(count), names, strict=False)]
        return tuple(Tile(f"{n:016x}", f"{n:016x}.png", f"A dish with a name {n % 700}", 0.9, 0.1) for n in taken)

    models = tuple(line(name, 0.5, 0.5, free=0, similarity=0.9) for name in MODELS)
    shots = tuple(
        replace(data.shots[0], image_id=f"s{n}", model=model, concept=concept,
            thumbnail=f"{n:016x}.png") for model in MODELS for concept in CONCEPTS for n in range(SHOTS)
    )  # fmt: skip
    cells = tuple((figure(0.5, 1), figure(0.4, 2)) for _ in range(4))
    table = replace(
        data.tables[0], concepts=(None, *CONCEPTS), rows=tuple((model, cells) for model in MODELS), limits=()
    )
    mosaics = tuple(
        MosaicModel(
            model, images // 5, 3, 9, images // 5 - 12, 300,
            tuple(
                Mosaic(f"Q{n}", f"A dish with a name {n}", "IN", 40, 0.02, 0.9, 0.1, None, tiles(TILES))
                for n in range(ARTIFACTS)
            ),
        )
        for model in MODELS
    )  # fmt: skip
    shown = min(PROMPTS_SHOWN, max(images // (PER_MODEL * len(MODELS)), 1))
    prompts = tuple(
        PromptLine(f"p-{n}", f"A photograph of dish number {n}, as people eat it", CONCEPTS[n % 3], ((0.5, 4),) * 5)
        for n in range(shown)
    )
    left = images - sum(len(one.tiles) for found in mosaics for one in found.mosaics)
    each = -(-left // (shown * len(MODELS)))
    drilled = tuple(
        PromptImages(p.prompt_id, p.text, p.concept, tuple((model, tiles(each), each) for model in MODELS))
        for p in prompts
    )
    return replace(
        data, models=models, shots=shots, tables=(table,) * 10, mosaics=mosaics, prompts=prompts, prompt_images=drilled,
        shares=None, extremes=None, breakdown=None,
    )  # fmt: skip
