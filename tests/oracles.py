"""Slow reference formulas: plain loops in float64 or better, written from the definitions and not from the code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps

Array = NDArray[np.float64]

# ---- noise


def transition_matrix(P: Sequence[float], C: Sequence[Sequence[float]]) -> list[list[float]]:
    """F[a][b] = P[a] C[a][b] + (1 - P[a]) [a = b]."""
    k = len(P)
    return [[P[a] * C[a][b] + (1 - P[a] if a == b else 0.0) for b in range(k)] for a in range(k)]


def symmetric_matrix(k: int, ratio: float) -> list[list[float]]:
    """1 - r on the diagonal, r/(K - 1) elsewhere."""
    return [[1 - ratio if a == b else ratio / (k - 1) for b in range(k)] for a in range(k)]


def redrawn_matrix(k: int, ratio: float) -> list[list[float]]:
    """With probability r any of the K classes alike, else unchanged."""
    return [[(1 - ratio if a == b else 0.0) + ratio / k for b in range(k)] for a in range(k)]


def count_pairs(first: Sequence[int], second: Sequence[int], k: int) -> list[list[int]]:
    """How often each pair occurs."""
    counts = [[0] * k for _ in range(k)]
    for a, b in zip(first, second, strict=True):
        counts[a][b] += 1
    return counts


# ---- evaluation


def top_k_share(logits: Sequence[Sequence[float]], y: Sequence[int], k: int) -> float:
    """Sort the classes by falling logit, equal ones by number, and look for the label among the first k."""
    hits = 0
    for row, label in zip(logits, y, strict=True):
        order = sorted(range(len(row)), key=lambda c: (-row[c], c))
        hits += label in order[:k]
    return hits / len(y)


def mean_nll(logits: Sequence[Sequence[float]], y: Sequence[int]) -> float:
    """-log(exp(z_y) / sum exp(z)) with sixty decimal digits, so that no trick is needed."""
    with localcontext() as context:
        context.prec = 60
        losses = []
        for row, label in zip(logits, y, strict=True):
            z = [Decimal(float(v)) for v in row]
            losses.append(sum((v.exp() for v in z), Decimal(0)).ln() - z[label])
        return float(sum(losses, Decimal(0)) / len(losses))


def softmax_rows(logits: Sequence[Sequence[float]]) -> list[list[float]]:
    """exp(z_k) / sum exp(z)."""
    with localcontext() as context:
        context.prec = 60
        out = []
        for row in logits:
            exps = [Decimal(float(v)).exp() for v in row]
            total = sum(exps, Decimal(0))
            out.append([float(e / total) for e in exps])
        return out


def calibration_gap(probs: Sequence[Sequence[float]], y: Sequence[int], bins: int) -> float:
    """Sum over the bins (low, high] of |right - confidence| summed inside the bin, divided by N."""
    total = 0.0
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        right = confidence = 0.0
        for row, label in zip(probs, y, strict=True):
            top = max(row)
            if low < top <= high:
                right += list(row).index(top) == label
                confidence += top
        total += abs(right - confidence)
    return total / len(y)


# ---- parts


def softmax(logits: Array) -> Array:
    """(B, K) -> (B, K)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: Array = powers / powers.sum(axis=1, keepdims=True)
    return result


def log_likelihood(logits: Array, y: Sequence[int]) -> Array:
    """log p_y = z_y - log sum_k exp(z_k), the largest logit taken out of the sum."""
    rows = []
    for z, label in zip(logits, y, strict=True):
        top = max(z)
        rows.append(z[label] - top - math.log(sum(math.exp(v - top) for v in z)))
    return np.array(rows)


def gce(logits: Array, y: Sequence[int], q: float) -> Array:
    """(1 - p^q) / q with p^q = exp(q log p); its limit -log p at q = 0."""
    return np.array([-v if q == 0 else (1 - math.exp(q * v)) / q for v in log_likelihood(logits, y)])


def forward_corrected(logits: Array, y: Sequence[int], wrong: float) -> Array:
    """-log sum_k p_k P(given y | true k), where a wrong label is any of the K - 1 others."""
    F, p = symmetric_matrix(logits.shape[1], wrong), softmax(logits)
    return np.array([-math.log(sum(p[b, k] * F[k][y[b]] for k in range(p.shape[1]))) for b in range(len(p))])


def gce_series(logits: Array, y: Sequence[int], q: float, terms: int = 8) -> Array:
    """(1 - p^q) / q = -(l + q l^2/2! + q^2 l^3/3! + ...), l = log p: right where the closed form cancels."""
    return np.array(
        [-sum(q ** (n - 1) * v**n / math.factorial(n) for n in range(1, terms + 1)) for v in log_likelihood(logits, y)]
    )


def kl(p: Sequence[float], m: Sequence[float]) -> float:
    """sum_k p_k log(p_k / m_k), 0 log 0 = 0."""
    return sum(a * math.log(a / b) for a, b in zip(p, m, strict=True) if a > 0)


