"""A run of the `cube` recipe: what it was asked for, and where its tables will lie."""

from dataclasses import dataclass, replace
from pathlib import Path

from culturekit.config.checks import knows_truth
from culturekit.config.recipe import Recipe
from culturekit.families.collection_scores import QvsOptions
from culturekit.generation.folder.folder_options import FOLDER
from culturekit.registry import parse_spec

__all__ = ["COMPLETION", "REFERENCE_PROMPTS", "REVIEW", "CubeRun"]

COMPLETION, REVIEW, REFERENCE_PROMPTS = "completion", "review", "reference-prompts"


@dataclass(frozen=True, slots=True)
class CubeRun:
    """A recipe and the folder it is run in; each stage has a folder in it."""

    recipe: Recipe
    workdir: Path

    @property
    def names(self) -> tuple[str, ...]:
        """The models, in the order of the recipe."""
        return tuple(model.name for model in self.recipe.models)

    @property
    def truthful(self) -> tuple[str, ...]:
        """The models of which it is known what their images really show."""
        return tuple(model.name for model in self.recipe.models if knows_truth(model.backend))

    @property
    def space(self) -> Path:
        """The cultural space."""
        return self.workdir / "cspace/cspace.parquet"

    @property
    def prompts(self) -> Path:
        """The prompts."""
        return self.workdir / "prompts/prompts.parquet"

    @property
    def references(self) -> Path:
        """The pictures that the index is made from."""
        return self.workdir / "references/images.parquet"

    @property
    def names_artifacts(self) -> bool:
        """Whether references go by the names of artifacts: the prompts of a file need not name each of them."""
        references = self.recipe.references
        folder = references is not None and parse_spec(references.backend).name == FOLDER
        return folder or self.recipe.prompts.file is not None

    @property
    def reference_prompts(self) -> Path:
        """The prompts that the references answer."""
        return self.workdir / f"{REFERENCE_PROMPTS}/prompts.parquet" if self.names_artifacts else self.prompts

    @property
    def index(self) -> Path:
        """The folder of the index."""
        return self.workdir / "index"

    @property
    def scoring(self) -> QvsOptions:
        """How what is shown is scored: diversity within countries has a stage of its own."""
        return replace(self.recipe.scores, within="none")

    def images(self, model: str) -> Path:
        """Name the images of a model."""
        return self.workdir / f"images-{model}/images.parquet"

    def matches(self, model: str) -> Path:
        """Name what the images of a model were mapped to."""
        return self.workdir / f"matches-{model}/matches.parquet"

    def truth(self, model: str) -> Path:
        """Name what the images of a model really show."""
        return self.workdir / f"truth-{model}/matches.parquet"

    def asking(self, *, besides: str) -> tuple[Path, ...]:
        """Name the folders of the stages that ask models for words, besides one: they share the budget."""
        recipe, wanted = self.recipe, self.recipe.faithfulness
        names = ["filter", *([] if recipe.completion is None else [COMPLETION])]
        if wanted is not None:
            judges = [name for name in ("answers", "vqascore") if getattr(wanted, name) is not None]
            names += ["questions"] if wanted.questions is not None else []
            names += [f"{judge}-{model}" for judge in judges for model in self.names]
        return tuple(self.workdir / name for name in names if name != besides)

    def all_matches(self) -> dict[str, Path]:
        """Name the matches of every model, by the folder they lie in."""
        return {f"matches-{name}": self.matches(name) for name in self.names}
