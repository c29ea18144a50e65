"""A model on a loopback server that proposes captions as the simulated one does; now and then it declines, or talks."""

from hashlib import blake2b

from culturekit.builders.captions.expanding import EXPAND, ProposedCaptions
from culturekit.builders.simulated.simulated_model import make
from culturekit.llm.client import Request
from culturekit.registry import parse_spec
from tests.llm.server import Answer, Question

MODEL = make(parse_spec("simulated?repeats=0.2&prose=0.05"))


def proposes(question: Question) -> Answer | str | None:
    """Answer one question, always the same way; the probe of a server is left to it."""
    if "wanted" not in question.data:
        return None
    drawn = blake2b(question.row.encode(), digest_size=1).digest()[0]
    if drawn % 19 == 0:
        return Answer("I would rather not.", "refusal")
    if drawn % 13 == 0:
        return "Sure! A red door. A blue door."
    return MODEL.ask(Request(EXPAND, "", question.data, ProposedCaptions)).text
