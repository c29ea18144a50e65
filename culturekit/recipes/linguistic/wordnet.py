"""WordNet through NLTK: whether its files are there, Debian's mended, and nouns below a term as a sheet to fill in."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.builders.prompting.quotas import cell_mistakes, decided_rows, decision_of
from culturekit.core.atomic import write_atomically
from culturekit.core.declared import StageCommand
from culturekit.core.errors import UsageError
from culturekit.core.registry import needing
from culturekit.core.schemas import NEUTRAL_CANDIDATES
from culturekit.core.spreadsheet_cells import sheet_bytes
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import write_table

PARTS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
TYPES = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}  # how kinds of senses are numbered in keys, as PARTS are in files

OF_DEBIAN = frozenset(("lexnames", "index.sense"))
FILES = frozenset(f"{kind}.{part}" for kind in ("data", "index") for part in PARTS) | OF_DEBIAN | {
    "cntlist.rev", *(f"{part}.exc" for part in PARTS)
}  # fmt: skip
"""What NLTK reads; Debian's package wordnet-base lacks two of them."""

REVIEW = "review.csv"
COLUMNS = ("synset", "noun", "term", "definition", "decision", "new_name")
TERMS = ("establishment.n.04", "building.n.01", "meal.n.01", "course.n.07")
"""Synsets whose hyponyms are candidates: places of business, buildings, meals and their courses."""

PLACES = ("corpora/wordnet", "wordnet", "")
DEBIAN = Path("/usr/share/wordnet")  # where Debian's package puts it

MENDING = f"culturekit prompts wordnet --source {DEBIAN} --out nltk_data"
GET = f"python -m nltk.downloader -d nltk_data wordnet, or: apt install wordnet-base && {MENDING}"

LEXICOGRAPHERS = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition "
    "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person "
    "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
    "noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition "
    "verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social "
    "verb.stative verb.weather adj.ppl"
)
"""Names of WordNet's files by number, from 0: what `lexnames` says."""


def lacking(folder: Path) -> tuple[Path, frozenset[str]] | None:
    """Find WordNet in a folder, and which of its files are not there; None where there is nothing of it."""
    for candidate in PLACES:
        if (folder / candidate / "data.noun").is_file() or (folder / candidate / "lexnames").is_file():
            found = folder / candidate
            return found, frozenset(name for name in FILES if not (found / name).is_file())
    return None


def wordnet_folder(folder: Path) -> Path:
    """Find the folder that NLTK is to read; what is absent, half there or Debian's is told apart."""
    found = lacking(folder)
    if found is None:
        packed = [path.name for path in (folder, *folder.glob("corpora/wordnet.zip")) if path.suffix == ".zip"]
        raise UsageError("there is no WordNet in this folder", where=str(folder),
                         expected="corpora/wordnet with data.noun", found=", ".join(packed) or "none of it",
                         hint=f"Unzip {packed[0]} where it lies." if packed else f"Get it: {GET}.")  # fmt: skip
    path, missing = found
    if missing == OF_DEBIAN:
        raise UsageError("this is WordNet as Debian's wordnet-base has it, and NLTK cannot read it", where=str(path),
                         expected=", ".join(sorted(missing)), hint=f"Mend it: {MENDING}.")  # fmt: skip
    if missing:
        raise UsageError("this WordNet is not whole", where=str(path), expected=f"{len(FILES)} files",
                         found=f"all but {', '.join(sorted(missing))}", hint=f"Get it again: {GET}.")  # fmt: skip
    return path


def mend_wordnet(source: Path, out: Path) -> int:
    """Copy WordNet's files to where NLTK looks for them, and write the two that Debian leaves out; count the senses."""
    found = lacking(source)
    if found is None or not found[1] <= OF_DEBIAN:
        wordnet_folder(source)
    source_path, target = source if found is None else found[0], out / "corpora/wordnet"
    target.mkdir(parents=True)
    for name in sorted(FILES - OF_DEBIAN):
        write_atomically(target / name, (source_path / name).read_bytes())
    names = LEXICOGRAPHERS.split()
    listed = "".join(f"{number:02}\t{name}\t{PARTS[name.partition('.')[0]]}\n" for number, name in enumerate(names))
    write_atomically(target / "lexnames", listed.encode())
    senses = sorted(_senses_of(source_path))
    write_atomically(target / "index.sense", "".join(f"{line}\n" for line in senses).encode())
    return len(senses)


