"""All commands: those under one name, and the groups that are tables and nothing else."""

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.version import VERSION


def at(target: str, example: str = "") -> CommandAt:
    """Say where a command is, or a group of commands, which has no example."""
    return CommandAt(f"culturekit.cli.{target}", example)


COMMANDS = {
    "demo": at("run_commands:demo"),
    "run": at("run_commands:run", "cube --until cspace"),
    "init": at(
        "init_command:init",
        "pictures --cspace cspace.parquet --prompts prompts.parquet --references references --encoder embedded",
    ),
    "plan": at("run_commands:plan", "cube"),
    "generate": at(
        "generate_command:generate",
        "--backend 'simulated?temperature=2' --prompts prompts/prompts.parquet --repeats 50 --slots 8 --out images",
    ),
    "tag": CommandAt("culturekit.builders.judging.geo_tag:tag"),
    "judge": CommandAt("culturekit.builders.judging.image_judge:judge_own"),
    "judge extract": CommandAt("culturekit.builders.judging.scene_judge:extract"),
    "judge likert": CommandAt("culturekit.builders.judging.scene_judge:likert"),
    "judge stereotypes": CommandAt("culturekit.builders.judging.scene_judge:stereotypes_shown"),
    "quality": CommandAt("culturekit.index.raters.quality:QUALITY"),
    "vqascore": CommandAt("culturekit.builders.judging.image_judge:vqascore"),
    "report": at("run_commands:report", "runs/cube --out page"),
    "site": at("run_commands:site", "runs/cube --out site"),
    "publish": at("run_commands:publish", "runs/cube --to hub:USER/NAME"),
    "audit": at("audit_command:audit", "cube_1k.json --fix mended.json"),
    "audit plan": at("audit_plan_command:audit_plan_command", "runs/cube --width 0.05"),
    "trace": at("trace_command:trace", "'runs/cube?metric=vs&model=mirage&concept=cuisine&kernel=artifact'"),
    "verify": at("verify_command:verify", "runs/cube"),
    "doctor": at("doctor_command:doctor"),
    "plugins": at("doctor_command:plugins_command"),
    "kg": at("app:kg"),
    "roots": at("root_commands:app"),
    "cspace": at("app:cspace"),
    "prompts": at("app:prompts"),
    "questions": at("app:questions"),
    "select": CommandAt("culturekit.builders.captions.pairs:select"),
    "select export": CommandAt("culturekit.builders.captions.pairs:export"),
    "finetune": at("finetune_command:finetune", "--pairs pairs --model diffusers:sdxl-base --size 1024 --out tuned"),
    "references collect": CommandAt("culturekit.builders.photographs:collect"),
    "references choose": CommandAt("culturekit.builders.judging.image_judge:choose"),
    "activities": at("app:activities"),
    "descriptors": at("app:descriptors"),
    "triplets": CommandAt("culturekit.recipes.inclusion.people:triplets_of"),
    "captions": at("app:captions"),
    "index": at("app:index"),
    "score": at("score_app:score_app"),
    "card": at("card_commands:card_app"),
    "annotate": at("annotate_commands:annotate_app"),
    "llm": at("llm_commands:llm_app"),
    "weights": at("weights_commands:weights_app"),
    "metrics": at("score_app:metrics_app"),
    "config": at("config_command:config_app"),
}


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
        "release": at(
            "space_commands:release",
            "--kept kept/kept.parquet --roots cuisine --format parquet,jsonl,csv --out cspace",
        ),
        "complete": "builders.completing.completion:complete",
        "import": at("space_commands:import_space", "dishes.csv --concept cuisine --out space"),
        "diff": at("review_commands:diff", "runs/2025 runs/2026 --out changes"),
        "settle": "builders.filtering.candidate_review:settle",
        "review": at("review_commands:review_app"),
        "check": at("app:space_check"),
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
        "ingest": at("ingest_command:ingest", "latest-all.json.gz --out graph"),
        "extract": "kg.exchange.extract_stage:EXTRACT",
        "explain": at("graph_commands:explain", "Q2065278 --graph graph --roots cuisine"),
        "preview": at("graph_commands:preview", "--graph graph --roots landmarks --hops 6"),
        "diff": at("graph_commands:diff", "graph-2024 graph-2025 --out changes"),
        "stats": at("graph_commands:stats", "--graph graph"),
        "export": at("exchange_commands:export", "--graph graph --around Q746549 --hops 1 --out dish.nt"),
        "import": at("exchange_commands:import_command", "dish.graphml --out graph"),
        "query": at(
            "exchange_commands:query",
            "'SELECT ?dish { ?dish wdt:P31 wd:Q746549 }' --graph graph --around Q746549",
        ),
        "entity": at("exchange_commands:entity", "Q746549 --contact you@example.org"),
    },
    help="The knowledge graph: from a dump to candidate artifacts.",
)
prompts = group(
    "prompts",
    {
        "build geographic": "recipes.inclusion.prompts:geographic",
        "build": at(
            "space_commands:build_prompts",
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

WIDEST = 100  # columns of help, where the terminal has as many; Click stops at 80, which cuts descriptions

app = typer.Typer(
    name="culturekit",
    help="Measure how well text-to-image models know the world's cultures, with evidence for every number.",
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"max_content_width": WIDEST}, cls=lazy_group("", COMMANDS),
)  # fmt: skip


def show_version(value: bool) -> None:
    """Print the version and leave."""
    if value:
        print(VERSION)
        raise typer.Exit


def use_named(path: Path | None) -> Path | None:
    """Use the plugins of a file before the command is looked for, which one of them may bring."""
    if path is not None:
        from culturekit.config.load import use_plugins_in

        use_plugins_in(path)
    return path


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done, on stderr.")] = False,
    countries_file: Annotated[
        Path | None,
        typer.Option(help="YAML file of countries beside the shipped ones, or in their place; `world`: all countries."),
    ] = None,
    plugins: Annotated[
        Path | None,
        typer.Option(callback=use_named, help="YAML file, such as a recipe, whose key plugins names code to use."),
    ] = None,
) -> None:
    """Set up what all commands share."""
    lines = StderrLines(as_json="--json" in sys.argv)
    logging.basicConfig(handlers=[lines], level=logging.DEBUG if verbose else logging.WARNING)
    if countries_file is not None:
        from culturekit.kg.countries import use_countries

        use_countries(countries_file)


class StderrLines(logging.Handler):
    """Writes to stderr as it is at the time, so that lines come out above a bar."""

    def __init__(self, *, as_json: bool) -> None:
        """Choose the kind of lines."""
        super().__init__()
        self.setFormatter(logging.Formatter("%(message)s"))
        self.as_json = as_json

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        level, text = record.levelname, self.format(record)
        line = json.dumps({"level": level.lower(), "said": text}) if self.as_json else f"{level}: {text}"
        print(line, file=sys.stderr, flush=True)
