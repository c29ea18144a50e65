"""The stages that import a cultural space, prompts, or another table that was made elsewhere."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.builders.country_names import NAMES
from culturekit.builders.prompting.artifact_names import name_artifacts
from culturekit.builders.space.foreign_space import import_foreign
from culturekit.builders.space.imported_space import import_prompts, import_space
from culturekit.kg.countries import WORLD, country_files, use_countries_beside
from culturekit.records.choices import PromptKind
from culturekit.records.tables import Table
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.package_data import shipped
from culturekit.storage.tables import read_table, table_outcome

__all__ = ["foreign_space_stage", "named_artifacts_stage", "table_stage", "taken_prompts_stage", "taken_space_stage"]


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
    version = 3 if typed else 1  # countries of a list that was typed, by whatever they are called
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
        "cspace", "import-space", 3, lambda work: import_foreign(work, path, concept), inputs, {"concept": concept},
        packages=("babel", "polars", "pycountry"),
    )  # fmt: skip


def taken_prompts_stage(path: Path, space: Path, kinds: Sequence[PromptKind]) -> Stage:
    """Take in prompts, and hold them against the cultural space."""
    return Stage(
        "prompts",
        "take-prompts",
        1,
        lambda work: import_prompts(work, path, space, kinds),
        {"published": path, "cspace": space, **country_files()},
        {"kinds": list(kinds)},
        packages=("polars",),
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
