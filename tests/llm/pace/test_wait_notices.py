"""What is said of waiting, in simulated time: at once, seldom, and when it is over."""

from collections.abc import Callable

from culturekit.llm.client import Failure
from culturekit.llm.dispatch import WaitNotices
from tests.llm.fake_client import answer_for, questions
from tests.llm.simulated_wire import SimulatedWire, Turn

REFUSED = Failure("connection", "connection refused", sent=False)


def heard(turn: Callable[[float], Turn], *, rows: int = 40, patience: float = 900.0) -> list[tuple[float, str]]:
    """Play, and list what is said and when, in seconds since the beginning."""
    wire = SimulatedWire(lambda identifier, count, now: turn(now - 1000.0), patience=patience, concurrency=4)
    notices = WaitNotices(wire.dispatch)
    said: list[tuple[float, str]] = []
    send_all = wire.send_all

    def look_and_send() -> float:
        said.extend((wire.now - 1000.0, sentence) for sentence in notices.due(wire.now))
        return min(send_all(), wire.now + 0.5 if wire.dispatch.ending is None else float("inf"))

    wire.send_all = look_and_send  # type: ignore[method-assign]
    wire.play(questions(rows))
    return said


def good(_: float = 0.0) -> Turn:
    return Turn(0.5, answer_for("Q0"))


def test_a_server_that_is_not_there_is_said_at_once_and_that_it_is_back() -> None:
    said = heard(lambda now: Turn(0.001, REFUSED) if now < 100.0 else good())
    assert said[0][0] <= 1.0
    assert said[0][1] == (
        "connection refused: server does not answer, retrying for 15 minutes; Ctrl-C keeps everything"
    )
    assert said[-1][1].startswith("the server answers again, after ")
    assert said[-1][0] <= 125.0
    assert len(said) == 3, "once a minute, no more"


def test_replies_that_take_too_long_are_said_with_what_to_do() -> None:
    late = Failure("timeout", "a request timed out after 120 s; raise timeout= in the SPEC if replies take longer")
    said = heard(lambda _: Turn(120.0, late))
    assert "no reply for 15 s, 4 awaited; waiting for 15 minutes more" in said[0][1]
    assert said[0][0] < 17.0
    first = next(at for at, text in said if "timed out after 120 s; raise timeout=" in text)
    assert first < 122.0
    assert len(said) < 40


def test_a_wait_that_the_server_asks_for_is_said() -> None:
    busy = Failure("busy", "", status=429, wait=30.0)
    said = heard(lambda now: Turn(0.1, busy) if now < 5.0 else good())
    assert "the server asks to wait 30 s" in said[0][1]
    assert said[0][0] <= 1.0


def test_failures_amid_successes_and_quick_replies_are_not_worth_a_line() -> None:
    turns = iter(range(10_000))

    def turn(_: float) -> Turn:
        return Turn(0.1, Failure("server", "", status=500)) if next(turns) % 10 == 0 else good()

    assert heard(turn) == []
    assert heard(good) == []
