"""What code outside culturekit imports: recipes, stages, metrics and plugins need nothing else.

These names stay where modules move; `help(culturekit.extend.Stage)` says what one is. Each is imported when it is used.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culturekit.builders.judging.image_judge import JudgeOptions, JudgeReads, judge_stage, load_questions
    from culturekit.builders.popularity import Ratings
    from culturekit.builders.prompting.prompts import PromptOptions, prompts_stage
    from culturekit.builders.space.cspace import taken_space_stage
    from culturekit.config.checks import checked_spec, existing_space, unique_names
    from culturekit.config.kinds import AnyRecipe, RecipeKind
    from culturekit.config.recipe_parts import Model
    from culturekit.core import roles
    from culturekit.core.choices import CONFIDENCE
    from culturekit.core.declared import kept
    from culturekit.core.digests import digest_file
    from culturekit.core.errors import IntegrityError, UsageError
    from culturekit.core.inputs import Files, roles_of
    from culturekit.core.model_files import check_safetensors, read_header
    from culturekit.core.registry import Spec
    from culturekit.core.roles import Role
    from culturekit.core.run import Run
    from culturekit.core.schemas import TABLES
    from culturekit.core.stage import Outcome, Stage, Work
    from culturekit.core.tables import prompts_table, read_table, write_table
    from culturekit.generation.backend import Failure, ImageReply, ImageRequest, Picture
    from culturekit.generation.runner import ImagePlan
    from culturekit.index.embedding.embedding import unit
    from culturekit.index.encoder import EncoderIdentity, Prepared, Vectors
    from culturekit.index.matching.mapping import truth_stage
    from culturekit.index.search.search import Found, Order, best_by_hand
    from culturekit.index.weights import StoredTensor, write_tensors
    from culturekit.kg.countries import countries
    from culturekit.llm.client import Reply, Request
    from culturekit.llm.clients.clients import CLIENTS
    from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, interval
    from culturekit.recipes.parts import model_images
    from culturekit.report.sections import Cell, Section, grid
    from culturekit.scores.catalog import Metric
    from culturekit.scores.distribution import distribution
    from culturekit.scores.family import (
        Confidence,
        Family,
        Row,
        Scored,
        family_stage,
        scored,
        scores,
        statistic_row,
        value_rows,
    )

__all__ = [
    "CLIENTS",
    "CONFIDENCE",
    "FEWEST_PROMPTS",
    "TABLES",
    "AnyRecipe",
    "Cell",
    "Confidence",
    "EncoderIdentity",
    "Failure",
    "Family",
    "Files",
    "Found",
    "ImagePlan",
    "ImageReply",
    "ImageRequest",
    "IntegrityError",
    "JudgeOptions",
    "JudgeReads",
    "Metric",
    "Model",
    "Order",
    "Outcome",
    "Picture",
    "Prepared",
    "PromptOptions",
    "Ratings",
    "RecipeKind",
    "Reply",
    "Request",
    "Role",
    "Row",
    "Run",
    "Scored",
    "Section",
    "Spec",
    "Stage",
    "StoredTensor",
    "UsageError",
    "Vectors",
    "Work",
    "best_by_hand",
    "check_safetensors",
    "checked_spec",
    "countries",
    "digest_file",
    "distribution",
    "existing_space",
    "family_stage",
    "grid",
    "interval",
    "judge_stage",
    "kept",
    "load_questions",
    "model_images",
    "prompts_stage",
    "prompts_table",
    "read_header",
    "read_table",
    "roles",
    "roles_of",
    "scored",
    "scores",
    "statistic_row",
    "taken_space_stage",
    "truth_stage",
    "unique_names",
    "unit",
    "value_rows",
    "write_table",
    "write_tensors",
]  # fmt: skip


@cache
def _homes() -> dict[str, str]:
    """Read above where each name is: importing all would take seconds, and a plugin is imported by every worker."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.col_offset]
    return {each.name: str(node.module) for node in found for each in node.names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each name has its own type, stated above
    """Import a name when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"culturekit.extend has no {name!r}: it is no name that stays")
    home = _homes()[name]
    return import_module(f"{home}.{name}") if home == "culturekit.core" else getattr(import_module(home), name)
