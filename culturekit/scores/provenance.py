"""What stands behind a SPEC, as part of what a stage depends on: the files that it points to, and plugins."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from culturekit.core.digests import digest_file, digest_tree
from culturekit.core.errors import UsageError
from culturekit.core.registry import Registry, parse_spec
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table
from culturekit.core.work import NOT_COMPARABLE, Outcome

if TYPE_CHECKING:
    from culturekit.generation.comparability import Traits

PATHS = ("/", "./", "../", "~")
"""How the path of a file begins, which a name of the hub never does."""


def behind(registry: Registry[Any], spec: str) -> dict[str, object]:
    """Say what decides the answers of a SPEC besides its words: weights, and what another package brings.

    The target of a SPEC may be a SPEC itself, as in `clipscore:transformers:FOLDER`.
    """
    from culturekit.index.encoder import ENCODERS

    parsed = parse_spec(spec)
    inner = {} if parsed.name != "clipscore" or registry is ENCODERS else ENCODERS.brought_by(parsed.target)
    return {**weights_of(parsed.target), **inner, **registry.decided_by(parsed)}


def weights_of(target: str) -> dict[str, str]:
    """Hash the weights that the target of a SPEC points to, so that others at the same place give another result."""
    for path in (Path(target), Path(target.partition(":")[2])):
        if path != Path() and path.is_dir():
            return {"weights": digest_tree(path)[0]}
        if path.is_file():
            return {"weights": digest_file(path)}
    return {}


def check_ready(registry: Registry[Any], spec: str) -> None:
    """Make sure that the packages and files that a SPEC needs are there; a name of the hub is left to its encoder."""
    target = parse_spec(spec).target
    path = target if target.startswith(PATHS) else target.partition(":")[2]
    if path.startswith(PATHS) and not Path(path).expanduser().exists():
        raise UsageError("there are no weights at this place", where=spec, expected="a folder or a file", found=path)
    registry.ready(spec)


# Whether the images that are scored together were made alike, noted beside the scores.


def traits_in(images: Sequence[Path]) -> "dict[str, Traits]":
    """Read the traits of every model in tables of images."""
    return traits_by_model([read_table(path, IMAGES) for path in images])


def traits_by_model(images: Sequence[pl.DataFrame]) -> "dict[str, Traits]":
    """Read the traits of every model; what one model's tables say is taken together."""
    from culturekit.generation.comparability import traits_of

    every = [table.select(list(IMAGES.schema)) for table in images if table.height]
    models = pl.concat(every).partition_by("model", as_dict=True) if every else {}
    return {str(key[0]): traits_of(table) for key, table in sorted(models.items())}


def noted(outcome: Outcome, traits: "Mapping[str, Traits]") -> Outcome:
    """Add to an account what is not comparable; nothing where all images were made alike."""
    from culturekit.generation.comparability import not_comparable

    apart = not_comparable(traits)
    return replace(outcome, notes={**outcome.notes, NOT_COMPARABLE: apart}) if apart else outcome
