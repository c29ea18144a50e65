"""Make dumps of any size in the shape of Wikidata's: an array, an entity a line, gzip members of whole lines.

    python benchmarks/dump_generator.py OUT.json.gz --megabytes 1000 --members 40

The classes and countries are those of the bundled sample; what surrounds them (labels and descriptions in many
languages, statements with hashes, qualifiers and references, sitelinks) has the proportions of real entities: about
14 kB an item, three quarters of it statements that culturekit does not keep. Equal arguments give equal bytes.
"""

import argparse
import bz2
import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["generate_dump", "generated_lines"]

SAMPLE = Path(__file__).parent.parent / "culturekit/kg/sample/wikidata-sample.json.gz"
LANGUAGES = (
    "en", "mul", "nl", "fr", "de", "es", "it", "pt", "ru", "ja", "zh", "ar", "sv", "pl", "uk", "fa", "id", "tr", "cs",
    "fi", "hu", "ko", "he", "da", "nb", "ro", "ca", "bn", "hi", "ga", "ast", "zh-hans", "pt-br", "en-gb",
    "vi", "th", "el", "bg",
)  # fmt: skip
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip_member(data),
    ".bz2": lambda data: bz2.compress(data),
    ".json": lambda data: data,
}
POOL = 600
"""How many different surroundings there are."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What culturekit does not keep of an entity, or keeps little of: JSON before the claims, claims, and after."""

    terms: bytes
    claims: bytes
    sitelinks: bytes


def generate_dump(path: Path, *, megabytes: float, members: int = 1, seed: int = 0) -> int:
    """Write a dump of about so many megabytes of JSON; give the number of entities."""
    compress = COMPRESSORS[path.suffix]
    size = round(megabytes * 1e6 / members)
    lines = generated_lines(seed)
    count = 0
    with path.open("wb") as file:
        for member in range(members):
            block: list[bytes] = []
            length = 0
            while length < size:
                line = next(lines)
                block.append(line)
                length += len(line) + 2
                count += 1
            head = b"[\n" if member == 0 else b",\n"
            tail = b"\n]\n" if member == members - 1 else b""
            file.write(compress(head + b",\n".join(block) + tail))
    return count


def gzip_member(data: bytes) -> bytes:
    """Compress to one gzip member without a time."""
    packer = zlib.compressobj(6, wbits=31)
    return packer.compress(data) + packer.flush()


def generated_lines(seed: int = 0) -> Iterator[bytes]:
    """Give entities without end, in the order of a dump: mostly ascending, here and there a property."""
    rng = random.Random(seed)
    pool = [surroundings(rng) for _ in range(POOL)]
    classes, countries = of_sample()
    number = 130_000_000
    while True:
        number += rng.randrange(1, 9)
        around = rng.choice(pool)
        if rng.random() < 0.002:
            yield b'{"type":"property","datatype":"wikibase-item","id":"P%d",%s,"claims":{}}' % (
                number % 12_000,
                around.terms,
            )
            continue
        own = [claim("P31", rng.choice(classes), rng)]
        if rng.random() < 0.05:
            own.append(claim("P279", rng.choice(classes), rng))
        if rng.random() < 0.15:
            own.append(claim("P17", rng.choice(countries), rng))
        if rng.random() < 0.02:
            own.append(claim("P495", rng.choice(countries), rng))
        yield b'{"type":"item","id":"Q%d",%s,"claims":{%s,%s},"sitelinks":%s,"lastrevid":%d}' % (
            number, around.terms, b",".join(own), around.claims, around.sitelinks, rng.randrange(10**9),
        )  # fmt: skip


def of_sample() -> tuple[list[int], list[int]]:
    """Read the classes and the countries of the bundled sample."""
    classes: set[int] = set()
    countries: set[int] = set()
    for line in gzip.decompress(SAMPLE.read_bytes()).decode().splitlines():
        text = line.strip().rstrip(",")
        if not text.startswith("{"):
            continue
        try:
            entity = json.loads(text)
        except json.JSONDecodeError:
            continue
        claims = entity.get("claims") or {}
        for name, into in (("P31", classes), ("P279", classes), ("P17", countries), ("P495", countries)):
            for statement in claims.get(name, ()):
                into.add(statement["mainsnak"].get("datavalue", {}).get("value", {}).get("numeric-id", 5))
    return sorted(classes), sorted(countries)


def claim(name: str, value: int, rng: random.Random) -> bytes:
    """Write a statement that is kept."""
    return (
        b'"%s":[{"mainsnak":{"snaktype":"value","property":"%s","hash":"%040x","datavalue":{"value":{"entity-type":"item",'
        b'"numeric-id":%d,"id":"Q%d"},"type":"wikibase-entityid"},"datatype":"wikibase-item"},"type":"statement",'
        b'"id":"Q1$%032x","rank":"normal"}]'
    ) % (name.encode(), name.encode(), rng.getrandbits(160), value, value, rng.getrandbits(128))


