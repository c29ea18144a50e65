"""Vectors of the same images by several extractors, each under its name."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.families.handles.inputs import NamedVectors
from culturekit.families.handles.vector_files import one_identity_of_all
from culturekit.metrics.inclusion.triplet_distances import Features

__all__ = ["Extractor", "check_extractors", "extractor", "name_and_value", "told_apart"]


def name_and_value(text: str, option: str) -> tuple[str, str]:
    """Read NAME=VALUE."""
    name, mark, value = text.partition("=")
    if not (name and mark and value):
        raise UsageError(f"{option} is a name, an equals sign and a value", expected="NAME=VALUE", found=repr(text))
    return name, value


@dataclass(frozen=True, slots=True)
class Extractor:
    """A folder of vectors by one extractor; a role names it where there may be several, also several of its folders."""

    name: str
    vectors: NamedVectors
    alone: bool = False
    part: str = ""

    def files(self, role: str) -> dict[str, Path]:
        """Name vectors and ids."""
        named = f"{role}-{self.name}" + (f"-{self.part}" if self.part else "")
        return self.vectors.files(role if self.alone else named)

    def by_image(self) -> Features:
        """Open the vectors by the ids of their images."""
        vectors, ids = self.vectors.vectors()
        return dict(zip(ids, vectors, strict=True))


def extractor(text: str, option: str) -> Extractor:
    """Read EXTRACTOR=FOLDER."""
    name, folder = name_and_value(text, option)
    return Extractor(name, NamedVectors(Path(folder)), alone=option == "--real")


def check_extractors(extractors: Iterable[Extractor]) -> None:
    """Refuse vectors of another encoder under the name of an extractor."""
    folders: dict[str, list[Path]] = {}
    for one in extractors:
        folders.setdefault(one.name, []).append(one.vectors.folder)
    for own in folders.values():
        one_identity_of_all(own)


def told_apart(features: Sequence[Extractor]) -> Iterator[Extractor]:
    """Number further folders of an extractor, whose files are inputs, too."""
    seen: Counter[str] = Counter()
    for one in features:
        yield replace(one, part=str(seen[one.name])) if seen[one.name] and not one.part else one
        seen[one.name] += 1
