import pytest

from culturekit.errors import UsageError
from culturekit.llm.client import Identity, Rate
from culturekit.llm.money.asking_price import check_price
from tests.llm.fake_client import FakeClient


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://gpu-box/v1", "", "https://api.openai.com/v1"])
def test_a_model_without_a_known_price_is_not_asked_wherever_it_is(url: str) -> None:
    at = Identity("fake", url, "/ask", "fake-1")
    with pytest.raises(UsageError, match=r"price=0\.15/0\.60, or price=0/0"):
        check_price(FakeClient(rate=None, identity=at))
    check_price(FakeClient(rate=Rate(0.0, 0.0), identity=at))
