"""What a recipe may take as somebody published it: the cultural space, and prompts."""

from collections.abc import Collection, Mapping, Set
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from culturekit.builders.prompting.prompt_options import PromptOptions

__all__ = ["RecipePrompts", "check_sources", "checked_prompts", "existing_prompts", "existing_space"]

MAKING = (
    "dump", "concepts", "ingest", "countries", "judge", "llm", "completion", "review", "include", "popularity",
    "release", "card",
)  # fmt: skip
"""The keys that say how a cultural space is made."""

PUBLISHED = {
    ".parquet": "a .parquet table of culturekit",
    ".json": "a .json file in the public CUBE layout",
}
TYPED = {".csv": "a .csv file with the columns name, concept and country"}
TYPED_PROMPTS = {".csv": "a .csv file with the columns prompt and concept"}
"""What may be published, and what may be typed by hand, by the end of the file's name."""


@dataclass(frozen=True, slots=True)
class RecipePrompts(PromptOptions):
    """Which prompts to build, or the `file` that has them: a prompts table, one in the public CUBE layout, or your CSV.

    `review` asks for a sheet that people fill in.
    """

    file: str | None = None

    def check(self) -> None:
        """Refuse options that would decide nothing beside a file, or contradict each other."""
        stated = [one.name for one in fields(PromptOptions) if getattr(self, one.name) != one.default]
        if self.file is not None and stated:
            raise ValueError(
                f"file takes prompts as they are, so {', '.join(stated)} would decide nothing: leave it out"
            )
        PromptOptions.check(self)

    def built(self) -> PromptOptions:
        """Give the options of prompts that are built."""
        settings = asdict(self)
        del settings["file"]
        return PromptOptions(**settings)


def existing_prompts(name: str) -> str:
    """Accept prompts that are there: published, or typed by hand."""
    return existing(name, PUBLISHED | TYPED_PROMPTS)


def existing_space(name: str) -> str:
    """Accept a cultural space that is there: published, or typed by hand."""
    return existing(name, PUBLISHED | TYPED)


def existing(name: str, accepted: Mapping[str, str]) -> str:
    """Accept a file that is there and whose name ends as one of those that are accepted."""
    path = Path(name)
    *first, last = accepted.values()
    expected = f"{', '.join(first)}, or {last}"
    if path.is_dir():
        raise ValueError(f"{name!r} is a folder; expected {expected}{inside(path)}")
    if not path.is_file():
        raise ValueError(f"there is no file {name!r}; expected {expected}{nearby(path, accepted)}")
    if path.suffix not in accepted:
        raise ValueError(f"{name!r} is none of these: expected {expected}")
    return name


def inside(folder: Path) -> str:
    """Name a file in a folder that may have been meant."""
    for name in ("cspace.parquet", "prompts.parquet"):
        if (folder / name).is_file():
            return f", such as {str(folder / name)!r}"
    return ""


def nearby(path: Path, accepted: Collection[str]) -> str:
    """Name the files beside one that is not there, where there are few."""
    beside = sorted(one.name for one in path.parent.glob("*") if one.suffix in accepted) if path.parent.is_dir() else []
    return f"; beside it are {', '.join(beside)}" if 0 < len(beside) <= 6 else ""


def checked_prompts(options: RecipePrompts) -> RecipePrompts:
    """Accept prompts whose options fit together, and whose file is there."""
    options.check()
    if options.file is not None:
        existing_prompts(options.file)
    return options


def check_sources(stated: Set[str], *, cspace: str | None) -> None:
    """Make sure that a cultural space is made, or taken as it was published, and not both.

    Args:
        stated: the keys that stand in the recipe.
        cspace: the published cultural space.
    """
    if cspace is not None:
        idle = [key for key in MAKING if key in stated]
        if idle:
            raise ValueError(
                f"cspace is taken as it was published, so {', '.join(idle)} would decide nothing: "
                "leave that out, or leave cspace out"
            )
        return
    missing = [key for key in ("dump", "concepts") if key not in stated]
    if missing == ["dump", "concepts"]:
        raise ValueError(
            "a cultural space is missing: give dump and concepts to make one, or cspace: FILE, one that was published"
        )
    if missing:
        raise ValueError(f"{missing[0]} is missing: a cultural space is made from both, dump and concepts")
