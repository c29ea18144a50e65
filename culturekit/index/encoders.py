"""The encoders that culturekit knows by name."""

from culturekit.index.encoder import Encoder
from culturekit.registry import Entry, Registry

__all__ = ["ENCODERS"]

ENCODERS: Registry[Encoder] = Registry(
    "encoder",
    [
        Entry(
            "transformers",
            "culturekit.index.models.transformers_encoder:make",
            "CLIP, SigLIP, SigLIP 2 or DINOv2 from a folder or the hub: pictures, and texts but for DINOv2",
            options="culturekit.index.models.transformers_encoder:TransformersOptions",
            extra="embed",
            packages=("torch", "transformers"),
        ),
        Entry(
            "open_clip",
            "culturekit.index.models.open_clip_encoder:make",
            "any model of open_clip, pictures and texts: a folder, a safetensors file or a name with weights",
            options="culturekit.index.models.open_clip_encoder:Options",
            extra="openclip",
            packages=("open_clip",),
        ),
        Entry(
            "sentence",
            "culturekit.index.models.sentence_encoder:make",
            "a model of sentence-transformers from a folder or the hub: texts only",
            options="culturekit.index.models.torch_device:TorchOptions",
            extra="embed",
            packages=("sentence_transformers",),
        ),
        Entry(
            "inception",
            "culturekit.index.models.inception_encoder:make",
            "InceptionV3: features for FID and KID, class probabilities for the inception score; pictures only",
            options="culturekit.index.models.inception_encoder:Options",
            extra="embed",
            packages=("torch",),
        ),
        Entry(
            "embedded",
            "culturekit.index.models.embedded_encoder:make",
            "colours and edges, without weights; for pictures of the simulated backend only",
        ),
    ],
)
