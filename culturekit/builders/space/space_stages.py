"""The stages from kept candidates to the cultural space and its prompts, of a foreign graph, and of what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from culturekit.builders.country_names import NAMES
from culturekit.builders.popularity import SOURCES
from culturekit.builders.prompt_templates import TEMPLATES
from culturekit.builders.space.checked import carry_check
from culturekit.builders.space.cspace import ReleaseOptions, check_formats, release
from culturekit.builders.space.space_files import import_foreign, import_prompts, import_space, is_typed
from culturekit.core.choices import PromptKind
from culturekit.core.package_data import shipped
from culturekit.core.stage import Stage
from culturekit.core.table import Table
from culturekit.core.tables import read_table, table_outcome
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import WORLD, country_files, use_countries_beside


def release_stage(kept: Sequence[Path], options: ReleaseOptions, checked: Path | None = None) -> Stage:
    """Release the cultural space from tables of kept candidates; `checked` is what people found of a sample of them."""
    source, formats = SOURCES.make(options.popularity), options.formats
    include = [] if options.include is None else [options.include]
    tables = {"kept" if number == 1 else f"kept-{number:02}": path for number, path in enumerate(kept, 1)}
    wording = {"templates": shipped(TEMPLATES)} if "public" in formats else {}
    check = {} if checked is None else {"checked": checked}

    def run(work: Work) -> Outcome:
        notes = {} if checked is None else carry_check(work, checked, kept)
        done = release(work, kept, options.roots, source, formats, include=include)
        return replace(done, notes={**done.notes, **notes})

    return Stage(
        "cspace",
        "release",
        5,
        run,
        {**tables, **check, **country_files(), **wording},
        {
            "popularity": dict(source.decides),
            **SOURCES.brought_by(options.popularity),
            "formats": list(formats),
            "include": include,
            **_released_concepts(options.roots),
        },
        packages=("polars",),
        before=partial(check_formats, formats),
    )


def _released_concepts(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give what a release reads: countries, languages, and the subconcepts that roots stand for, in their order."""
    return {
        "concepts": {
            concept.concept: {
                **concept.model_dump(mode="json", include={"concept", "countries", "languages"}),
                "roots": [
                    {"qid": root.qid, "subconcept": root.subconcept} for root in concept.roots if root.subconcept
                ],
            }
            for concept in concepts
        }
    }


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
    version = 5 if typed else 1  # a list that was typed: countries by whatever they are called, ids of its own
    packages = ("babel", "polars", "pycountry") if typed else ("polars",)
    inputs = {"published": path, **names}
    return Stage("cspace", "take-space", version, lambda work: import_space(work, path), inputs, packages=packages)


def named_by() -> dict[str, Path]:
    """Name the files by which countries of a list are found."""
    return {"world": shipped(WORLD), "names": shipped(NAMES), **country_files()}


def foreign_space_stage(path: Path, concept: str, columns: Mapping[str, str] | None = None) -> Stage:
    """Bring somebody else's list of artifacts into our form."""
    columns = columns or {}
    inputs = {"published": path, **named_by()}
    return Stage(
        "cspace", "import-space", 5, lambda work: import_foreign(work, path, concept, columns), inputs,
        {"concept": concept, **({"columns": dict(columns)} if columns else {})},
        packages=("babel", "polars", "pycountry"),
    )  # fmt: skip


def taken_prompts_stage(path: Path, space: Path, kinds: Sequence[PromptKind]) -> Stage:
    """Take in prompts, and hold them against the cultural space."""
    return Stage(
        "prompts",
        "take-prompts",
        2 if is_typed(path) else 1,
        lambda work: import_prompts(work, path, space, kinds),
        {"published": path, "cspace": space, **(named_by() if is_typed(path) else country_files())},
        {"kinds": list(kinds)},
        packages=("babel", "polars", "pycountry") if is_typed(path) else ("polars",),
    )
