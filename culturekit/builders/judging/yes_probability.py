"""VQAScore's question about an image, and how probable "Yes" is among what a model could reply."""

from collections.abc import Sequence

from culturekit.builders.judging.shown_images import ID_LETTERS
from culturekit.builders.wordings import wording
from culturekit.errors import UsageError
from culturekit.llm.client import Image, Request
from culturekit.llm.clients.token_listing import TokenListing, WeighedToken
from culturekit.metrics.questions.yes_probabilities import Share, vqa_score
from culturekit.storage.digests import digest_bytes

__all__ = ["REQUEST", "TASK", "probability_of_yes", "vqa_request", "vqa_wording", "wording_digest"]

TASK = "vqascore"
"""The task under which probabilities stand among judgments."""

REQUEST = "image.vqascore"
QUESTION = 'Does this figure show "{text}"? Please answer yes or no.'
YES, NO = "yes", "no"
TEXTS = tuple(f"{space}{word}" for word in ("Yes", "yes", "YES", "No", "no", "NO") for space in ("", " "))
AROUND = " \t\r\n\u2581\u0120\u010a.,!\"'*"
"""What may stand around the word in a token: white space, also as tokenizers write it, and marks."""


def vqa_wording() -> str:
    """Read the instructions."""
    return wording("vqascore")


def wording_digest() -> str:
    """Hash all that is said besides the text: instructions and question."""
    return digest_bytes(f"{vqa_wording()}\n{QUESTION}".encode())


def vqa_request(picture: Image, text: str, *, instructions: str) -> Request:
    """Ask whether an image shows a text, for the probability of yes; nothing else about the image is given away."""
    return Request(
        REQUEST,
        instructions,
        {"id": picture.sha256[:ID_LETTERS], "question": QUESTION.format(text=text)},
        TokenListing,
        images=(picture,),
        max_tokens=1,
        weighed=TEXTS,
    )


def probability_of_yes(tokens: Sequence[WeighedToken], *, of: Share) -> float | None:
    """Give P("Yes") from listed tokens; None where neither yes nor no is listed, or the listing is none.

    Tokens that say yes add up, whatever their case; of the whole vocabulary a word that is not listed has no share.
    """
    words = [token.token.strip(AROUND).casefold() for token in tokens]
    yes = [place for place, word in enumerate(words) if word == YES]
    no = [place for place, word in enumerate(words) if word == NO]
    if not yes and not no:
        return None
    row = [min(token.logprob, 0.0) for token in tokens] + [-float("inf")] * 2
    unlisted_yes, unlisted_no = len(words), len(words) + 1
    try:
        return float(vqa_score([row], yes=yes or [unlisted_yes], no=no or [unlisted_no], of=of)[0])
    except UsageError:  # probabilities that add up to more than 1, or are all 0
        return None
