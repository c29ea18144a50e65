"""The stages from kept candidates to the cultural space and its prompts, of a foreign graph, and of what changed."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from culturekit.builders.country_names import NAMES
from culturekit.builders.popularity import SOURCES
from culturekit.builders.prompting.prompts import PromptOptions, build_prompts, check_words, name_artifacts, wordings_of
from culturekit.builders.prompting.quotas import Group
from culturekit.builders.space.cspace import ReleaseOptions, check_formats, release
from culturekit.builders.space.space_files import import_foreign, import_prompts, import_space, is_typed
from culturekit.core.choices import GraphFormat, PromptKind
from culturekit.core.digests import read_manifest
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.registry import needing
from culturekit.core.schemas import DIFF
from culturekit.core.stage import Stage
from culturekit.core.table import Table
from culturekit.core.tables import read_table, table_outcome, write_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import WORLD, countries, country_files, use_countries_beside
from culturekit.kg.inspection.compare import write_comparison
from culturekit.recipes.steps.asking_stage import released_concepts
from culturekit.trail.space_causes import SpaceBehind, cause_totals, compare_spaces

TEMPLATES = "builders/wording/cube_prompts.yaml"
STATEMENTS = "statements"
"""The role of a table that an earlier stage of the same run may still have to write."""


def release_stage(kept: Sequence[Path], options: ReleaseOptions) -> Stage:
    """Release the cultural space from tables of kept candidates."""
    source, formats = SOURCES.make(options.popularity), options.formats
    include = [] if options.include is None else [options.include]
    tables = {"kept" if number == 1 else f"kept-{number:02}": path for number, path in enumerate(kept, 1)}
    wording = {"templates": shipped(TEMPLATES)} if "public" in formats else {}
    return Stage(
        "cspace",
        "release",
        5,
        lambda work: release(work, kept, options.roots, source, formats, include=include),
        {**tables, **country_files(), **wording},
        {
            "popularity": dict(source.decides),
            **SOURCES.brought_by(options.popularity),
            "formats": list(formats),
            "include": include,
            **released_concepts(options.roots),
        },
        packages=("polars",),
        before=partial(check_formats, formats),
    )


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
        if role != STATEMENTS and not path.is_file():
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
        1,
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


def compare_stage(a: Path, b: Path) -> Stage:
    """Compare two graphs or two extractions."""
    return Stage(
        "diff",
        "diff",
        1,
        lambda work: write_comparison(work, a, b),
        {"before": a, "after": b},
        {},
        packages=("polars",),
    )


def import_graph_stage(path: Path, form: GraphFormat) -> Stage:
    """Read a graph in one of the formats that `kg export` writes."""
    with needing("kg", "culturekit kg import"):
        from culturekit.kg.exchange.graph_files import import_graph

    return Stage(
        "graph", "import-graph", 1, lambda work: import_graph(work, path, form), {"dump-0": path}, {"format": form},
        packages=("networkx", "polars", "rdflib"),
    )  # fmt: skip


def space_diff_stage(before: Path, after: Path) -> Stage:
    """Compare two cultural spaces; the keys of all stages behind them are part of what decides."""
    sides = [SpaceBehind.found_at(path) for path in (before, after)]
    use_countries_beside(*(side.file for side in sides))
    return Stage(
        "diff",
        "space-diff",
        2,
        lambda work: write_space_diff(work, *sides),
        {"before": sides[0].file, "after": sides[1].file},
        {
            f"behind {word}": {
                **{kind: manifest.key for kind, manifest in sorted(side.manifests.items())},
                "missing": list(side.missing),
            }
            for word, side in zip(("before", "after"), sides, strict=True)
        },
        packages=("polars",),
    )


def write_space_diff(work: Work, before: SpaceBehind, after: SpaceBehind) -> Outcome:
    """Write the differences; their totals by cause are in the notes."""
    found = compare_spaces(before, after, work)
    write_table(work.out, DIFF, found.rows)
    counts = {"diff": found.rows.height, **dict(found.rows.group_by("change").len().iter_rows())}
    notes = {"factors": found.factors, "missing": found.missing, "untold": found.untold}
    return Outcome(counts, notes={**notes, "causes": cause_totals(found.rows)})


# The stages that import a cultural space, prompts, or another table that was made elsewhere.


def table_stage(path: Path, table: Table) -> Stage:
    """Take in a table of ours, and make sure that it is one."""

    def run(work: Work) -> Outcome:
        rows = read_table(path, table)
        return table_outcome(work, table, rows)

    return Stage(table.name, "take-table", 1, run, {"published": path}, {"table": table.name})


def taken_space_stage(path: Path) -> Stage:
    """Take in a cultural space: a table of ours, or a file in the public CUBE layout."""
    typed = path.suffix == ".csv"
    use_countries_beside(path)
    names = named_by() if typed else country_files()
    version = 4 if typed else 1  # a list that was typed: countries by whatever they are called, ids of its own
    packages = ("babel", "polars", "pycountry") if typed else ("polars",)
    inputs = {"published": path, **names}
    return Stage("cspace", "take-space", version, lambda work: import_space(work, path), inputs, packages=packages)


def named_by() -> dict[str, Path]:
    """Name the files by which countries of a list are found."""
    return {"world": shipped(WORLD), "names": shipped(NAMES), **country_files()}


def foreign_space_stage(path: Path, concept: str) -> Stage:
    """Bring somebody else's list of artifacts into our form."""
    inputs = {"published": path, **named_by()}
    return Stage(
        "cspace", "import-space", 4, lambda work: import_foreign(work, path, concept), inputs, {"concept": concept},
        packages=("babel", "polars", "pycountry"),
    )  # fmt: skip


def taken_prompts_stage(path: Path, space: Path, kinds: Sequence[PromptKind]) -> Stage:
    """Take in prompts, and hold them against the cultural space."""
    return Stage(
        "prompts",
        "take-prompts",
        1,
        lambda work: import_prompts(work, path, space, kinds),
        {"published": path, "cspace": space, **(named_by() if is_typed(path) else country_files())},
        {"kinds": list(kinds)},
        packages=("babel", "polars", "pycountry") if is_typed(path) else ("polars",),
    )


def named_artifacts_stage(space: Path) -> Stage:
    """Name every artifact once, so that pictures of references find theirs."""
    return Stage(
        "reference-prompts",
        "name-artifacts",
        1,
        lambda work: name_artifacts(work, space),
        {"cspace": space},
        packages=("polars",),
    )