def surroundings(rng: random.Random) -> Surroundings:
    """Draw what surrounds an item: few entities have much, and one source stands behind most statements of an item."""
    famous = rng.random() < 0.1
    label = [word(rng) for _ in range(rng.randrange(1, 6))]
    labels = terms(rng, rng.randrange(20, 36) if famous else rng.randrange(1, 8), label)
    descriptions = terms(rng, rng.randrange(8, 30), [word(rng) for _ in range(3)])
    aliases = {name: [term] for name, term in terms(rng, rng.randrange(0, 4), label).items()}
    text = dumps({"labels": labels, "descriptions": descriptions, "aliases": aliases})[1:-1]
    sources = [reference(rng) for _ in range(rng.randrange(1, 3))]
    names = [f"P{1000 + rng.randrange(400) * 7}" for _ in range(rng.randrange(3, 7))]
    claims = {name: [unkept(rng, name, sources) for _ in range(rng.choice((1, 1, 2, 6)))] for name in names}
    if rng.random() < 0.1:
        claims["P18"] = [statement("P18", {"value": f"{word(rng)}.jpg", "type": "string"}, rng)]
    if rng.random() < 0.2:
        place = {"latitude": rng.uniform(-60, 60), "longitude": rng.uniform(-180, 180), "precision": 0.01}
        claims["P625"] = [statement("P625", {"value": place, "type": "globecoordinate"}, rng)]
    linked = LANGUAGES[: rng.randrange(0, 30) if famous else rng.randrange(0, 2)]
    pages = {f"{code.replace('-', '_')}wiki": page(code, label) for code in linked}
    return Surroundings(text, dumps(claims)[1:-1], dumps(pages))


def terms(rng: random.Random, count: int, words: list[str]) -> dict[str, dict[str, str]]:
    """Write terms in some languages, the first ones most often; most are alike in several languages."""
    codes = LANGUAGES[:count] if rng.random() < 0.7 else rng.sample(LANGUAGES, count)
    made = {}
    for code in codes:
        own = words if rng.random() < 0.7 else [word(rng) for _ in words]
        made[code] = {"language": code, "value": " ".join(own)}
    return made


def word(rng: random.Random) -> str:
    """Make up one of a few thousand words, some of them in another script."""
    own = random.Random(int(3000 * rng.random() ** 2))
    start = own.choice((0x61, 0x61, 0x61, 0x430, 0x3B1))
    return "".join(chr(start + own.randrange(24)) for _ in range(own.randrange(3, 11)))


def page(code: str, words: list[str]) -> dict[str, Any]:
    """Write a sitelink."""
    title = " ".join(words)
    address = f"https://{code}.wikipedia.org/wiki/{'_'.join(words)}"
    return {"site": f"{code}wiki", "title": title, "badges": [], "url": address}


def unkept(rng: random.Random, name: str, sources: list[dict[str, Any]]) -> dict[str, Any]:
    """Write a statement with a qualifier and a reference, of a property that is not kept."""
    made = statement(name, {"value": word(rng), "type": "string"}, rng)
    if rng.random() < 0.4:
        made["qualifiers"] = {"P1545": [snak("P1545", {"value": str(rng.randrange(60)), "type": "string"}, rng)]}
        made["qualifiers-order"] = ["P1545"]
    made["references"] = [rng.choice(sources)]
    return made


def reference(rng: random.Random) -> dict[str, Any]:
    """Write a reference."""
    value = {"value": {"entity-type": "item", "numeric-id": 180686, "id": "Q180686"}, "type": "wikibase-entityid"}
    address = {"value": f"https://{word(rng)}.org/{word(rng)}", "type": "string"}
    day = {
        "time": "+2020-03-05T00:00:00Z",
        "timezone": 0,
        "precision": 11,
        "calendarmodel": "http://www.wikidata.org/entity/Q1985727",
    }
    snaks = {
        "P248": [snak("P248", value, rng)],
        "P854": [snak("P854", address, rng)],
        "P813": [snak("P813", {"value": day, "type": "time"}, rng)],
    }
    return {"hash": f"{rng.getrandbits(160):040x}", "snaks": snaks, "snaks-order": list(snaks)}


def statement(name: str, value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Write a statement."""
    return {
        "mainsnak": snak(name, value, rng),
        "type": "statement",
        "id": f"Q1${rng.getrandbits(128):032x}",
        "rank": "normal",
    }


def snak(name: str, value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Write a snak."""
    return {
        "snaktype": "value",
        "property": name,
        "hash": f"{rng.getrandbits(160):040x}",
        "datavalue": value,
        "datatype": "string",
    }


def dumps(value: object) -> bytes:
    """Write JSON as the dumps have it."""
    return json.dumps(value, separators=(",", ":")).encode()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count = generate_dump(options.out, megabytes=options.megabytes, members=options.members, seed=options.seed)
    print(f"{count:,} entities, {options.out.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
