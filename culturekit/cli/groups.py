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
        "read": "builders.activities.page_list:read",
        "extract": "builders.activities.extracting:extract",
        "merge": "builders.activities.extracting:merge",
        "prompts": "builders.activities.extracting:prompts",
    },
    help="Activities of countries, from pages, and their prompts.",
)
captions = group(
    "captions",
    {
        "expand": "builders.captions.expanding:expand",
        "sample": "builders.captions.caption_files:sample",
        "stats": "builders.captions.caption_files:stats",
        "translate": "builders.captions.caption_files:translate",
        "objects": "builders.captions.caption_files:objects",
    },
    help="Captions of a culture: expanded, sampled, translated.",
)
space_check = group(
    "cspace check",
    {"sample": "people.space_check:sample", "score": "people.space_check:score"},
    help="How often keeps and removes are wrong, by people.",
)
cspace = group(
    "cspace",
    {
        "filter": "builders.filtering.cspace_filter:filter_candidates",
        "release": CommandAt(
            f"{CLI}.space_commands:release",
            "--kept kept/kept.parquet --roots cuisine --format parquet,jsonl,csv --out cspace",
        ),
        "complete": "builders.completing.completion:complete",
        "import": CommandAt(f"{CLI}.space_commands:import_space", "dishes.csv --concept cuisine --out space"),
        "diff": CommandAt(f"{CLI}.review_commands:diff", "runs/2025 runs/2026 --out changes"),
        "settle": "builders.filtering.candidate_review:settle",
        "review": CommandAt(f"{CLI}.review_commands:review_app"),
        "check": CommandAt(f"{CLI}.groups:space_check"),
    },
    help="The cultural space: artifacts judged, completed, released.",
)
descriptors = group(
    "descriptors",
    {
        "propose": "builders.descriptors.proposing:propose",
        "refine": "builders.descriptors.proposing:refine",
        "stereotypes": "builders.descriptors.proposing:stereotypes",
        "import": "builders.descriptors.published_layout:read",
        "export": "builders.descriptors.published_layout:export",
    },
    help="What pictures of activities should show, and overdo.",
)
index = group(
    "index",
    {
        "build": "index.folder.build:BUILD", "embed": "index.embedding.embed_table:EMBED",
        "map": "index.matching.mapping:MAP", "diagnose": "index.matching.mapping:DIAGNOSE",
        "shuffle": "index.matching.mapping:SHUFFLE", "append": "index.folder.build:APPEND",
        "remove": "index.folder.build:REMOVE", "compact": "index.folder.build:COMPACT",
    },
    help="The index: artifacts as vectors, and images mapped to them.",
)  # fmt: skip
kg = group(
    "kg",
    {
        "ingest": CommandAt(f"{CLI}.ingest_command:ingest", "latest-all.json.gz --out graph"),
        "extract": "kg.exchange.extract_stage:EXTRACT",
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
        "build geographic": "recipes.inclusion.prompts:geographic",
        "build": CommandAt(
            f"{CLI}.space_commands:build_prompts",
            "cube --cspace cspace/cspace.parquet --quota 10 --review sheet.csv --out prompts",
        ),
        "build dialects": "recipes.linguistic.dialects:DIALECTS",
        "dialects draft": "recipes.linguistic.dialects:DRAFT",
        "build neutral": "recipes.linguistic.prompts:NEUTRAL",
        "build specific": "recipes.linguistic.prompts:specific",
        "wordnet": "recipes.linguistic.wordnet:MEND",
    },
    help="Prompts: of the space, of dialects, nouns and groups.",
)
questions = group(
    "questions",
    {"build": "builders.judging.question_graph:build", "ask": "builders.judging.question_graph:answer"},
    help="Yes/no questions about what a prompt asks for, and answers.",
)
