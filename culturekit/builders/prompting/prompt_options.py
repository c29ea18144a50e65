"""Which prompts to build, and from which files a person's choices come."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.prompting.quotas import as_number
from culturekit.builders.space.public_cube import is_public_cube
from culturekit.errors import UsageError
from culturekit.kg.concept_words import ENGLISH
from culturekit.records.choices import DrawName, PromptKind, TemplateSetName
from culturekit.stages.stage_command import Typed

__all__ = ["PromptOptions"]

FILES = ("public", "decisions", "translations", "statements")


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """Which prompts to build; `review` asks for a sheet that people fill in."""

    kinds: tuple[PromptKind, ...] = ("cube",)
    templates: Annotated[TemplateSetName, Field(description="Template set.")] = "released"
    per: Annotated[
        int | None,
        Field(ge=1, description="At most so many artifacts per country and concept, by popularity. [all]"),
    ] = None
    quota: Annotated[
        str | None,
        Field(description="So many artifacts per country and concept: a number, or a YAML or CSV table of quotas."),
    ] = None
    draw: Annotated[DrawName, Field(description="The seed's draw, or a fresh one beside a public one.")] = "seeded"
    public: Annotated[
        str | None, Field(description="Published draw, in the public layout, that a fresh one has nothing of.")
    ] = None
    review: bool = False
    decisions: Annotated[
        tuple[str, ...],
        Field(
            description="Review sheet that was filled in; the next draw replaces what it rejects. "
            "Repeatable; a later sheet counts more."
        ),
    ] = ()
    languages: Annotated[
        tuple[str, ...],
        Field(description="Language of the prompts, en or one with a translation. Repeatable. [en]"),
        Typed("language"),
    ] = (ENGLISH,)
    translations: Annotated[
        tuple[str, ...], Field(description="YAML file of templates in a language, verified by a speaker. Repeatable.")
    ] = ()
    public_layout: Annotated[
        bool,
        Field(description="Write cube.json too, in the layout that CUBE-1K was released in."),
        Typed("public-layout"),
    ] = False
    statements: Annotated[str | None, Field(description="Kept candidates, whose statements go into cube.json.")] = None

    def check(self) -> None:
        """Refuse options that contradict each other, or would do nothing."""
        if self.per is not None and self.quota is not None:
            raise UsageError("per and quota both limit the draw", hint="Give one of them.")
        if self.quota is not None:
            as_number(self.quota)
        if self.public is not None and self.draw != "fresh":
            raise UsageError("a public draw is left out of a fresh one only", hint="Add --draw fresh.")
        if self.draw == "fresh" and not self.draws:
            raise UsageError(
                "a fresh draw needs to know how many artifacts to take",
                expected="the draw it follows, or a quota",
                hint="Give the published file with --public, or numbers with --quota.",
            )
        if self.public is not None and not is_public_cube(Path(self.public)):
            raise UsageError("the public draw is a file in the public CUBE layout", found=self.public, expected=".json")
        if "cube" not in self.kinds and (self.draws or self.decisions or self.review or self.public_layout):
            raise UsageError("only prompts that name an artifact are drawn and reviewed", expected="the kind cube")
        if self.statements is not None and not self.public_layout:
            raise UsageError("statements stand in the public layout only", hint="Add --public-layout.")
        if not self.languages or len(set(self.languages)) != len(self.languages):
            raise UsageError("each language stands once", found=", ".join(self.languages) or "none")

    @property
    def draws(self) -> bool:
        """Whether chance decides which artifacts are taken."""
        return self.per is not None or self.quota is not None or self.public is not None

    def inputs(self) -> Mapping[str, Path]:
        """Name the files that these options point to, by the part they play."""
        files = {f"decisions-{number:02}": Path(path) for number, path in enumerate(self.decisions, 1)}
        files |= {f"translation-{number:02}": Path(path) for number, path in enumerate(self.translations, 1)}
        if self.public is not None:
            files["public"] = Path(self.public)
        if self.statements is not None:
            files["statements"] = Path(self.statements)
        if self.quota is not None and as_number(self.quota) is None:
            files["quotas"] = Path(self.quota)
        return files

    def settings(self) -> Mapping[str, object]:
        """Give what stands in a manifest: everything but the names of files, which stand there by content."""
        settings = {name: value for name, value in asdict(self).items() if name not in FILES}
        if self.quota is not None and as_number(self.quota) is None:
            settings["quota"] = "table"
        return settings
