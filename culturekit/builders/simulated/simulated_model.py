"""The simulated language and vision model: it knows the simulated world, and errs as its dials say."""

import msgspec

from culturekit.builders.simulated.captioning import CAPTIONING
from culturekit.builders.simulated.knowing import KNOWING
from culturekit.builders.simulated.looking import LOOKING, WEIGHED, seen, weigh_yes
from culturekit.builders.simulated.manner import Manner, Options
from culturekit.errors import UsageError
from culturekit.llm.client import Reply, Request
from culturekit.registry import Spec

__all__ = ["SimulatedModel", "make"]

TOLD = {**KNOWING, **CAPTIONING}


class SimulatedModel:
    """Answers the questions of the recipes about activities, descriptors, captions and pictures."""

    caveat = "The simulated model knows a made-up world only, and errs in it as it is told to: it stands for no model."

    def __init__(self, manner: Manner, model: str) -> None:
        """Take how it answers, and its name."""
        self.manner = manner
        self.model = model

    def ask(self, request: Request) -> Reply:
        """Answer from what it knows or sees."""
        if request.task == WEIGHED:
            return Reply("", tokens=weigh_yes(request, self.manner))
        if request.task in LOOKING:
            image = request.images[0]
            answer = LOOKING[request.task](image, seen(image), request.data, self.manner)
        elif request.task in TOLD:
            answer = TOLD[request.task](request.data, self.manner)
        else:
            raise UsageError(
                f"the simulated model was never told of {request.task}",
                expected=" or ".join(sorted([*TOLD, *LOOKING, WEIGHED])),
                hint="Name a real model instead, or rules where they suffice.",
            )
        return Reply(msgspec.json.encode(answer).decode())


def make(spec: Spec) -> SimulatedModel:
    """Make the model that a SPEC describes; several of one kind have names of their own."""
    if not spec.target.replace("-", "x").isalnum() and spec.target:
        raise UsageError(
            "a simulated model has a plain name", expected="simulated or simulated:WORD", found=spec.target
        )
    name = f"simulated-{spec.target}" if spec.target else "simulated"
    return SimulatedModel(Manner(spec.read(Options), name), name)