def _senses_of(path: Path) -> Iterator[str]:
    """Yield each sense: its key, where its synset lies, its number among those of the word, and how often it is met."""
    met: dict[str, str] = {}
    for line in (path / "cntlist.rev").read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        met[key] = count
    for part in PARTS:
        synsets = dict(_synsets_of(path / f"data.{part}"))
        for line in (path / f"index.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):
                continue
            word, _, count, *fields = line.split()
            for number, offset in enumerate(fields[-int(count) :], start=1):
                kind, words, satellite_of = synsets[offset]
                head = ":"
                if satellite_of is not None:
                    first, identifier = next(iter(synsets[satellite_of][1].items()))
                    head = f"{first}:{identifier:02}"
                key = f"{word}%{kind}:{words[word]:02}:{head}"
                yield f"{key} {offset} {number} {met.get(key, '0')}"


def _synsets_of(path: Path) -> Iterator[tuple[str, tuple[str, Mapping[str, int], str | None]]]:
    """Read the synsets of a data file by where they lie: kind and file, words with ids, the head of a satellite."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue
        offset, file, kind, number, *fields = line.partition(" | ")[0].split()
        count = 2 * int(number, 16)
        words = {
            word.partition("(")[0].casefold(): int(identifier, 16)
            for word, identifier in zip(fields[:count:2], fields[1:count:2], strict=True)
        }
        pointers = fields[count + 1 :]
        head = next((pointers[at + 1] for at in range(0, len(pointers), 4) if pointers[at] == "&"), None)
        yield offset, (f"{TYPES[kind]}:{int(file):02}", words, head if kind == "s" else None)


def nouns_below(folder: Path, terms: Sequence[str]) -> list[dict[str, str]]:
    """List the hyponyms of terms as rows of NEUTRAL_CANDIDATES, each once, below the first term that has it."""
    with needing("sources", "reading WordNet"):
        import nltk
        from nltk.corpus.reader.wordnet import WordNetCorpusReader, WordNetError
    path = wordnet_folder(folder)
    allowed = str(path.parent.parent if path.parent.name == "corpora" else path)
    if allowed not in nltk.data.path:
        nltk.data.path.append(allowed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no WordNet of other languages
        reader: Any = WordNetCorpusReader(nltk.data.FileSystemPathPointer(str(path)), None)
    found: dict[str, dict[str, str]] = {}
    for term in terms:
        try:
            top = reader.synset(term)
        except (WordNetError, ValueError, KeyError) as error:
            raise UsageError("WordNet has no such synset", found=term, expected="a name such as shop.n.01") from error
        for synset in top.closure(lambda one: one.hyponyms()):
            noun = {"synset": synset.name(), "noun": synset.lemma_names()[0].replace("_", " "), "term": term}
            found.setdefault(noun["synset"], {**noun, "definition": synset.definition()})
    return [found[name] for name in sorted(found)]


def candidates_stage(folder: Path, terms: tuple[str, ...]) -> Stage:
    """List the nouns below terms, and write the sheet on which people say which are neutral."""
    path = wordnet_folder(folder)

    def run(work: Work) -> Outcome:
        rows = nouns_below(folder, terms)
        write_table(work.out, NEUTRAL_CANDIDATES, pl.DataFrame(rows, schema=NEUTRAL_CANDIDATES.schema))
        cells = [{**row, "decision": "", "new_name": ""} for row in rows]
        write_atomically(work.out / REVIEW, sheet_bytes(COLUMNS, cells))
        return Outcome({"neutral_candidates": len(rows)})

    inputs = {name: path / name for name in ("data.noun", "index.noun")}
    return Stage("prompts", "neutral-candidates", 1, run, inputs, {"terms": list(terms)}, packages=("nltk", "polars"))


def accepted_nouns(sheet: Path) -> tuple[str, ...]:
    """Read the nouns that people accept, some under another name; a noun that is accepted twice counts once."""
    names: dict[str, str] = {}
    decided = decided_rows(sheet, ("synset", "noun", "decision"), lambda row: (row.cells["synset"], row.cells["noun"]),
                           cell_mistakes, decision_of)  # fmt: skip
    for (_, noun), decision in decided.items():
        if decision is not None and decision.verdict != "reject":
            name = decision.name or noun
            names.setdefault(name.casefold(), name)
    if not names:
        raise UsageError(
            "people accepted no noun", where=str(sheet), expected="accept, or edit with a new name, in some row"
        )
    return tuple(names[key] for key in sorted(names))


def wordnet_stage(
    source: Annotated[Path, Field(description="Folder of wordnet-base, such as /usr/share/wordnet.")],
) -> Stage:
    """Make a data folder of NLTK of Debian's WordNet.

    With `lexnames` and `index.sense`, which it leaves out.
    """

    def run(work: Work) -> Outcome:
        return Outcome({"senses": mend_wordnet(source, work.out)})

    return Stage("wordnet", "mend-wordnet", 1, run, {"source": source / "data.noun"})


MEND = StageCommand(wordnet_stage, "--source /usr/share/wordnet --out nltk_data", also=False)
