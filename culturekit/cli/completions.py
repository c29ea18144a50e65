"""What the shell offers while a command is typed: recipes, SPECs, metrics."""

from collections.abc import Callable, Iterator
from pathlib import Path

YAML = (".yaml", ".yml")


def complete_recipe(incomplete: str) -> list[str]:
    """Offer the recipes that come with culturekit, and the YAML files and folders that begin so."""
    from culturekit.config.load import shipped_recipes

    return [*(name for name in shipped_recipes() if name.startswith(incomplete)), *yaml_files(incomplete)]


def yaml_files(incomplete: str) -> Iterator[str]:
    """List YAML files, and folders in which there may be some, by the path as it was begun."""
    begun = Path(incomplete)
    folder = begun if incomplete.endswith("/") else begun.parent
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        shown = f"{path}/" if path.is_dir() else str(path)
        if shown.startswith(incomplete) and not path.name.startswith(".") and (path.is_dir() or path.suffix in YAML):
            yield shown


def complete_metric(incomplete: str) -> list[str]:
    """Offer the metrics."""
    from culturekit.scores.listing import all_metrics

    return [name for name in all_metrics() if name.startswith(incomplete)]


def spec_completer(registry: str) -> Callable[[str], list[str]]:
    """Make what offers the names of a registry, `module:NAME`, which is imported when the shell asks."""

    def complete(incomplete: str) -> list[str]:
        from importlib import import_module

        module, _, name = registry.partition(":")
        return [spec for spec in getattr(import_module(module), name).names() if spec.startswith(incomplete)]

    return complete
