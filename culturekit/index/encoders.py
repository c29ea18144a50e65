"""The encoders that culturekit knows by name."""

from culturekit.index.encoder import Encoder
from culturekit.registry import Entry, Registry

__all__ = ["ENCODERS"]

ENCODERS: Registry[Encoder] = Registry(
    "encoder",
    [
        Entry(
            "embedded",
            "culturekit.index.embedded_encoder:make",
            "colours and edges, without weights; for pictures of the simulated backend only",
        ),
    ],
)
