"""Runs of a file to the whole of it: the lines between runs, the numbers of lines and members, the array's brackets."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from culturekit.errors import IntegrityError
from culturekit.kg.dump.bzip2_ranges import combined
from culturekit.kg.dump.cut_lines import NOWHERE, Block, Piece
from culturekit.kg.dump.cut_triples import is_triple
from culturekit.kg.dump.dump_runs import Bracket, LineReader, RunReport, Sample, Syntax, decoder_of
from culturekit.kg.dump.item_batches import ItemBatch
from culturekit.kg.dump.triples import kept_lines, subject_of
from culturekit.storage.atomic import clear_folder

__all__ = ["FileReport", "Parts", "Splice"]

BRACKET = "not-an-entity"
"""The reason under which a bracket counts that opens or closes nothing."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a run, and what must be added to the places in them; `offset` only within the first member."""

    folder: Path
    count: int
    lines: int
    members: int
    offset: int


@dataclass(slots=True)
class FileReport:
    """What a file held, with lines and members numbered in the file."""

    parts: list[Parts] = field(default_factory=list)
    entities: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    members: int = 0
    length: int = 0
    starts: list[tuple[int, int, int]] = field(default_factory=list)
    syntax: Syntax = "json"


class Splice:
    """Takes the reports of a file's runs in their order."""

    def __init__(
        self, name: str, file: int, folder: Path, languages: tuple[str, ...], *, syntax: Syntax = "json"
    ) -> None:
        """Begin at the first line of the file; lines between runs leave their parts in `folder`."""
        clear_folder(folder)
        self.name = name
        self.report = FileReport(syntax=syntax)
        self.seams = LineReader(decoder_of(syntax, languages), ItemBatch(folder, file))
        self.kept = kept_lines(languages) if syntax == "triples" else None
        self.open_block: Block | None = None
        self.brackets: list[Bracket] = []
        self.last_content = 0
        self.open_piece = NOWHERE
        self.lines = 0
        self.offset = 0
        self.checksum = 0

    def add(self, run: RunReport, folder: Path, *, numbered: bool = False) -> None:
        """Add a run; `numbered` says that its members and offsets are those of the file already."""
        members, offset = (0, 0) if numbered else (self.report.members, self.offset)
        self.verify_streams(run)
        head = Piece(run.head.member + members, run.head.offset + (0 if run.head.member else offset), run.head.content)
        self.open_piece = joined(self.open_piece, head)
        if run.ends:
            self.seam(self.open_piece)
            tail = run.tail
            self.open_piece = Piece(tail.member + members, tail.offset + (0 if tail.member else offset), tail.content)
        for end in (run.first, run.last):
            if end is not None:
                begun = end.offset + (0 if end.member else offset)
                self.go_on(Block(end.number + self.lines, end.member + members, begun, end.content))
        self.report.parts.append(Parts(folder, run.parts, self.lines, members, offset))
        self.take(run, members, offset)
        self.lines += run.ends
        self.report.members += run.members
        self.report.length += run.length
        self.offset = run.carry if run.members else self.offset + run.carry

    def take(self, run: RunReport, members: int, offset: int) -> None:
        """Count what the whole lines of a run were."""
        self.report.entities += run.entities
        self.report.kinds.update(run.kinds)
        self.report.malformed.update(run.malformed)
        self.report.left_out.update(run.left_out)
        self.report.samples += [
            Sample(s.line + self.lines, s.member + members, s.offset + (0 if s.member else offset), s.problem)
            for s in run.samples
        ]
        self.report.starts += [
            (member + members, place + (0 if member else offset), begin) for member, place, begin in run.starts
        ]
        self.brackets += [Bracket(bracket.line + self.lines, bracket.closes) for bracket in run.brackets]
        if run.last_content:
            self.last_content = max(self.last_content, run.last_content + self.lines)

    def seam(self, piece: Piece) -> None:
        """Read a line that no run saw whole, or the first line of a run."""
        number, content = self.lines + 1, piece.content
        if self.kept is not None and is_triple(content + b"\n"):
            match = self.kept.match(b"\n" + content + b"\n")
            if match:
                self.go_on(Block(number, piece.member, piece.offset, match[0]))
            return
        if number == 1 and content.lstrip().startswith(b"["):
            self.seams.brackets.append(Bracket(1, closes=False))
            content = content.lstrip()[1:]
        self.seams.read(content.strip(), number, piece.member, piece.offset)

    def go_on(self, block: Block) -> None:
        """Take lines about an entity; where they are about another than those before, that one is complete."""
        before = self.open_block
        if before is not None and subject_of(before.content) == subject_of(block.content):
            self.open_block = replace(before, content=before.content + block.content)
            return
        self.end_block()
        self.open_block = block

    def end_block(self) -> None:
        """Read the entity that was open."""
        if (block := self.open_block) is not None:
            self.seams.read(block.content, block.number, block.member, block.offset)
        self.open_block = None

    def verify_streams(self, run: RunReport) -> None:
        """Hold the checksum of every bzip2 stream against those of its blocks."""
        for ends, value in run.checks:
            if not ends:
                self.checksum = combined(self.checksum, value)
                continue
            if value != self.checksum:
                raise IntegrityError(
                    "damaged: the checksum of a stream is not that of its blocks",
                    where=self.name,
                    found=f"the damage in member {self.report.members}",
                    hint="Nothing was published. Fetch the file again and check it against the published checksum.",
                )
            self.checksum = 0

    def finish(self) -> FileReport:
        """Read the last line, check the brackets, and give the report of the file."""
        if self.open_piece.content:
            self.seam(self.open_piece)
        self.end_block()
        self.seams.batch.write()
        reader, report = self.seams, self.report
        report.parts.append(Parts(reader.batch.folder, reader.batch.parts, 0, 0, 0))
        report.entities += reader.entities
        report.kinds.update(reader.counts())
        report.malformed.update(reader.malformed)
        report.left_out.update(reader.batch.left_out)
        report.samples = sorted(report.samples + reader.samples, key=lambda sample: sample.line)
        self.check_brackets(max(self.last_content, reader.last_content))
        return report

    def check_brackets(self, last_content: int) -> None:
        """An array that is opened and never closed was cut off; a bracket elsewhere is a malformed line."""
        brackets = sorted(self.brackets + self.seams.brackets, key=lambda bracket: bracket.line)
        opened = bool(brackets) and brackets[0] == Bracket(1, closes=False)
        closing = next((bracket for bracket in brackets if bracket.closes), None) if opened else None
        if opened and closing is None:
            member = max(self.report.members - 1, 0)
            raise IntegrityError(
                "the file ends before the array does",
                where=self.name,
                expected="a last line with ]",
                found=f"its end at byte {self.report.length:,} of the JSON, in member {member}",
                hint="Nothing was published. The download was probably cut: fetch the file again.",
            )
        stray = [bracket for bracket in brackets[1:] if bracket is not closing] if opened else brackets
        if closing is not None and max(last_content, *(bracket.line for bracket in brackets)) > closing.line:
            raise IntegrityError(
                "there is more after the end of the array", where=f"{self.name}, after line {closing.line}"
            )
        if stray:
            self.report.malformed[BRACKET] += len(stray)
            self.report.entities += len(stray)
            self.report.samples.append(Sample(stray[0].line, 0, 0, f"{BRACKET}: a bracket without its array"))


def joined(piece: Piece, more: Piece) -> Piece:
    """Put two pieces of a line together; the line begins where its first byte stands."""
    return Piece(piece.member, piece.offset, piece.content + more.content) if piece.content else more
