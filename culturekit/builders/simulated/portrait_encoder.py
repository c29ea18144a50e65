"""An encoder of simulated portraits: what their labels say and what texts name, blurred, and with a prejudice."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from culturekit.builders.simulated.simulated_encoder import SimulatedEncoder, direction
from culturekit.core.registry import Spec
from culturekit.generation.simulated.scenes.portraits import MODERN, TRADITIONAL, asked_in, read_label, thing_code
from culturekit.index.encoder import EncoderIdentity, Vectors

FAR = ("AF", "AR", "AS", "LA")
"""Groups that the prejudice is about."""


@dataclass(frozen=True, slots=True)
class Options:
    """How well the encoder knows what it compares.

    Attributes:
        blur: The length of the noise in each vector, against 1 for what is named or shown.
        prejudice: How much of the look of old places it sees in those of some groups, whatever they look like.
    """

    blur: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0
    prejudice: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0


class PortraitEncoder(SimulatedEncoder):
    """Adds up directions, one for each thing; of a dialect it reads the words, and not what they mean."""

    def __init__(self, options: Options) -> None:
        """Take how blurred its vectors are, and how prejudiced."""
        super().__init__(options.blur)
        self.prejudice = options.prejudice
        told = f"things of simulated portraits, blur {options.blur:g}, prejudice {options.prejudice:g}"
        self.identity = EncoderIdentity("simulated-portraits", "none", "1", told, "float32", self.identity.dim)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Encode pictures by their labels; one without a label shows nothing."""
        far = {thing_code(f"group {code}") for code in FAR}
        found = []
        for picture in pictures:
            label = read_label(picture) or ()
            vector = self.vector(frozenset(map(str, label)), hashlib.sha256(picture.tobytes()).hexdigest())
            if far & set(label):
                for manner, sign in ((TRADITIONAL, 1), (MODERN, -1)):
                    vector = vector + sign * self.prejudice * direction(str(thing_code(manner)))
            found.append(vector / np.linalg.norm(vector))
        return self.stacked(found)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts by what their words say."""
        return self.stacked(self.vector(self.named(text), text) for text in texts)

    def named(self, text: str) -> frozenset[str]:
        """Give the things that a text names; one of another world has a direction of its own."""
        asked = asked_in(text)
        if asked is None:
            return frozenset((text,))
        things = [asked.read, *(["person"] if asked.person else [f"group {asked.code}"] if asked.code else [])]
        return frozenset(str(thing_code(thing)) for thing in things)


def make(spec: Spec) -> PortraitEncoder:
    """Make the encoder that a SPEC describes."""
    return PortraitEncoder(spec.read(Options, such_as="blur=0.5"))
