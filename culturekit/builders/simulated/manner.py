"""In what manner a simulated model answers: what it leaves out, adds, lets pass, and says in other words."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from culturekit.generation.simulated.scenes.dials import Dial, read_dial
from culturekit.generation.simulated.scenes.vocabulary import world

__all__ = ["Manner", "Options", "plain"]

OTHER_WORDS = ("a {}", "the {}", "some {}")
"""How a thing is called by somebody who does not use its usual name."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulated model errs.

    All but `seed` are dials: a share, then exceptions by group (GN, GS) or ISO code, such as `0.1,GS:0.35`.

    Attributes:
        omits: How much of what it knows, or sees, it does not say.
        invents: How often it adds something of another country, or a sentence that stands nowhere.
        lenient: How much of what belongs there it says it sees although it is not there, how many wrong candidates it
            lets pass as a refiner, and how much too good its ratings are.
        halo: How much more lenient it is with a picture full of stereotypes.
        rewords: How often it says something in other words.
        repeats: How often it proposes a caption again that it was shown, in its words or nearly so.
        prose: How often it talks about its task in place of a caption.
        seed: Models that differ in nothing else err in other places by it.
    """

    omits: str = "0"
    invents: str = "0"
    lenient: str = "0"
    halo: str = "0"
    rewords: str = "0"
    repeats: str = "0"
    prose: str = "0"
    seed: int = 0


class Manner:
    """Decides what is left out, added, let pass and reworded: by what it is about, the same for ever."""

    def __init__(self, options: Options, name: str) -> None:
        """Read the dials; a name of its own makes a model err in its own places."""
        self.key = f"{name} {options.seed}"
        self.omits = read_dial("omits", options.omits)
        self.invents = read_dial("invents", options.invents)
        self.lenient = read_dial("lenient", options.lenient)
        self.halo = read_dial("halo", options.halo)
        self.rewords = read_dial("rewords", options.rewords)
        self.repeats = read_dial("repeats", options.repeats)
        self.prose = read_dial("prose", options.prose)

    def number(self, *about: object) -> float:
        """Draw a number in [0, 1) that belongs to what is decided."""
        key = "\0".join(map(str, (self.key, *about))).encode()
        return int.from_bytes(hashlib.sha256(key).digest()[:6], "big") / 2**48

    def yields(self, dial: Dial, country: str | None, *about: object) -> bool:
        """Decide one thing by a dial."""
        return self.number(*about) < dial.of_country(country)

    def not_omitted(self, tokens: Iterable[str], country: str | None, *about: object) -> list[str]:
        """Keep what is not omitted."""
        return [token for token in tokens if not self.yields(self.omits, country, "omits", *about, token)]

    def invented(self, tokens: Iterable[str], dimension: str, country: str, *about: object) -> list[str]:
        """Invent beside what is said: things of other countries."""
        foreign = world().foreign(dimension, country)
        return [
            foreign[int(self.number("which", *about, token) * len(foreign))]
            for token in tokens
            if self.yields(self.invents, country, "invents", *about, token)
        ]

    def worded(self, token: str, country: str | None, *about: object) -> str:
        """Say something in its usual words or in others."""
        if not self.yields(self.rewords, country, "rewords", *about, token):
            return token
        return OTHER_WORDS[int(self.number("words", *about, token) * len(OTHER_WORDS))].format(token)


def plain(token: str) -> str:
    """Give the usual words for what is said in these or in others."""
    said = " ".join(token.casefold().split())
    for words in OTHER_WORDS:
        said = said.removeprefix(words.removesuffix("{}"))
    return said
