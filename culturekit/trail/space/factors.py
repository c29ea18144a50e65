"""What differs between two runs: dump, keys of root configs, wording, model, code; nothing else decides a row."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from culturekit.trail.space.behind import SpaceBehind

__all__ = [
    "CAUSES",
    "INCLUDE",
    "REVIEW",
    "WITH_CONCEPTS",
    "Cause",
    "Factor",
    "factors_between",
    "judge_of",
    "judged_for_money",
]

Cause: TypeAlias = Literal["dump", "config", "wording", "model", "code"]

CAUSES: tuple[Cause, ...] = ("dump", "config", "wording", "model", "code")

INCLUDE, REVIEW = "include", "review"
"""The keys of what a release takes in besides what was kept, and of what people decided about candidates."""

STAGES = ("ingest", "extract", "filter", "release")
WITH_CONCEPTS = ("extract", "filter", "release")


@dataclass(frozen=True, slots=True)
class Factor:
    """Something that differs between two runs.

    `key` is where: the key of a root config, an option, a file. `concept` is the one that it is about; empty for all.
    One that is not `replayable` cannot be exchanged alone: a row is then held against today's code and files.
    """

    cause: Cause
    key: str = ""
    concept: str = ""
    replayable: bool = True

    def __str__(self) -> str:
        """Name it as it stands in messages."""
        return f"{self.cause} ({self.key})" if self.key else self.cause


def factors_between(before: SpaceBehind, after: SpaceBehind) -> list[Factor]:
    """List what differs between two runs, in a fixed order."""
    found = [
        *dump_factors(before, after),
        *config_factors(before, after),
        *judge_factors(before, after),
        *code_factors(before, after),
    ]
    return sorted(set(found), key=lambda factor: (CAUSES.index(factor.cause), factor.concept, factor.key))


def dump_factors(before: SpaceBehind, after: SpaceBehind) -> Iterator[Factor]:
    """Compare the graphs; one that is another because it was read otherwise is no other dump."""
    if hash_of(before, "ingest") == hash_of(after, "ingest"):
        return
    a, b = (side.manifests["ingest"] for side in (before, after))
    if a.options != b.options:
        changed = sorted(name for name in {*a.options, *b.options} if a.options.get(name) != b.options.get(name))
        yield Factor("config", f"ingest.{', '.join(changed)}", replayable=False)
    if contents_of(a.inputs) != contents_of(b.inputs):
        yield Factor("dump")


def config_factors(before: SpaceBehind, after: SpaceBehind) -> Iterator[Factor]:
    """Compare the root configs key by key, and the other options and files of the user."""
    for kind in WITH_CONCEPTS:
        a, b = before.concepts(kind), after.concepts(kind)
        for name in sorted({*a, *b}):
            if name not in a or name not in b:
                yield Factor("config", "concepts", name)
                continue
            for key in sorted({*a[name], *b[name]}):
                if a[name].get(key) != b[name].get(key):
                    yield Factor("config", f"{name}.{key}", name)
    if before.input_hash("extract", "successors") != after.input_hash("extract", "successors"):
        yield Factor("config", "successors")
    if hash_of(before, "review") != hash_of(after, "review"):
        yield Factor("config", REVIEW)
    includes = [side.option("release", "include") for side in (before, after)]
    if None not in includes and includes[0] != includes[1]:
        yield Factor("config", INCLUDE)
    for role in ("countries", "own-countries"):
        if any(before.input_hash(kind, role) != after.input_hash(kind, role) for kind in WITH_CONCEPTS):
            yield Factor("config", f"{role}.yaml", replayable=False)


def judge_factors(before: SpaceBehind, after: SpaceBehind) -> Iterator[Factor]:
    """Compare who judged, and with what words; one who is paid may also have changed his mind."""
    if before.option("filter", "wording") != after.option("filter", "wording"):
        yield Factor("wording", "cspace_filter.txt")
    who = [(judge_of(side), side.input_hash("filter", "replies")) for side in (before, after)]
    if who[0] != who[1] or judged_for_money(before):
        yield Factor("model")


def code_factors(before: SpaceBehind, after: SpaceBehind) -> Iterator[Factor]:
    """Compare the versions of the stages."""
    for kind in STAGES:
        versions = [side.manifests[kind].version for side in (before, after) if kind in side.manifests]
        if len(set(versions)) > 1:
            yield Factor("code", kind, replayable=False)


def judge_of(side: SpaceBehind) -> Any:  # noqa: ANN401 - a SPEC, or what identifies a far model
    """Say who judged."""
    return side.option("filter", "judge"), side.option("filter", "model")


def judged_for_money(side: SpaceBehind) -> bool:
    """Tell whether the judge can answer the same question otherwise another time."""
    judge = side.option("filter", "judge")
    return not (isinstance(judge, str) and judge.partition("?")[0].partition(":")[0] in {"rules", "replay"})


def hash_of(side: SpaceBehind, kind: str) -> str:
    """Give the hash of all that a stage wrote; empty where there is no such stage."""
    return side.manifests[kind].sha256 if kind in side.manifests else ""


def contents_of(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Give the hashes of inputs by role."""
    return {role: record.sha256 for role, record in inputs.items()}
