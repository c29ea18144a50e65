import pytest

from culturekit.errors import UsageError
from culturekit.llm.asking_price import check_price, is_nearby
from culturekit.llm.client import Identity, Rate
from tests.llm.fake_client import FakeClient

NEAR = [
    "http://127.0.0.1:8000/v1",
    "http://localhost/v1",
    "http://[::1]:1/v1",
    "http://10.1.2.3/v1",
    "http://gpu-box/v1",
    "",
]
FAR = ["https://api.openai.com/v1", "https://8.8.8.8/v1", "https://models.example.org/v1"]


def client_at(url: str, rate: Rate | None) -> FakeClient:
    return FakeClient(rate=rate, identity=Identity("fake", url, "/ask", "fake-1"))


@pytest.mark.parametrize("url", NEAR)
def test_a_server_of_ones_own_may_have_no_price_and_says_so(url: str) -> None:
    assert is_nearby(url)
    assert "counted as 0" in check_price(client_at(url, None), budget=None)


@pytest.mark.parametrize("url", [*NEAR, *FAR])
def test_a_budget_needs_a_price_everywhere(url: str) -> None:
    with pytest.raises(UsageError, match=r"price=0\.15/0\.60"):
        check_price(client_at(url, None), budget=1.0)
    assert check_price(client_at(url, Rate(0.1, 0.2)), budget=1.0) == ""


@pytest.mark.parametrize("url", FAR)
def test_a_provider_without_a_known_price_is_not_asked(url: str) -> None:
    assert not is_nearby(url)
    with pytest.raises(UsageError, match="is not known"):
        check_price(client_at(url, None), budget=None)
