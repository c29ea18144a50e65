"""The groups of commands that are tables and nothing else: what is typed, and where each command is."""

from collections.abc import Mapping

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

CLI, STEPS = "culturekit.cli", "culturekit.recipes.steps"


def group(path: str, commands: Mapping[str, CommandAt | str], *, help: str) -> typer.Typer:  # noqa: A002 - as Typer has it
    """Make a group; a text names a stage's command in the module of stages that has it."""
    table = {name: CommandAt(f"{STEPS}.{at}") if isinstance(at, str) else at for name, at in commands.items()}
    return typer.Typer(no_args_is_help=True, help=help, cls=lazy_group(path, table))


activities = group(
    "activities",
    {
        "read": "activity_stages:READ",
        "extract": "activity_stages:EXTRACT_ACTIVITIES",
        "merge": "activity_stages:MERGE",
        "prompts": "activity_stages:PROMPTS",
    },
    help="Activities of countries, from pages, and their prompts.",
)
captions = group(
    "captions",
    {
        "expand": "caption_stages:EXPAND_CAPTIONS",
        "sample": "caption_stages:SAMPLE",
        "stats": "caption_stages:STATS",
        "translate": "caption_stages:TRANSLATE_CAPTIONS",
        "objects": "caption_stages:LIST_OBJECTS",
    },
    help="Captions of a culture: expanded, sampled, translated.",
)
cspace = group(
    "cspace",
    {
        "filter": "filter_stage:FILTER",
        "release": CommandAt(
            f"{CLI}.cspace.release_command:release",
            "--kept kept/kept.parquet --roots cuisine --format parquet,jsonl,csv --out cspace",
        ),
        "complete": "filter_stage:COMPLETE",
        "import": CommandAt(f"{CLI}.cspace.import_command:import_space", "dishes.csv --concept cuisine --out space"),
        "diff": CommandAt(f"{CLI}.cspace.diff_command:diff", "runs/2025 runs/2026 --out changes"),
        "review": CommandAt(f"{CLI}.cspace.review_commands:review_app"),
    },
    help="The cultural space: artifacts judged, completed, released.",
)
descriptors = group(
    "descriptors",
    {
        "propose": "descriptor_stages:PROPOSE_DESCRIPTORS",
        "refine": "descriptor_stages:REFINE_DESCRIPTORS",
        "stereotypes": "descriptor_stages:STEREOTYPES",
        "import": "descriptor_stages:IMPORT",
        "export": "descriptor_stages:EXPORT",
    },
    help="What pictures of activities should show, and overdo.",
)
index = group(
    "index",
    {
        "build": "index_stages:BUILD",
        "embed": "index_stages:EMBED",
        "map": "index_stages:MAP",
        "diagnose": "index_stages:DIAGNOSE",
        "shuffle": "index_stages:SHUFFLE",
        "append": "index_stages:APPEND",
        "remove": "index_stages:REMOVE",
        "compact": "index_stages:COMPACT",
    },
    help="The index: artifacts as vectors, and images mapped to them.",
)
kg = group(
    "kg",
    {
        "ingest": CommandAt(f"{CLI}.ingest_command:ingest", "latest-all.json.gz --out graph"),
        "extract": "filter_stage:EXTRACT",
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
        "build geographic": "inclusion_stages:GEOGRAPHIC",
        "build": CommandAt(
            f"{CLI}.cspace.prompts_command:build",
            "cube --cspace cspace/cspace.parquet --quota 10 --review sheet.csv --out prompts",
        ),
        "build dialects": "linguistic_stages:DIALECTS",
        "build neutral": "linguistic_stages:NEUTRAL",
        "build specific": "linguistic_stages:SPECIFIC",
        "wordnet": "linguistic_stages:MEND",
    },
    help="Prompts: of the space, of dialects, nouns and groups.",
)
questions = group(
    "questions",
    {"build": "judge_stage:BUILD", "ask": "judge_stage:ASK"},
    help="Yes/no questions about what a prompt asks for, and answers.",
)
