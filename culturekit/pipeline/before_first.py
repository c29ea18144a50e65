"""What a run can know before its first stage: a key, a price, a package or weights that a later stage would miss."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.llm.money.shared_budget import journal_for
from culturekit.pipeline.planning.plan import state_of
from culturekit.stages.stage import Stage

__all__ = ["check_before_first"]


def check_before_first(stages: Sequence[Stage], workdir: Path) -> None:
    """Make sure that nothing is missing that a stage needs, hours before it is its turn.

    A finished stage needs nothing any more; one that is next, and was asked for replies before, may have all of them.

    Raises:
        ConfigError: all that is missing, each once, with the stages that need it.
    """
    missing: dict[str, list[str]] = {}
    for place, stage in enumerate(stages):
        try:
            stage.before()
        except UsageError as error:
            if needs_it(stages[:place], stage, workdir):
                missing.setdefault(str(error), []).append(stage.name)
    if missing:
        raise ConfigError([Problem(problem, ", ".join(names)) for problem, names in missing.items()])


def needs_it(earlier: Sequence[Stage], stage: Stage, workdir: Path) -> bool:
    """Tell whether a stage is still to be done, and would not find out at once."""
    undone: set[Path] = set()
    for one in earlier:
        if state_of(one, workdir / one.name, undone) != "done":
            undone.add(workdir / one.name)
    if state_of(stage, workdir / stage.name, undone) == "done":
        return False
    return bool(undone) or journal_for(workdir / stage.name) is None
