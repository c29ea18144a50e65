"""`culturekit cspace` and `culturekit prompts`: from candidates to the cultural space and its prompts."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

__all__ = ["cspace_app", "prompts_app"]

HERE, STEPS = "culturekit.cli.cspace", "culturekit.pipeline.steps"
COMMANDS = {
    "filter": CommandAt(f"{STEPS}.filter_stage:FILTER"),
    "release": CommandAt(
        f"{HERE}.release_command:release",
        "--kept kept/kept.parquet --roots cuisine --format parquet,jsonl,csv --out cspace",
    ),
    "complete": CommandAt(f"{STEPS}.completion_stage:COMPLETE"),
    "import": CommandAt(f"{HERE}.import_command:import_space", "dishes.csv --concept cuisine --out space"),
    "diff": CommandAt(f"{HERE}.diff_command:diff", "runs/2025 runs/2026 --out changes"),
    "review": CommandAt(f"{HERE}.review_commands:review_app"),
}
PROMPTS = {
    "build geographic": CommandAt(f"{STEPS}.inclusion_stages:GEOGRAPHIC"),
    "build": CommandAt(
        f"{HERE}.prompts_command:build",
        "cube --cspace cspace/cspace.parquet --quota 10 --review sheet.csv --out prompts",
    ),
    "build dialects": CommandAt(f"{STEPS}.linguistic_prompt_stages:DIALECTS"),
    "build neutral": CommandAt(f"{STEPS}.linguistic_prompt_stages:NEUTRAL"),
    "build specific": CommandAt(f"{STEPS}.linguistic_prompt_stages:SPECIFIC"),
    "wordnet": CommandAt(f"{STEPS}.linguistic_prompt_stages:MEND"),
}

cspace_app = typer.Typer(
    no_args_is_help=True,
    help="The cultural space: judged, completed and released artifacts.",
    cls=lazy_group("cspace", COMMANDS),
)
prompts_app = typer.Typer(
    no_args_is_help=True,
    help="Prompts: of the cultural space, of dialects, nouns and groups.",
    cls=lazy_group("prompts", PROMPTS),
)
