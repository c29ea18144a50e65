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

__all__ = ["PromptOptions"]

FILES = ("public", "decisions", "translations", "statements")


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """Which prompts to build.

    `per` limits how many artifacts each country and concept gives; `quota` asks for so many, as a number or as the path
    of a table, and says where there are fewer. A `fresh` draw leaves out what the `public` one has, and asks for as
    many as that has unless there is a quota. `decisions` are review sheets in the order they were filled in, and
    `review` asks for the next one. `translations` are the files of languages other than English. With `public_layout`
    the artifacts and their prompts are also written as CUBE-1K was released; `statements` is the table of kept
    candidates that has their statements.
    """

    kinds: tuple[PromptKind, ...] = ("cube",)
    templates: TemplateSetName = "released"
    per: Annotated[int, Field(ge=1)] | None = None
    quota: str | None = None
    draw: DrawName = "seeded"
    public: str | None = None
    review: bool = False
    decisions: tuple[str, ...] = ()
    languages: tuple[str, ...] = (ENGLISH,)
    translations: tuple[str, ...] = ()
    public_layout: bool = False
    statements: str | None = None

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

    def files(self) -> Mapping[str, Path]:
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