def jensen_shannon(probs: Sequence[Array]) -> Array:
    """1/n sum_i KL(p_i || M) for each row."""
    rows = []
    for row in zip(*probs, strict=True):
        middle = [sum(column) / len(row) for column in zip(*row, strict=True)]
        rows.append(sum(kl(p, middle) for p in row) / len(row))
    return np.array(rows)


def ensemble_consistency(teacher: Array, views: Sequence[Array]) -> Array:
    """1/(K N*) sum over views and classes of the squared difference, for each row."""
    batch, classes = teacher.shape
    rows = np.zeros(batch)
    for b in range(batch):
        for view in views:
            for k in range(classes):
                rows[b] += (teacher[b, k] - view[b, k]) ** 2
    return rows / (classes * len(views))


def entropy(probs: Array) -> Array:
    """-sum_k p_k log p_k."""
    return np.array([-sum(v * math.log(v) for v in row if v > 0) for row in probs])


def class_balance(probs: Array) -> float:
    """sum_k 1/K log((1/K) / mean_B p_k)."""
    batch, classes = probs.shape
    return sum(math.log((1 / classes) / (sum(probs[:, k]) / batch)) / classes for k in range(classes))


def sharpen(probs: Array, temperature: float) -> Array:
    """p_k^(1/T) / sum_j p_j^(1/T)."""
    powers = probs ** (1 / temperature)
    result: Array = powers / powers.sum(axis=1, keepdims=True)
    return result


def slope(f: Callable[[Array], float], x: Array, step: float = 1e-5) -> Array:
    """The gradient of a scalar function by central differences."""
    gradient = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        gradient[place] = (f(up) - f(down)) / (2 * step)
    return gradient


def moving_average(start: Array, values: Sequence[Array], decays: Sequence[float]) -> Array:
    """v' <- a v' + (1 - a) v, one value and one decay after the other."""
    average = start.astype(np.float64)
    for value, a in zip(values, decays, strict=True):
        average = a * average + (1 - a) * value
    return average


def two_gaussians(
    values: Array, rounds: int = 10, tolerance: float = 1e-2, floor: float = 5e-4, scale: bool = True
) -> Array:
    """EM for two Gaussians on values scaled to [0, 1], begun with 2-means; the posterior of the lower mean."""
    low, high = min(values.tolist()), max(values.tolist())
    v = [(x - low) / (high - low) for x in values.tolist()] if scale else values.tolist()
    centres = [0.0, 1.0] if scale else [low, high]
    for _ in range(1000):
        groups: list[list[float]] = [[], []]
        for x in v:
            groups[abs(x - centres[1]) < abs(x - centres[0])].append(x)
        centres = [sum(group) / len(group) for group in groups]
    post = [[0.0, 1.0] if abs(x - centres[1]) < abs(x - centres[0]) else [1.0, 0.0] for x in v]

    def fit() -> list[tuple[float, float, float]]:
        found = []
        for c in range(2):
            n = sum(p[c] for p in post)
            mean = sum(p[c] * x for p, x in zip(post, v, strict=True)) / n
            spread = sum(p[c] * (x - mean) ** 2 for p, x in zip(post, v, strict=True)) / n + floor
            found.append((n / len(v), mean, spread))
        return found

    def joint(x: float) -> list[float]:
        return [w * math.exp(-((x - m) ** 2) / (2 * s)) / math.sqrt(2 * math.pi * s) for w, m, s in mixture]

    mixture, before = fit(), -math.inf
    for _ in range(rounds):
        now = sum(math.log(sum(joint(x))) for x in v) / len(v)
        post = [[part / sum(joint(x)) for part in joint(x)] for x in v]
        mixture = fit()
        if abs(now - before) < tolerance:
            break
        before = now
    lower = 0 if mixture[0][1] <= mixture[1][1] else 1
    return np.array([joint(x)[lower] / sum(joint(x)) for x in v])


# ---- methods


def rte_objective(
    x: Array,
    views: Sequence[Array],
    teacher: Array,
    y: Sequence[int],
    *,
    q: float,
    jsd: float,
    ecr: float,
    n: int,
) -> float:
    """Mean over the batch of L_q + jsd JSD(p', p_1, p_2) + ecr 1/(K n) sum_i ||p' - p_i||^2, all from logits (B, K)."""
    total = 0.0
    target, student = softmax(teacher), [softmax(view) for view in views]
    for b, row in enumerate(softmax(x)):
        right = row[y[b]]
        total += -math.log(right) if q == 0 else (1 - right**q) / q
        if jsd:
            three = [target[b], student[0][b], student[1][b]]
            middle = sum(three) / 3
            total += jsd * sum(kl(p, middle) for p in three) / 3
        if ecr:
            total += ecr * sum(float(((target[b] - p[b]) ** 2).mean()) for p in student[:n]) / n
    return total / len(y)


