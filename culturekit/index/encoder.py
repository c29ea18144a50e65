"""What an encoder is: pictures or texts in, unit vectors out, and an identity that says what exactly made them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from culturekit.core.plugins import Contract, hold, state_of
from culturekit.core.registry import Entry, Registry

Vectors: TypeAlias = NDArray[np.float32]  # float32 (n, dim), unit norm
# one picture as a model takes it; the same shape and type for every picture of an encoder
Prepared: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Everything that decides a vector besides the picture; two identities never mix in one index."""

    name: str
    weights: str
    revision: str
    preprocessing: str
    dtype: str
    dim: int

    def as_options(self) -> dict[str, object]:
        """Give the identity as it stands in manifests."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TooLong:
    """A text that an encoder reads only in part: its place among those given, its tokens, and how many are read."""

    place: int
    tokens: int
    most: int


class Encoder(Protocol):
    """What turns something into vectors."""

    @property
    def identity(self) -> EncoderIdentity:
        """What exactly encodes."""

    @property
    def caveat(self) -> str:
        """What a reader of a score must know about this encoder; empty when nothing."""


@runtime_checkable
class ImageEncoder(Encoder, Protocol):
    """Turns pictures into vectors.

    Preparing and encoding are apart, so that threads can prepare the next pictures while a device encodes these.
    """

    @property
    def batch_size(self) -> int:
        """How many pictures are encoded at once; part of what decides the last bits of a vector."""

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring one picture, uint8 (height, width, 3), to the form that is encoded; any thread may call this."""

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Encode prepared pictures, `batch_size` at once."""

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Prepare and encode pictures; a vector never depends on which others are in its batch."""


@runtime_checkable
class TextEncoder(Encoder, Protocol):
    """Turns texts into vectors; one that reads pictures too puts both into one space."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts; what is longer than the model's context is cut, and `too_long` says which those are."""

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts that are longer than the model's context."""


@runtime_checkable
class TokenEncoder(TextEncoder, Protocol):
    """Encodes single tokens of texts, too."""

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Give the vectors of each text's tokens, (tokens, dim), at least one."""


# The encoders that culturekit knows by name.

_LENGTHS = (0.99, 1.01)  # of unit vectors, as half precision computes them


def held_array(answer: object, shape: tuple[int, ...], dtype: str = "float64") -> NDArray[Any]:
    """Take an array of a shape that holds finite numbers; float64 stands for floats of any width."""
    is_array = isinstance(answer, np.ndarray)
    kind = f"{answer.dtype} {answer.shape}" if isinstance(answer, np.ndarray) else type(answer).__name__
    found: NDArray[Any] = np.asarray(answer)
    fits = found.dtype == dtype or (found.dtype.kind == "f" and dtype == "float64")
    hold(is_array and fits and found.shape == shape, f"{dtype} {shape}", kind)
    hold(bool(np.isfinite(found).all()), "finite numbers", "numbers that are not finite")
    return found


def vectors(encoder: Encoder, answer: object, asked: Sequence[object]) -> Vectors:
    """Take one unit vector for each thing that was asked about."""
    found: Vectors = held_array(answer, (len(asked), encoder.identity.dim), "float32")
    lengths = np.linalg.norm(found, axis=1)
    wrong = lengths[(lengths < _LENGTHS[0]) | (lengths > _LENGTHS[1])]
    hold(not wrong.size, "vectors of length 1", f"one of length {wrong[0]:.4g}" if wrong.size else "")
    return found


def _identified(encoder: Encoder, identity: EncoderIdentity) -> EncoderIdentity:
    """Let the state of the plugin be part of what never mixes in one index."""
    return replace(identity, revision=f"{identity.revision}, {state_of(encoder)}")


_ENCODER = Contract(
    (ImageEncoder, TextEncoder),
    answers={"identity": _identified, "encode_prepared": vectors, "encode_images": vectors, "encode_texts": vectors},
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
            packages=("torch", "torchvision"),
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
            "culturekit.recipes.inclusion.world:make_encoder",
            "objects and regions of a simulated world, as texts name and pictures show them, without weights",
            options="culturekit.recipes.inclusion.world:EncoderOptions",
        ),
        Entry(
            "simulated-portraits",
            "culturekit.recipes.linguistic.world:make_encoder",
            "what texts name and simulated portraits show, in one space, without weights",
            options="culturekit.recipes.linguistic.world:EncoderOptions",
            reads="recipes/linguistic/linguistic_lists.yaml",
        ),
    ],
    point="encoder",
    contract=_ENCODER,
)
