"""A run: a folder with one folder a stage, found by what the stage does and for which model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.stages.planned import Slot
from culturekit.stages.roles import Role
from culturekit.stages.stage import Stage

__all__ = ["RECIPE_RECORD", "Others", "Run", "Step"]

RECIPE_RECORD = "recipe.json"
"""The recipe as it was run, everything filled in: it lies beside the stage folders."""


@dataclass(frozen=True, slots=True)
class Step:
    """A stage of a run, and what plans it; without that, it takes time alone, for each picture that it reads."""

    stage: Stage
    plan: Slot | None


@dataclass(frozen=True, slots=True)
class Others:
    """The folders of the other stages that share a budget, of those that join later too."""

    own: Path
    folders: Sequence[Path]

    def __iter__(self) -> Iterator[Path]:
        """Give them in the order in which they joined."""
        return (folder for folder in self.folders if folder != self.own)


@dataclass(slots=True)
class Run:
    """The stages of a run, each by its role; a recipe adds them one by one, and of a finished run their names are read.

    Attributes:
        root: the folder of the run.
        models: that are evaluated, in the order of the recipe.
        stages: the names of the folders, each after what it reads.
        steps: what was added.
        shared: the folders of the stages that share a budget, by the name of the budget.
    """

    root: Path
    models: Sequence[str] = ()
    stages: Sequence[str] = ()
    steps: list[Step] = field(default_factory=list)
    shared: dict[str, list[Path]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the folder by its name, too."""
        self.root = Path(self.root)

    def add(self, stage: Stage, role: Role, model: str = "", variant: str = "", *, plan: Slot | None = None) -> Path:
        """Add a stage, and give the table that others read from it; `plan` says what it takes besides time.

        Raises:
            UsageError: another stage has its folder already.
        """
        name = role.folder(model, variant)
        if name in self.stages:
            raise UsageError(
                f"two stages of this run would write the folder {name!r}", where=str(self.root),
                hint="Give a model or an instrument of the recipe another name.",
            )  # fmt: skip
        self.stages = (*self.stages, name)
        self.steps.append(Step(replace(stage, name=name, in_run=True), plan))
        return self.table(role, model, variant)

    def sharing(self, budget: str, folder: Path) -> Others:
        """Let a stage share a budget; what the others have spent is not there for it."""
        folders = self.shared.setdefault(budget, [])
        folders.append(folder)
        return Others(folder, folders)

    def folder(self, role: Role, model: str = "", variant: str = "") -> Path:
        """Name the folder of a role."""
        return self.root / role.folder(model, variant)

    def table(self, role: Role, model: str = "", variant: str = "", *, file: str = "") -> Path:
        """Name the main table of a role, or another file of its folder; the folder, where it is read as one."""
        name = file or (f"{role.holds}.parquet" if role.holds else "")
        return self.folder(role, model, variant) / name if name else self.folder(role, model, variant)

    def values_of(self, role: Role, model: str = "") -> Path:
        """Name the values behind the scores of a role."""
        return self.table(role, model, file="values.parquet")

    def has(self, role: Role, model: str = "", variant: str = "") -> bool:
        """Tell whether the run has such a stage."""
        return role.folder(model, variant) in self.stages

    def models_with(self, role: Role, variant: str = "") -> tuple[str, ...]:
        """List the models that have such a stage."""
        return tuple(model for model in self.models if self.has(role, model, variant))

    def by_model(self, role: Role, variant: str = "", *, file: str = "") -> dict[str, Path]:
        """Name the tables of all models that have one, by model."""
        return {model: self.table(role, model, variant, file=file) for model in self.models_with(role, variant)}

    def tables(self, role: Role, variant: str = "") -> dict[str, Path]:
        """Name the tables of all models that have one, by folder."""
        return {role.folder(model, variant): path for model, path in self.by_model(role, variant).items()}

    def variants(self, role: Role, model: str = "") -> list[str]:
        """List the variants of a role, in the order of the stages."""
        found = filter(None, (role.read(name, self.models) for name in self.stages))
        return [variant for owner, variant in found if owner == model]
