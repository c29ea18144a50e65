"""Build the bundled Wikidata sample from checked facts: `python build_sample.py FACTS.jsonl ASSUMED.tsv OUT.json.gz`.

Facts are stated as given, odd ones included. What is made up is recognisable: items above Q2000000000 are
invented, so are all sitelinks, and a statement that is common knowledge but was not seen in Wikidata has
ASSUMED in its id.
"""

import gzip
import hashlib
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from odd_items import invented_entities

Entity = dict[str, Any]

MEMBERS = 12
WIKIS = (
    "enwiki", "ptwiki", "frwiki", "hiwiki", "itwiki", "jawiki", "trwiki", "dewiki", "eswiki", "ruwiki", "zhwiki",
    "arwiki", "kowiki", "plwiki", "nlwiki", "svwiki", "viwiki", "ukwiki", "fawiki", "idwiki", "cawiki", "cswiki",
    "fiwiki", "hewiki", "huwiki", "nowiki", "rowiki", "thwiki", "elwiki", "bgwiki", "igwiki", "yowiki", "hawiki",
)  # fmt: skip


def fraction(text: str) -> float:
    """Make a number in [0, 1) from a text, the same one always."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def statement(qid: str, name: str, value: str, position: int, *, assumed: bool) -> Entity:
    """Write an item-valued statement in the dump's form."""
    item = {"entity-type": "item", "numeric-id": int(value[1:]), "id": value}
    snak = {"snaktype": "value", "property": name, "datavalue": {"value": item, "type": "wikibase-entityid"}}
    return {
        "mainsnak": {**snak, "datatype": "wikibase-item"},
        "type": "statement",
        "id": f"{qid}${'ASSUMED' if assumed else 'SAMPLE'}-{name}-{position}",
        "rank": "normal",
    }


def made_up_sitelinks(qid: str, label: str) -> Entity:
    """Invent sitelinks: few for most, many for a few, as in the real dump."""
    count = int(len(WIKIS) * fraction(f"sitelinks {qid}") ** 3)
    return {wiki: {"site": wiki, "title": label, "badges": []} for wiki in WIKIS[:count]}


def entity(fact: Mapping[str, Any], assumed: set[tuple[str, str, str]]) -> Entity:
    """State one fact row as an entity document."""
    qid, label = fact["qid"], fact["label"]
    in_mul = label is not None and fraction(f"mul {qid}") < 0.1
    language = "mul" if in_mul else "en"
    claims = {
        name: [statement(qid, name, v, n, assumed=(qid, name, v) in assumed) for n, v in enumerate(values)]
        for name, values in fact["statements"].items()
        if values
    }
    return {
        "type": "item",
        "id": qid,
        "labels": {language: {"language": language, "value": label}} if label else [],
        "descriptions": [],
        "aliases": [],
        "claims": claims or [],
        "sitelinks": (made_up_sitelinks(qid, label) if label else None) or [],
    }


def entities(facts: Path, assumed_file: Path) -> Iterator[Entity]:
    """Give all entities in the order of the file: the facts, with the invented ones in between."""
    assumed = set()
    for line in assumed_file.read_text(encoding="utf-8").splitlines()[1:]:
        qid, name, value = line.split("\t")
        assumed.add((qid, name, value))
    rows = [json.loads(line) for line in facts.read_text(encoding="utf-8").splitlines()]
    odd = list(invented_entities())
    every = len(rows) // len(odd)
    for index, row in enumerate(rows):
        if index % every == 0 and odd:
            yield odd.pop(0)
        yield entity(row, assumed)
    yield from odd


def compress(documents: Iterable[Entity]) -> bytes:
    """Write the array, one entity a line, as several gzip members, each ending with a line."""
    lines = [json.dumps(document, ensure_ascii=False, separators=(",", ":")) for document in documents]
    texts = ["[\n", *(line + ",\n" for line in lines[:-1]), lines[-1] + "\n", "]\n"]
    out = io.BytesIO()
    for member in range(MEMBERS):
        part = "".join(texts[len(texts) * member // MEMBERS : len(texts) * (member + 1) // MEMBERS])
        out.write(gzip.compress(part.encode("utf-8"), mtime=0))
    return out.getvalue()


if __name__ == "__main__":
    facts_path, assumed_path, out_path = map(Path, sys.argv[1:])
    out_path.write_bytes(compress(entities(facts_path, assumed_path)))
