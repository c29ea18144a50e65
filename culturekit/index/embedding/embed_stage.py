"""The stage that embeds images or texts."""

from functools import partial

from culturekit.core.spec_state import check_ready, spec_state
from culturekit.core.stage import Stage
from culturekit.core.stage_command import StageCommand
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource, embed_table
from culturekit.index.encoder import ENCODERS


def embed_stage(source: EmbedSource, options: EmbedOptions) -> Stage:
    """Embed images or texts into a folder of vectors.

    Scores and `index map` take it.
    """
    encoder = options.encoder
    return Stage(
        "vectors",
        "embed",
        1,
        lambda work: embed_table(work, source, encoder),
        source.inputs,
        {**source.options, "encoder": encoder, **spec_state(ENCODERS, encoder)},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_ready, ENCODERS, encoder),
    )


EMBED = StageCommand(
    embed_stage,
    "--images images/images.parquet --encoder embedded --out vectors",
    workers=True,
    engine=True,
    also=False,
)