def elr_objective(
    logits: Array, y: Sequence[int], targets: Array, *, beta: float, weight: float
) -> tuple[float, Array]:
    """Mean over the batch of -log p_y + weight log(1 - <t, p>), and the new t; p is kept inside [1e-4, 1 - 1e-4]."""
    total, rows = 0.0, []
    for nll, p, t in zip(-log_likelihood(logits, y), softmax(logits), targets, strict=True):
        inside = [min(max(float(v), 1e-4), 1 - 1e-4) for v in p]
        new = [beta * old + (1 - beta) * v / sum(inside) for old, v in zip(t, inside, strict=True)]
        total += nll + weight * math.log(1 - sum(a * b for a, b in zip(new, inside, strict=True)))
        rows.append(new)
    return total / len(y), np.array(rows)


def co_teaching_objective(one: Array, two: Array, y: Sequence[int], keep: int) -> float:
    """Each network's mean loss on the `keep` examples that the other finds easiest, summed over the networks."""
    losses = [list(-log_likelihood(logits, y)) for logits in (one, two)]
    easiest = [sorted(range(len(y)), key=lambda b: own[b])[:keep] for own in losses]
    return sum(sum(losses[k][b] for b in easiest[1 - k]) / keep for k in range(2))


def dividemix_objective(
    f: Callable[[Array], Array],
    g: Callable[[Array], Array],
    x: Sequence[Array],
    u: Sequence[Array],
    y: Sequence[int],
    w: Sequence[float],
    *,
    temperature: float,
    unlabelled: float,
    mix: tuple[float, Sequence[int]],
) -> float:
    """f learns: x and u are the views (B, D) with and without labels, `mix` the weight and the partner of each row."""
    mean_f = sum(softmax(f(view)) for view in x) / len(x)
    known = [[w[b] * (c == y[b]) + (1 - w[b]) * v for c, v in enumerate(mean_f[b])] for b in range(len(y))]
    rows, targets = list(np.concatenate(list(x))), list(sharpen(np.array(known), temperature)) * len(x)
    labelled = len(rows)
    if u:
        mean_both = sum(softmax(net(view)) for net in (f, g) for view in u) / (2 * len(u))
        rows += list(np.concatenate(list(u)))
        targets += list(sharpen(mean_both, temperature)) * len(u)
    own, order = mix
    mixed = np.array([own * rows[r] + (1 - own) * rows[order[r]] for r in range(len(rows))])
    aims = np.array([own * targets[r] + (1 - own) * targets[order[r]] for r in range(len(rows))])
    p = softmax(f(mixed))
    loss = -float((aims[:labelled] * np.log(p[:labelled])).sum()) / labelled + class_balance(p)
    return loss + (unlabelled * float(((p[labelled:] - aims[labelled:]) ** 2).mean()) if u else 0.0)


# ---- views


def pillow_view(image: NDArray[np.uint8], kind: str, value: float, fill: Sequence[int], nearest: bool) -> Array:
    """One operation on an image (H, W, C) by Pillow itself, as float64 (H, W, C)."""
    grey = image.shape[2] == 1
    picture = Image.fromarray(image[..., 0] if grey else image)
    colour = int(Image.new("RGB", (1, 1), tuple(fill)).convert("L").getpixel((0, 0))) if grey else tuple(fill)
    resample = Image.Resampling.NEAREST if nearest else Image.Resampling.BILINEAR
    affine = {
        "SHEAR_X": (1, value, 0, 0, 1, 0),
        "SHEAR_Y": (1, 0, 0, value, 1, 0),
        "TRANSLATE_X": (1, 0, value, 0, 1, 0),
        "TRANSLATE_Y": (1, 0, 0, 0, 1, value),
    }
    if kind in affine:
        done = picture.transform(picture.size, Image.Transform.AFFINE, affine[kind], resample, fillcolor=colour)
    elif kind == "ROTATE":
        done = picture.rotate(value, resample, fillcolor=colour)
    elif kind in ("AUTOCONTRAST", "EQUALIZE", "INVERT"):
        done = getattr(ImageOps, kind.lower())(picture)
    elif kind == "POSTERIZE":
        done = ImageOps.posterize(picture, int(value))
    elif kind == "SOLARIZE":
        done = ImageOps.solarize(picture, value)
    else:
        done = getattr(ImageEnhance, kind.title())(picture).enhance(value)
    return np.asarray(done, np.float64).reshape(image.shape)


def padded_crop(image: NDArray[np.uint8], top: int, left: int, pad: int, border: str, flip: bool) -> NDArray[np.uint8]:
    """Pad, crop back to the old size, then flip left to right."""
    h, w, _ = image.shape
    wide = np.pad(image, ((pad, pad), (pad, pad), (0, 0)), "reflect" if border == "reflect" else "constant")
    crop = wide[top : top + h, left : left + w]
    return crop[:, ::-1] if flip else crop
