"""WordNet through NLTK: whether its files are there, Debian's mended, and the nouns below a term."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culturekit.core.atomic import write_atomically
from culturekit.core.errors import UsageError
from culturekit.core.registry import needing

PARTS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
TYPES = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
"""How files and kinds of senses are numbered in keys of senses."""

OF_DEBIAN = frozenset(("lexnames", "index.sense"))
FILES = frozenset(f"{kind}.{part}" for kind in ("data", "index") for part in PARTS) | OF_DEBIAN | {
    "cntlist.rev", *(f"{part}.exc" for part in PARTS)
}  # fmt: skip
"""What NLTK reads; Debian's package wordnet-base lacks two of them."""

PLACES = ("corpora/wordnet", "wordnet", "")
DEBIAN = Path("/usr/share/wordnet")
"""Where Debian's package puts it."""

MEND = f"culturekit prompts wordnet --source {DEBIAN} --out nltk_data"
GET = f"python -m nltk.downloader -d nltk_data wordnet, or: apt install wordnet-base && {MEND}"

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
    for place in PLACES:
        if (folder / place / "data.noun").is_file() or (folder / place / "lexnames").is_file():
            found = folder / place
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
    place, missing = found
    if missing == OF_DEBIAN:
        raise UsageError("this is WordNet as Debian's wordnet-base has it, and NLTK cannot read it", where=str(place),
                         expected=", ".join(sorted(missing)), hint=f"Mend it: {MEND}.")  # fmt: skip
    if missing:
        raise UsageError("this WordNet is not whole", where=str(place), expected=f"{len(FILES)} files",
                         found=f"all but {', '.join(sorted(missing))}", hint=f"Get it again: {GET}.")  # fmt: skip
    return place


def mend_wordnet(source: Path, out: Path) -> int:
    """Copy WordNet's files to where NLTK looks for them, and write the two that Debian leaves out; count the senses."""
    found = lacking(source)
    if found is None or not found[1] <= OF_DEBIAN:
        wordnet_folder(source)
    place, target = source if found is None else found[0], out / "corpora/wordnet"
    target.mkdir(parents=True)
    for name in sorted(FILES - OF_DEBIAN):
        write_atomically(target / name, (place / name).read_bytes())
    names = LEXICOGRAPHERS.split()
    listed = "".join(f"{number:02}\t{name}\t{PARTS[name.partition('.')[0]]}\n" for number, name in enumerate(names))
    write_atomically(target / "lexnames", listed.encode())
    senses = sorted(senses_of(place))
    write_atomically(target / "index.sense", "".join(f"{line}\n" for line in senses).encode())
    return len(senses)


def senses_of(place: Path) -> Iterator[str]:
    """Give each sense: its key, where its synset lies, its number among those of the word, and how often it is met."""
    met: dict[str, str] = {}
    for line in (place / "cntlist.rev").read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        met[key] = count
    for part in PARTS:
        synsets = dict(synsets_of(place / f"data.{part}"))
        for line in (place / f"index.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):
                continue
            fields = line.split()
            offsets = fields[-int(fields[2]) :]
            for number, offset in enumerate(offsets, start=1):
                key = synsets[offset].key_of(fields[0], synsets)
                yield f"{key} {offset} {number} {met.get(key, '0')}"


@dataclass(frozen=True, slots=True)
class SynsetLine:
    """A line of a data file, as far as keys of senses need it: words with their ids, and the head of a satellite."""

    kind: str
    file: int
    words: Mapping[str, int]
    head: str | None

    def key_of(self, word: str, synsets: Mapping[str, "SynsetLine"]) -> str:
        """Write the key of one of its words."""
        head = ":"
        if self.head is not None:
            first, number = next(iter(synsets[self.head].words.items()))
            head = f"{first}:{number:02}"
        return f"{word}%{TYPES[self.kind]}:{self.file:02}:{self.words[word]:02}:{head}"


def synsets_of(path: Path) -> Iterator[tuple[str, SynsetLine]]:
    """Read the synsets of a data file by where they lie."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue
        fields = line.partition(" | ")[0].split()
        count = int(fields[3], 16)
        words = {
            fields[4 + 2 * place].partition("(")[0].casefold(): int(fields[5 + 2 * place], 16) for place in range(count)
        }
        pointers = fields[5 + 2 * count :]
        head = next((pointers[at + 1] for at in range(0, len(pointers), 4) if pointers[at] == "&"), None)
        yield fields[0], SynsetLine(fields[2], int(fields[1]), words, head if fields[2] == "s" else None)


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun below a term: the names of both synsets, its first word, and what it means."""

    synset: str
    noun: str
    term: str
    definition: str


def nouns_below(folder: Path, terms: Sequence[str]) -> list[Noun]:
    """List the hyponyms of terms, each once, below the first term that has it; in the order of their names."""
    with needing("sources", "reading WordNet"):
        import nltk
        from nltk.corpus.reader.wordnet import WordNetCorpusReader, WordNetError
    place = wordnet_folder(folder)
    allowed = str(place.parent.parent if place.parent.name == "corpora" else place)
    if allowed not in nltk.data.path:
        nltk.data.path.append(allowed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no WordNet of other languages
        reader: Any = WordNetCorpusReader(nltk.data.FileSystemPathPointer(str(place)), None)
    found: dict[str, Noun] = {}
    for term in terms:
        try:
            top = reader.synset(term)
        except (WordNetError, ValueError, KeyError) as error:
            raise UsageError("WordNet has no such synset", found=term, expected="a name such as shop.n.01") from error
        for synset in top.closure(lambda one: one.hyponyms()):
            word = synset.lemma_names()[0].replace("_", " ")
            found.setdefault(synset.name(), Noun(synset.name(), word, term, synset.definition()))
    return [found[name] for name in sorted(found)]
