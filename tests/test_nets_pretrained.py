"""What learns of a network that starts from trained weights, and how it sees grey images."""

from __future__ import annotations

import pytest
import torch

from rte import nets
from rte.nets.config import NetConfig, Trained
from rte.nets.pretrained import FromGrey, hold, make, normalisation
from rte.nets.weights import SOURCES


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("trained", ["whole", "last-stage", "frozen"])
def test_what_is_held_stays_as_it_is(name: str, trained: Trained) -> None:
    torch.manual_seed(0)
    net = nets.build(name, channels=3, classes=4, size=(64, 64))
    hold(net, trained)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    net.train()
    net(torch.randn(4, 3, 64, 64)).square().mean().backward()  # type: ignore[no-untyped-call]
    learns = {key for key, p in net.named_parameters() if p.grad is not None}
    moved = {key for key, value in net.state_dict().items() if not torch.equal(value, before[key])}
    parts = {key.split(".")[0] for key in learns}
    assert {"head.weight", "head.bias"} <= learns
    if trained == "frozen":
        assert parts == {"head"}
        assert not moved, "no statistics either"
    else:
        assert any(key.startswith("blocks") for key in learns)
        assert ("stem.0.weight" in learns) == (trained == "whole")
        assert {key for key in moved if key.startswith("stem")} == (
            {
                key
                for key in before
                if (key.startswith("stem") and "running" in key) or key == "stem.1.num_batches_tracked"
            }
            if trained == "whole"
            else set()
        )
    assert len(net.backbone()) == len(list(net.parameters())) - 2


def test_grey_images_are_seen_as_grey_in_colour() -> None:
    torch.manual_seed(0)
    net = make(NetConfig(), "mobilenet-v2", channels=1, classes=4, size=(32, 32)).eval()
    assert isinstance(net, FromGrey)
    (mean, std), (m, s) = SOURCES["mobilenet-v2"].normalisation, normalisation("mobilenet-v2", 1)
    grey = torch.rand(2, 1, 32, 32)
    colour = (grey - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    with torch.no_grad():
        torch.testing.assert_close(net((grey - m[0]) / s[0]), net.net(colour), rtol=1e-4, atol=1e-5)
    assert len(net.backbone()) == len(list(net.parameters())) - 2
    assert net.share == 0.1
