"""Pages about the simulated world, in the shapes of real sources: what people there do, in sentences to be quoted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import yaml

from culturekit.core.atomic import write_atomically
from culturekit.core.errors import UsageError
from culturekit.generation.simulated.scenes.scenes_backend import world
from culturekit.kg.countries import country

PAGES = "pages.yaml"

ATLAS, LISTED = ("religious", "greetings", "celebrations"), ("dances", "games")
"""Which categories stand on a country's page, and which on lists of their own."""

REVISION = "1"
SENTENCES = (
    "In {place} the {name} is known in every town.",
    "Visitors to {place} often meet the {name} on their first day.",
    "For many families the {name} belongs to the year.",
)
AGAIN = "Older people still speak of the {name} with a smile."
"""What is said of every third activity once more, in another section."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and what the list of pages says of it."""

    file: str
    source: str
    country: str
    title: str
    categories: tuple[str, ...]
    content: str

    def listed(self) -> dict[str, object]:
        """Give its entry in the list."""
        known = {"source": self.source, "country": self.country, "file": self.file, "title": self.title}
        revision = {"revision": REVISION} if self.source == "wikipedia" else {}
        return {**known, **revision, "categories": list(self.categories)}


def write_pages(folder: Path, countries: Sequence[str]) -> int:
    """Write the pages of some countries and the list of them; give how many pages there are."""
    unknown = sorted(set(countries) - set(world().countries))
    if unknown:
        raise UsageError(
            f"the simulated world has no {' or '.join(unknown)}", expected="some of " + ", ".join(world().countries)
        )
    pages = [page for iso in countries for page in pages_of(iso)]
    for page in pages:
        write_atomically(folder / page.file, page.content.encode())
    listed = yaml.safe_dump({"pages": [page.listed() for page in pages]}, sort_keys=False)
    write_atomically(folder / PAGES, listed.encode())
    return len(pages)


def pages_of(iso: str) -> Iterator[Page]:
    """Write the page of a country, and its lists."""
    place = country(iso).in_a_sentence
    title = f"{country(iso).name} culture"
    yield Page(f"{iso}-atlas.html", "cultural-atlas", iso, title, ATLAS, atlas_page(title, place))
    for category in LISTED:
        title = f"List of {category} of {place}"
        yield Page(f"{iso}-{category}.wikitext", "wikipedia", iso, title, (category,), list_page(category, place))


def atlas_page(title: str, place: str) -> str:
    """Write a page in the shape of the CulturalAtlas: a section for each category, and one that comes back to some."""
    sections = {
        category.capitalize(): [f"People in {place} may see this differently.", *sentences(category, place)]
        for category in ATLAS
    }
    sections["Etiquette"] = [AGAIN.format(name=name) for category in ATLAS for name in names_of(category)[::3]]
    body = "".join(
        f"<section><h2>{escape(heading)}</h2>{''.join(f'<p>{escape(text)}</p>' for text in texts)}</section>\n"
        for heading, texts in sections.items()
    )
    head = f"<!DOCTYPE html>\n<html><head><title>{escape(title)}</title></head>\n<body><h1>{escape(title)}</h1>\n"
    return f"{head}{body}</body></html>\n"


def list_page(category: str, place: str) -> str:
    """Write a list in wikitext, which comes back to some of its entries."""
    linked = [(name, f"'''[[{name}]]'''") for name in names_of(category)]
    entries = "\n".join(
        f"* {sentence.replace(name, link)}"
        for (name, link), sentence in zip(linked, sentences(category, place), strict=True)
    )
    again = "\n".join(AGAIN.format(name=f"[[{name}]]") for name in names_of(category)[::3])
    return f"This is a list of {category} of {place}.\n\n== Known everywhere ==\n{entries}\n\n== Memories ==\n{again}\n"


def names_of(category: str) -> list[str]:
    """List the activities of a category."""
    return list(world().categories[category].activities)


def sentences(category: str, place: str) -> list[str]:
    """Write a sentence for each activity of a category."""
    return [
        SENTENCES[number % len(SENTENCES)].format(place=place, name=name)
        for number, name in enumerate(names_of(category))
    ]
