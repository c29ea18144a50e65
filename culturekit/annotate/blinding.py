"""Names that tell nothing: of tasks, and of the files that annotators see."""

from collections.abc import Sequence

from culturekit.metrics.scoring.value_sets import own_generator
from culturekit.storage.digests import digest

__all__ = ["content_of", "drawn", "picture_file", "project_id", "task_id"]


def project_id(scheme: object, items: Sequence[str], options: object, *, seed: int) -> str:
    """Name a project by everything that decides its tasks."""
    return digest(["project", scheme, list(items), options, seed])[:12]


def task_id(project: str, *what: object, seed: int) -> str:
    """Name a task so that nobody can tell what it stands for."""
    return f"t{digest(['task', project, [str(part) for part in what], seed])[:20]}"


def picture_file(project: str, image_id: str, *, seed: int) -> str:
    """Name the file of a picture so that neither its model nor its prompt shows."""
    return f"{digest(['picture', project, image_id, seed])[:20]}.png"


def drawn(count: int, *key: object, seed: int) -> list[int]:
    """Draw an order of so many things."""
    return [int(place) for place in own_generator(seed, *key).permutation(count)]


def content_of(data: object) -> str:
    """Hash what a task shows, wherever its pictures lie."""
    if not isinstance(data, dict):
        return digest(["no task"])
    return digest({str(key): plain(str(key), value) for key, value in data.items()})


def plain(key: str, value: object) -> object:
    """Leave of a picture's address the name of the file."""
    if key.startswith("picture_") and isinstance(value, str):
        return value.replace("\\", "/").rsplit("/", 1)[-1]
    return value
