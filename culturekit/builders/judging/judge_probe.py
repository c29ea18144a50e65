"""Whether a server of one's own can weigh yes against no: one small picture and one small question tell."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from culturekit.builders.asking import wording
from culturekit.builders.judging.image_judge import probability_of_yes, vqa_request
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.llm.client import Client, Failure, FreeClient, KeyHolder, Outgoing, Reply
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.image_slots import image_of
from culturekit.llm.models import model_for
from culturekit.llm.prices import check_alive
from culturekit.llm.probing import SECONDS, probe_request, probe_warning
from culturekit.llm.rows import WeighedToken

SHOWS = "a red square"
UNLISTED = (
    "VQAScore needs a server that lists `top_logprobs`: vLLM does, for a model that does not think first, such as "
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was asked of a judge: `broken` is what VQAScore cannot do without, `absent` what it can."""

    name: str
    level: Literal["ok", "absent", "broken"]
    found: str
    hint: str = ""


def probe_judge(spec: str) -> list[Finding]:
    """Ask a judge whether it lists probabilities of tokens, and whether it holds replies to a schema.

    Raises:
        UsageError: the SPEC names nothing that is asked over a network, or cannot be read.
    """
    client = CLIENTS.make(spec)
    if isinstance(client, FreeClient):
        raise UsageError(
            "this judge is no server that could be probed",
            where="--judge",
            expected=f"openai:MODEL with a base_url, such as {model_for('weighing')}",
            found=spec,
            hint="A model of local:FOLDER gives exact probabilities and needs no probe.",
        )
    check_alive(client.identity, go_on=True)
    return asyncio.run(_all_findings(client))


async def _all_findings(client: Client) -> list[Finding]:
    """Ask both questions; a server that does not answer the first is not asked the second."""
    picture = image_of(np.full((64, 64, 3), (255, 0, 0), np.uint8))
    try:
        weighing = client.compose(vqa_request(picture, SHOWS, instructions=wording("vqascore")))
        if isinstance(client, KeyHolder):
            client.ready()
        listed = await _reply(client, weighing)
        held = await _reply(client, client.compose(probe_request()))
    except Failure as failure:
        hint = f"Is the server running at {client.identity.base_url}, and does it serve the model {client.model}?"
        return [Finding(client.model, "broken", f"no reply: {failure.detail or failure.kind}", hint)]
    except CultureKitError as error:
        return [
            Finding(client.model, "broken", error.problem, f"take {error.expected}" if error.expected else error.hint)
        ]
    finally:
        await client.close()
    # VQAScore needs no schema; every other task does.
    warning = probe_warning(client, held)
    schema = Finding("schema", "absent" if warning else "ok", warning or "replies are held to it")
    return [*_of_listing(listed), schema]


async def _reply(client: Client, outgoing: Outgoing) -> Reply:
    """Ask once."""
    try:
        async with asyncio.timeout(SECONDS):
            return client.read(await client.send(outgoing))
    except TimeoutError:
        raise Failure("timeout", f"nothing came in {SECONDS:g} s") from None


def _of_listing(reply: Reply) -> Iterator[Finding]:
    """Say what its listing of the first token is worth."""
    name, other = "token probabilities", UNLISTED + model_for("weighing")
    if not reply.tokens:
        yield Finding(name, "broken", "none are listed", other)
        return
    yes = probability_of_yes([WeighedToken(*one) for one in reply.tokens], of="yes-no")
    first = ", ".join(repr(token) for token, _ in reply.tokens[:3])
    if yes is None:
        yield Finding(name, "broken", f"listed, without yes or no: {first}", other)
    else:
        yield Finding(name, "ok", f"listed; P(Yes) that {SHOWS} shows {SHOWS} is {yes:.2f}")
