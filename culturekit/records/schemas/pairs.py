"""The tables of captions and their images: what strategies keep, under which licence it goes out, what it trains."""

from culturekit.records.tables import declare

__all__ = ["EXPORTED", "RIGHTS", "SELECTED", "TRAINING"]

SELECTED = declare(
    "selected",
    key="strategy item",
    columns="strategy str, item str, rank u32?, value f64?, kept bool, missing list[str], reason str?",
)
"""Every item under every strategy, kept or not. `value` is what it was ranked by, for `random` its draw; equal values
stand in order of the items, and one without has no rank. `missing` are those of the strategy's terms (text, image,
object) that the item lacks; `reason` says why it is not kept."""

RIGHTS = declare("rights", key="image_id", columns="image_id str, licence str?, source str?, author str?")
"""Under which licence an image may be passed on, where it is from, and whose it is."""

EXPORTED = declare(
    "exported",
    key="form path",
    columns="""
    form str, path str, item str, rank u32, text str, sha256 str, licence str?, source str?, author str?
    """,
)
"""Every picture that was exported, with its caption; `path` is that in the folder, or in the shard `a.tar/b`."""

TRAINING = declare("training", key="step", columns="step u32, loss f64?, gradient f64?, probe f64?")
"""Every step of a training: the loss of its batch, and the length of its gradient before that was cut. `probe` is the
loss on the same pairs with the same noise, before the first step and at checkpoints."""
