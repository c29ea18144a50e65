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
        Entry(
            "open_clip",
            "culturekit.index.open_clip_encoder:make",
            "any model of open_clip, pictures and texts: a folder, a safetensors file or a name with weights",
            options="culturekit.index.open_clip_encoder:Options",
            extra="openclip",
        ),
        Entry(
            "inception",
            "culturekit.index.inception_encoder:make",
            "InceptionV3: features for FID and KID, class probabilities for the inception score; pictures only",
            options="culturekit.index.inception_encoder:Options",
            extra="embed",
        ),
    ],
)
