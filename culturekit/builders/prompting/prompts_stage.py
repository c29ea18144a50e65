"""The stage that builds prompts of the artifacts of a cultural space."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from culturekit.builders.prompt_templates import TEMPLATES
from culturekit.builders.prompting.prompts import (
    PromptOptions,
    artifact_prompts,
    build_prompts,
    check_words,
    wordings_of,
)
from culturekit.builders.prompting.quotas import Group
from culturekit.core.digests import read_manifest
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, table_outcome
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import ENGLISH, Concept
from culturekit.kg.countries import countries, country_files, use_countries_beside

EARLIER = ("statements", "labels")  # the roles of tables that an earlier stage of the same run may still have to write


def prompts_stage(
    cspace: Path,
    options: PromptOptions,
    *,
    seed: int,
    concepts: Sequence[Concept] | None = None,
    released: Path | None = None,
) -> Stage:
    """Build prompts; quotas run over the countries of `concepts`, or of those that the space was released with.

    Words that `concepts` bring are used; one that no template speaks of is refused here, before anything runs.

    `released` is the space as it was published, where it was taken in.
    """
    options.check()
    use_countries_beside(released or cspace)
    groups = quota_groups(released or cspace, concepts) if options.draws else []
    for role, path in options.inputs().items():
        if role not in EARLIER and not path.is_file():
            raise UsageError("there is no such file", where=str(path), expected="a file that prompts are built from")
    known = tuple(concepts or ())
    check_words([concept.concept for concept in known], options.kinds, wordings_of(options, known))
    words = {
        concept.concept: concept.model_dump(mode="json", include={"prompts"})["prompts"]
        for concept in known
        if concept.prompts
    }
    return Stage(
        "prompts",
        "prompts",
        1 if options.languages == (ENGLISH,) else 2,
        lambda work: build_prompts(work, cspace, options, seed=seed, groups=groups, concepts=known),
        {"cspace": cspace, **country_files(), "templates": shipped(TEMPLATES), **options.inputs()},
        {
            **options.settings(),
            **({"groups": [list(group) for group in groups]} if groups else {}),
            **({"words": words} if words else {}),
        },
        {"draw": seed} if options.draws else {},
        packages=("polars",),
    )


def quota_groups(cspace: Path, concepts: Sequence[Concept] | None) -> list[Group]:
    """List every country of every concept: of the root configs, or of those that the space beside it was made with."""
    if concepts is not None:
        scopes: Mapping[str, Any] = {concept.concept: concept.countries for concept in concepts}
    else:
        manifest = read_manifest(cspace.parent)
        released = manifest is not None and manifest.stage == "release" and cspace.name in manifest.outputs
        stated: Any = manifest.options["concepts"] if manifest is not None and released else {}
        scopes = {name: config["countries"] for name, config in stated.items()}
    every = countries()
    return sorted((name, iso) for name, scope in scopes.items() for iso in (every if scope == "all" else scope))


def one_language_stage(prompts: Path, language: str) -> Stage:
    """Keep the prompts in one language: references show artifacts once, in however many languages models are asked."""

    def run(work: Work) -> Outcome:
        return table_outcome(work, PROMPTS, read_table(prompts, PROMPTS).filter(language=language))

    return Stage("reference-prompts", "prompts-in", 1, run, {"prompts": prompts}, {"language": language})


def named_artifacts_stage(space: Path) -> Stage:
    """Name every artifact once, so that pictures of references find theirs."""

    def name(work: Work) -> Outcome:
        return table_outcome(work, PROMPTS, artifact_prompts(read_table(space, CSPACE)))

    return Stage("reference-prompts", "name-artifacts", 1, name, {"cspace": space}, packages=("polars",))
