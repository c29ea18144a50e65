import random
import sqlite3

from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.llm.journal import RequestTexts, read_templates, shared_ends
from culturekit.llm.journal_file import TABLES


def texts() -> RequestTexts:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(TABLES)
    return RequestTexts(connection)


def stored(kept: RequestTexts) -> dict[bytes, bytes]:
    templates = read_templates(kept.connection)
    rows = kept.connection.execute("SELECT key, template, middle FROM requests")
    return {key: templates[number].head + middle + templates[number].tail for key, number, middle in rows}


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_shared_ends_are_ends_of_both_and_do_not_overlap(one: bytes, other: bytes) -> None:
    head, tail = shared_ends(one, other)
    assert one.startswith(head) and other.startswith(head)
    assert one.endswith(tail) and other.endswith(tail)
    assert len(head) + len(tail) <= min(len(one), len(other))
    left, right = (text[len(head) : len(text) - len(tail)] for text in (one, other))
    assert not left or not right or (left[0] != right[0] and left[-1] != right[-1])


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from([b"a" * 70, b"b" * 90, b"{}", b"Q1", b"\xff"]), max_size=5).map(b"".join)))
def test_every_body_comes_back_whatever_it_shares(bodies: list[bytes]) -> None:
    kept = texts()
    wanted = {number.to_bytes(32, "big"): body for number, body in enumerate(bodies)}
    for key, body in wanted.items():
        kept.numbers_of([(key, body)])
    assert stored(kept) == wanted


def test_constant_instructions_are_written_once() -> None:
    kept = texts()
    system = b"You judge candidates. " * 100
    openai = [(b"o%031d" % n, b'{"messages":["%b","Q%d"],"model":"m"}' % (system, n)) for n in range(500)]
    google = [(b"g%031d" % n, b'{"contents":"Q%d","systemInstruction":"%b"}' % (n, system)) for n in range(500)]
    mixed = [request for pair in zip(openai, google, strict=True) for request in pair]
    for start in range(0, len(mixed), 64):
        kept.numbers_of(mixed[start : start + 64])
    assert stored(kept) == dict(mixed)
    (written,) = kept.connection.execute("SELECT sum(length(middle)) FROM requests").fetchone()
    (shared,) = kept.connection.execute("SELECT sum(length(head) + length(tail)) FROM templates").fetchone()
    assert written < 1000 * 50
    assert shared < 5 * len(system)


def test_a_template_is_added_only_where_it_saves_far_more_than_the_best_one() -> None:
    kept, rng = texts(), random.Random(1)
    for number in range(40):
        kept.numbers_of([(b"k%031d" % number, b"a" * 200 + rng.randbytes(600))])
    assert len(kept.templates) == len(read_templates(kept.connection)) <= 3
    for number in range(40, 50):
        kept.numbers_of([(b"k%031d" % number, b"a" * 200 + b"b" * 600 + rng.randbytes(900))])
    assert max(template.saved for template in kept.templates) >= 800


def test_a_request_is_written_once_per_key() -> None:
    kept = texts()
    first = kept.numbers_of([(b"k" * 32, b"body"), (b"k" * 32, b"body")])
    assert kept.numbers_of([(b"k" * 32, b"body")]) == first
    assert kept.connection.execute("SELECT count(*) FROM requests").fetchone() == (1,)
