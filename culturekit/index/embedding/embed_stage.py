"""The stage that embeds images or texts."""

from functools import partial

from culturekit.core.errors import UsageError
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
    if options.give != "text" and source.images is not None:
        raise UsageError("pictures have no tokens here", expected="--texts beside --give", found="--images")
    given = {} if options.give == "text" else {"give": options.give}
    return Stage(
        "vectors",
        "embed",
        1,
        lambda work: embed_table(work, source, encoder, options.give),
        source.inputs,
        {**source.options, "encoder": encoder, **given, **spec_state(ENCODERS, encoder)},
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
