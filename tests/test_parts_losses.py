"""Every loss against its float64 reference, at its limits, and by its gradient (consistency terms: the next file)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rte.errors import ConfigError
from rte.parts import losses

B, K = 6, 5
DTYPES = [(torch.float32, 2e-6), (torch.float64, 1e-13)]


def draw(seed: int = 0, scale: float = 3.0, n: int = 1) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.normal(0, scale, (B, K)) for _ in range(n)]


def tensor(values: np.ndarray, dtype: torch.dtype = torch.float64, grad: bool = False) -> Tensor:
    return torch.tensor(values, dtype=dtype, requires_grad=grad)


def gradient(loss: Tensor, at: Tensor) -> Tensor:
    (result,) = torch.autograd.grad(loss.sum(), at)
    return result


Y = [0, 1, 2, 3, 4, 2]
SATURATED = np.array([[200.0, -200.0, 0.0, 0.0, 0.0], [-1e4, 1e4, 0, 0, 0], [0, 0, 0, 0, 0], [88, -88, 88, 0, 1]])
SATURATED_Y = [1, 0, 3, 1]


# generalised cross-entropy


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("q", [0.0, 0.1, 0.333, 0.6, 0.7, 1.0])
def test_gce_is_the_formula(dtype: torch.dtype, tolerance: float, q: float) -> None:
    (z,) = draw()
    found = losses.gce(tensor(z, dtype), torch.tensor(Y), q)
    assert found.shape == (B,)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.numpy(), oracles.gce(z, Y, q), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("q", [0.0, 1e-300, 5e-324, torch.tensor(0.0), torch.tensor(0.0, dtype=torch.float64)])
def test_gce_at_q_zero_is_cross_entropy_to_the_last_bit(dtype: torch.dtype, q: float | Tensor) -> None:
    logits = tensor(np.concatenate([draw()[0], SATURATED]), dtype, grad=True)
    y = torch.tensor(Y + SATURATED_Y)
    robust, plain = losses.gce(logits, y, q), losses.cross_entropy(logits, y)
    assert torch.equal(robust, plain)
    assert torch.equal(gradient(robust, logits), gradient(plain, logits))


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("q", [1e-2, 1e-4, 1e-8, 1e-13, 1e-14, 1e-16, 1e-30, 1e-60])
def test_gce_is_smooth_towards_q_zero(dtype: torch.dtype, tolerance: float, q: float) -> None:
    (z,) = draw(scale=1.0)
    logits = tensor(z, dtype, grad=True)
    found = losses.gce(logits, torch.tensor(Y), q)
    np.testing.assert_allclose(found.detach().numpy(), oracles.gce_series(z, Y, q), rtol=tolerance)
    p = oracles.softmax(z)
    truth = -(np.eye(K)[Y] - p) * np.exp(q * oracles.log_likelihood(z, Y))[:, None]  # -p_y^q d log p_y / d z
    np.testing.assert_allclose(gradient(found, logits).numpy(), truth, rtol=5 * tolerance, atol=tolerance)


def test_gce_at_q_one_is_one_minus_the_probability() -> None:
    (z,) = draw()
    p = oracles.softmax(z)[np.arange(B), Y]
    np.testing.assert_allclose(losses.gce(tensor(z), torch.tensor(Y), 1.0).numpy(), 1 - p, atol=1e-15)


def test_gce_of_a_certain_wrong_prediction_is_bounded_by_one_over_q() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0]])
    assert losses.gce(logits, torch.tensor([1]), 0.5).item() == pytest.approx(2.0)
    assert losses.gce(logits, torch.tensor([0]), 0.5).item() == 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("q", [0.0, 1e-45, 1e-12, 1e-6, 0.3, 0.7, 1.0])
def test_gce_stays_finite_for_saturated_logits(dtype: torch.dtype, q: float) -> None:
    logits = tensor(SATURATED, dtype, grad=True)
    value = losses.gce(logits, torch.tensor(SATURATED_Y), q)
    slope = gradient(value, logits)
    assert value.isfinite().all()
    assert slope.isfinite().all()
    assert slope.dtype == dtype
    assert slope[2].abs().max() > 0


@pytest.mark.parametrize("q", [0.0, 0.05, 0.5, 1.0])
def test_gce_gradient(q: float) -> None:
    (z,) = draw(scale=1.5)
    logits, y = tensor(z, grad=True), torch.tensor(Y)
    assert torch.autograd.gradcheck(lambda v: losses.gce(v, y, q), (logits,))
    found = gradient(losses.gce(logits, y, q), logits).numpy()
    np.testing.assert_allclose(found, oracles.slope(lambda v: oracles.gce(v, Y, q).sum(), z), rtol=1e-6, atol=1e-8)


def test_gce_takes_q_as_a_tensor_and_lets_it_learn() -> None:
    (z,) = draw(scale=1.0)
    q = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    found = losses.gce(tensor(z), torch.tensor(Y), q)
    np.testing.assert_allclose(found.detach().numpy(), oracles.gce(z, Y, 0.4), rtol=1e-13)
    truth = (oracles.gce(z, Y, 0.4 + 1e-5) - oracles.gce(z, Y, 0.4 - 1e-5)).sum() / 2e-5
    assert gradient(found, q).item() == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("q", [-0.1, 1.5, math.nan])
def test_gce_refuses_q_outside_its_range(q: float) -> None:
    with pytest.raises(ConfigError, match=f"is {q}; give a number from 0 to 1"):
        losses.gce(torch.zeros(1, 2), torch.tensor([0]), q)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=3, max_size=3), st.floats(0, 1), st.floats(0, 1))
def test_gce_falls_as_q_rises(row: list[float], a: float, b: float) -> None:
    logits, y = torch.tensor([row], dtype=torch.float64), torch.tensor([1])
    low, high = (losses.gce(logits, y, q).item() for q in sorted((a, b)))
    assert low >= high - 1e-12 * max(1.0, low)


# cross-entropies


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_cross_entropies_are_the_formula(dtype: torch.dtype, tolerance: float) -> None:
    z, t = draw(n=2)
    targets = oracles.softmax(t)
    hard = losses.cross_entropy(tensor(z, dtype), torch.tensor(Y))
    soft = losses.soft_cross_entropy(tensor(z, dtype), tensor(targets, dtype))
    rows = [oracles.log_likelihood(z, [k] * B) for k in range(K)]
    np.testing.assert_allclose(hard.numpy(), -oracles.log_likelihood(z, Y), rtol=tolerance, atol=tolerance)
    truth = -sum(targets[:, k] * rows[k] for k in range(K))
    np.testing.assert_allclose(soft.numpy(), truth, rtol=tolerance, atol=tolerance)


def test_soft_cross_entropy_of_a_one_hot_is_cross_entropy() -> None:
    logits = tensor(draw()[0])
    one_hot = torch.eye(K, dtype=torch.float64)[Y]
    torch.testing.assert_close(
        losses.soft_cross_entropy(logits, one_hot), losses.cross_entropy(logits, torch.tensor(Y))
    )


# entropy, class balance, sharpening


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_entropy_balance_and_sharpening_are_the_formulas(dtype: torch.dtype, tolerance: float) -> None:
    p = oracles.softmax(draw()[0])
    probs = tensor(p, dtype)
    np.testing.assert_allclose(losses.entropy(probs).numpy(), oracles.entropy(p), rtol=5 * tolerance)
    assert losses.class_balance(probs).shape == ()
    assert losses.class_balance(probs).item() == pytest.approx(oracles.class_balance(p), rel=5 * tolerance)
    for temperature in (0.5, 1.0, 2.0):
        found = losses.sharpen(probs, temperature).numpy()
        np.testing.assert_allclose(found, oracles.sharpen(p, temperature), rtol=20 * tolerance, atol=tolerance)


def test_entropy_balance_and_sharpening_at_their_limits() -> None:
    uniform, one_hot = torch.full((3, K), 1 / K), torch.eye(K)
    torch.testing.assert_close(losses.entropy(uniform), torch.full((3,), math.log(K)))
    assert losses.entropy(one_hot).abs().max() == 0
    assert losses.class_balance(one_hot).item() == pytest.approx(0.0, abs=1e-6)
    assert losses.class_balance(uniform).item() == pytest.approx(0.0, abs=1e-6)
    torch.testing.assert_close(losses.sharpen(uniform, 0.01), uniform)
    torch.testing.assert_close(losses.sharpen(torch.tensor([[0.6, 0.4]]), 0.01), torch.tensor([[1.0, 0.0]]))
    torch.testing.assert_close(losses.sharpen(one_hot, 0.5), one_hot)


@pytest.mark.parametrize(
    "f",
    [losses.entropy, losses.class_balance, lambda p: losses.sharpen(p, 0.5).square()],
    ids=["entropy", "balance", "sharpen"],
)
def test_gradients_of_the_rest(f: Callable[[Tensor], Tensor]) -> None:
    assert torch.autograd.gradcheck(lambda z: f(z.softmax(1)), (tensor(draw(scale=1.0)[0], grad=True),))
    saturated = tensor(SATURATED[:2], torch.float32, grad=True)  # some class has probability 0 in the whole batch
    assert gradient(1e4 * f(saturated.softmax(1)), saturated).isfinite().all()


@pytest.mark.parametrize("gap", [60.0, 69.0, 75.0, 85.0, 95.0])
def test_a_vanishing_class_does_not_overflow_a_weighted_gradient(gap: float) -> None:
    logits = torch.tensor([[gap, 0.0], [gap, 0.0]], requires_grad=True)  # 1/p reaches 1e37 before p is 0 in float32
    value = 1e4 * losses.class_balance(logits.softmax(1))
    assert value.isfinite()
    assert gradient(value, logits).isfinite().all()


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_sharpen_refuses_a_temperature_that_is_none(temperature: float) -> None:
    with pytest.raises(ConfigError, match=f"is {temperature}; give a number above 0"):
        losses.sharpen(torch.full((1, 2), 0.5), temperature)


# half precision


def test_half_precision_is_widened_also_inside_autocast() -> None:
    z = draw()[0]
    logits = tensor(z, torch.bfloat16)
    wide = logits.float()
    p = wide.softmax(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = [
            losses.gce(logits, torch.tensor(Y), 0.5),
            losses.cross_entropy(logits, torch.tensor(Y)),
            losses.jensen_shannon([p, p.roll(1, 1)]),
            losses.ensemble_consistency(p, [p.roll(1, 1)]),
            losses.soft_cross_entropy(logits, p),
        ]
    truth = [
        losses.gce(wide, torch.tensor(Y), 0.5),
        losses.cross_entropy(wide, torch.tensor(Y)),
        losses.jensen_shannon([p, p.roll(1, 1)]),
        losses.ensemble_consistency(p, [p.roll(1, 1)]),
        losses.soft_cross_entropy(wide, p),
    ]
    for a, b in zip(found, truth, strict=True):
        assert a.dtype == torch.float32
        assert torch.equal(a, b)


# the likelihood of labels of which some are wrong


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("wrong", [0.0, 0.01, 0.2, 0.4, 0.6, 0.79])
def test_forward_corrected_is_the_formula(dtype: torch.dtype, tolerance: float, wrong: float) -> None:
    (z,) = draw()
    found = losses.forward_corrected(tensor(z, dtype), torch.tensor(Y), wrong)
    assert found.shape == (B,)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.numpy(), oracles.forward_corrected(z, Y, wrong), rtol=tolerance, atol=tolerance)


def test_forward_corrected_without_noise_is_cross_entropy_to_the_last_bit() -> None:
    (z,) = draw()
    logits, y = tensor(z, torch.float32), torch.tensor(Y)
    assert torch.equal(losses.forward_corrected(logits, y, 0.0), losses.cross_entropy(logits, y))


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.4, 0.7])
def test_the_size_of_the_gradient_of_forward_corrected_at_the_label(wrong: float) -> None:
    (z,) = draw()
    logits, y = tensor(z, grad=True), torch.tensor(Y)
    at_label = gradient(losses.forward_corrected(logits, y, wrong), logits).gather(1, y[:, None]).squeeze(1)
    torch.testing.assert_close(losses.forward_gradient(logits.detach(), y, wrong), -at_label, rtol=1e-9, atol=1e-12)
    at_limits = losses.forward_gradient(tensor(SATURATED, torch.float32), torch.tensor(SATURATED_Y), wrong)
    assert ((at_limits >= 0.0) & (at_limits <= 1.0)).all()


@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_forward_corrected_is_finite_at_its_limits(wrong: float) -> None:
    logits, y = tensor(SATURATED, torch.float32, grad=True), torch.tensor(SATURATED_Y)
    found = losses.forward_corrected(logits, y, wrong)
    assert found.isfinite().all()
    assert gradient(found, logits).isfinite().all()
    if wrong:
        assert found.max() <= -math.log(wrong / (K - 1)) + 1e-6, "a wrong label costs no more than its probability"


@pytest.mark.parametrize("wrong", [-0.1, 0.8, 1.0, math.nan])
def test_labels_that_say_nothing_have_no_likelihood(wrong: float) -> None:
    with pytest.raises(ConfigError, match="leaves nothing to learn"):
        losses.forward_corrected(torch.zeros(2, K), torch.tensor([0, 1]), wrong)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_the_mean_of_softmaxes_as_logits(dtype: torch.dtype, tolerance: float) -> None:
    each = [*draw(n=2), np.array([SATURATED[k % 4] for k in range(B)])]
    found = losses.log_mean_probabilities([tensor(logits, dtype) for logits in each])
    expected = sum(oracles.softmax(logits) for logits in each) / 3
    np.testing.assert_allclose(found.exp().numpy(), expected, atol=tolerance)
    assert found.isfinite().all()
    assert losses.log_mean_probabilities([tensor(each[0]).bfloat16()]).dtype == torch.float32
