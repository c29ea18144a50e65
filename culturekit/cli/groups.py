"""The groups of commands that are tables and nothing else: what is typed, and where each command is."""

from collections.abc import Mapping

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

CLI = "culturekit.cli"


def group(path: str, commands: Mapping[str, CommandAt | str], *, help: str) -> typer.Typer:  # noqa: A002 - as Typer has it
    """Make a group; a text names a stage's command."""
    table = {name: CommandAt(f"culturekit.{at}") if isinstance(at, str) else at for name, at in commands.items()}
    return typer.Typer(no_args_is_help=True, help=help, cls=lazy_group(path, table))


activities = group(
    "activities",
    {
        "read": "recipes.cultivate.activity_stages:READ",
        "extract": "recipes.cultivate.activity_stages:EXTRACT_ACTIVITIES",
        "merge": "recipes.cultivate.activity_stages:MERGE",
        "prompts": "recipes.cultivate.activity_stages:PROMPTS",
    },
    help="Activities of countries, from pages, and their prompts.",
)
captions = group(
    "captions",
    {
        "expand": "recipes.c3.stages:EXPAND_CAPTIONS",
        "sample": "recipes.c3.stages:SAMPLE",
        "stats": "recipes.c3.stages:STATS",
        "translate": "recipes.c3.stages:TRANSLATE_CAPTIONS",
        "objects": "recipes.c3.stages:LIST_OBJECTS",
    },
    help="Captions of a culture: expanded, sampled, translated.",
)
cspace = group(
    "cspace",
    {
        "filter": "recipes.steps.filter_stage:FILTER",
        "release": CommandAt(
            f"{CLI}.cspace.release_command:release",
            "--kept kept/kept.parquet --roots cuisine --format parquet,jsonl,csv --out cspace",
        ),
        "complete": "recipes.steps.filter_stage:COMPLETE",
        "import": CommandAt(f"{CLI}.cspace.import_command:import_space", "dishes.csv --concept cuisine --out space"),
        "diff": CommandAt(f"{CLI}.cspace.diff_command:diff", "runs/2025 runs/2026 --out changes"),
        "review": CommandAt(f"{CLI}.cspace.review_commands:review_app"),
    },
    help="The cultural space: artifacts judged, completed, released.",
)
descriptors = group(
    "descriptors",
    {
        "propose": "recipes.cultivate.descriptor_stages:PROPOSE_DESCRIPTORS",
        "refine": "recipes.cultivate.descriptor_stages:REFINE_DESCRIPTORS",
        "stereotypes": "recipes.cultivate.descriptor_stages:STEREOTYPES",
        "import": "recipes.cultivate.descriptor_stages:IMPORT",
        "export": "recipes.cultivate.descriptor_stages:EXPORT",
    },
    help="What pictures of activities should show, and overdo.",
)
index = group(
    "index",
    {
        "build": "recipes.steps.index_stages:BUILD",
        "embed": "recipes.steps.index_stages:EMBED",
        "map": "recipes.steps.index_stages:MAP",
        "diagnose": "recipes.steps.index_stages:DIAGNOSE",
        "shuffle": "recipes.steps.index_stages:SHUFFLE",
        "append": "recipes.steps.index_stages:APPEND",
        "remove": "recipes.steps.index_stages:REMOVE",
        "compact": "recipes.steps.index_stages:COMPACT",
    },
    help="The index: artifacts as vectors, and images mapped to them.",
)
kg = group(
    "kg",
    {
        "ingest": CommandAt(f"{CLI}.ingest_command:ingest", "latest-all.json.gz --out graph"),
        "extract": "recipes.steps.filter_stage:EXTRACT",
        "explain": CommandAt(f"{CLI}.graph_commands:explain", "Q2065278 --graph graph --roots cuisine"),
        "preview": CommandAt(f"{CLI}.graph_commands:preview", "--graph graph --roots landmarks --hops 6"),
        "diff": CommandAt(f"{CLI}.graph_commands:diff", "graph-2024 graph-2025 --out changes"),
        "stats": CommandAt(f"{CLI}.graph_commands:stats", "--graph graph"),
        "export": CommandAt(f"{CLI}.exchange_commands:export", "--graph graph --around Q746549 --hops 1 --out dish.nt"),
        "import": CommandAt(f"{CLI}.exchange_commands:import_command", "dish.graphml --out graph"),
        "query": CommandAt(
            f"{CLI}.exchange_commands:query",
            "'SELECT ?dish { ?dish wdt:P31 wd:Q746549 }' --graph graph --around Q746549",
        ),
        "entity": CommandAt(f"{CLI}.exchange_commands:entity", "Q746549 --contact you@example.org"),
    },
    help="The knowledge graph: from a dump to candidate artifacts.",
)
prompts = group(
    "prompts",
    {
        "build geographic": "recipes.inclusion.prompts:GEOGRAPHIC",
        "build": CommandAt(
            f"{CLI}.cspace.prompts_command:build",
            "cube --cspace cspace/cspace.parquet --quota 10 --review sheet.csv --out prompts",
        ),
        "build dialects": "recipes.linguistic.dialects:DIALECTS",
        "build neutral": "recipes.linguistic.prompts:NEUTRAL",
        "build specific": "recipes.linguistic.prompts:SPECIFIC",
        "wordnet": "recipes.linguistic.wordnet:MEND",
    },
    help="Prompts: of the space, of dialects, nouns and groups.",
)
questions = group(
    "questions",
    {"build": "recipes.steps.judge_stage:BUILD", "ask": "recipes.steps.judge_stage:ASK"},
    help="Yes/no questions about what a prompt asks for, and answers.",
)
