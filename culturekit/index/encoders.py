"""The encoders that culturekit knows by name."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from culturekit.contract import Contract, hold, state_of
from culturekit.index.encoder import Encoder, EncoderIdentity, ImageEncoder, TextEncoder, Vectors
from culturekit.registry import Entry, Registry

__all__ = ["ENCODERS"]

LENGTHS = (0.99, 1.01)
"""Of unit vectors, as half precision computes them."""


def vectors(encoder: Encoder, answer: object, asked: Sequence[object]) -> Vectors:
    """Take one unit vector for each thing that was asked about."""
    shape = (len(asked), encoder.identity.dim)
    kind = f"{answer.dtype} {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
    hold(kind == f"float32 {shape}" and isinstance(answer, np.ndarray), f"float32 {shape}", kind)
    found: Vectors = np.asarray(answer)
    hold(bool(np.isfinite(found).all()), "finite numbers", "numbers that are not finite")
    lengths = np.linalg.norm(found, axis=1)
    wrong = lengths[(lengths < LENGTHS[0]) | (lengths > LENGTHS[1])]
    hold(not wrong.size, "vectors of length 1", f"one of length {wrong[0]:.4g}" if wrong.size else "")
    return found


def identified(encoder: Encoder, identity: EncoderIdentity) -> EncoderIdentity:
    """Let the state of the plugin be part of what never mixes in one index."""
    return replace(identity, revision=f"{identity.revision}, {state_of(encoder)}")


ENCODER = Contract(
    (ImageEncoder, TextEncoder),
    answers={"identity": identified, "encode_prepared": vectors, "encode_images": vectors, "encode_texts": vectors},
    says=lambda encoder: {"identity": encoder.identity.as_options()},
)

ENCODERS: Registry[Encoder] = Registry(
    "encoder",
    [
        Entry(
            "transformers",
            "culturekit.index.models.transformers_encoder:make",
            "CLIP, SigLIP, SigLIP 2, DINOv2 or DINOv3 from a folder or the hub: pictures, and texts but for DINO",
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
        Entry(
            "letters",
            "culturekit.index.models.letters_encoder:make",
            "words and runs of letters, without weights; for phrases of simulated worlds; texts only",
        ),
        Entry(
            "simulated",
            "culturekit.builders.simulated.simulated_encoder:make",
            "what texts name and scenes show of a simulated world, in one space, without weights",
            options="culturekit.builders.simulated.simulated_encoder:Options",
        ),
        Entry(
            "simulated-objects",
            "culturekit.builders.simulated.object_encoder:make",
            "objects and regions of a simulated world, as texts name and pictures show them, without weights",
            options="culturekit.builders.simulated.object_encoder:Options",
        ),
        Entry(
            "simulated-portraits",
            "culturekit.builders.simulated.portrait_encoder:make",
            "what texts name and simulated portraits show, in one space, without weights",
            options="culturekit.builders.simulated.portrait_encoder:Options",
        ),
    ],
    point="encoder",
    contract=ENCODER,
)
