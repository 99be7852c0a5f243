"""CleanNet (Lee 2018): how well an image agrees with a class, learnt from a few examples whose labels are verified.

An image is its features v, a class the centroids of the features of all images that have its label. Two encoders make
vectors of both, whose cosine c is high where the image belongs to the class.

    verified     L = y (1 - c) + 5 (1 - y) max(0, c - margin)          y = 1: the label is right; y = 0: it is wrong
    unverified   a tenth of the same with y = [c >= margin]
    all          + 0.1 || v - v' ||^2, v' what a decoder makes of the image's vector
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NEGATIVE, UNVERIFIED, RECONSTRUCTION = 5.0, 0.1, 0.1
DROPOUT = 0.2
NORM = 10.0
"""The root mean square norm of what the encoders see."""


class CleanNet(nn.Module):
    """Encoders of images (B, D) and of classes given by centroids (K, R, D); both give vectors of 128."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Sequential(nn.Linear(width, 256), nn.Tanh(), nn.Linear(256, 128), nn.Tanh())
        self.decoder = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, width))
        self.one = nn.Sequential(nn.Linear(width, 512), nn.Tanh(), nn.Dropout(DROPOUT), nn.Linear(512, 256), nn.Tanh())
        self.attend = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1, bias=False))
        self.whole = nn.Sequential(nn.Linear(256, 128), nn.Tanh())

    def classes(self, references: Tensor, present: Tensor) -> Tensor:
        """Vectors of the classes (K, 128): a mean of their centroids, weighted by attention. `present` (K, R)."""
        h = self.one(references)
        score = self.attend(h).squeeze(2).masked_fill(~present, -1e9)
        vectors: Tensor = self.whole((score.softmax(1)[:, :, None] * h).sum(1))
        return vectors


def pair_losses(cosine: Tensor, right: Tensor, margin: float) -> Tensor:
    """right (1 - c) + 5 (1 - right) max(0, c - margin), (B,); `right` is 1 or 0."""
    return right * (1 - cosine) + NEGATIVE * (1 - right) * (cosine - margin).clamp(min=0)


def class_references(v: Tensor, y: Tensor, classes: int, count: int) -> tuple[Tensor, Tensor]:
    """At most `count` centroids of each class by k-means, (K, count, D), and which there are (K, count)."""
    from sklearn.cluster import KMeans

    centroids, present = v.new_zeros(classes, count, v.shape[1]), torch.zeros(classes, count, dtype=torch.bool)
    for c in range(classes):
        own = v[y == c]
        distinct = min(count, len(torch.unique(own, dim=0))) if len(own) else 0
        if distinct:
            fit = KMeans(distinct, n_init=1, max_iter=50, random_state=c).fit(own.numpy())
            centroids[c, :distinct] = torch.from_numpy(fit.cluster_centers_).to(v)
            present[c, :distinct] = True
    return centroids, present.to(v.device)


def agreement(
    features: Tensor,
    y: Tensor,
    trusted: Tensor,
    classes: int,
    *,
    references: int = 32,
    steps: int = 1000,
    batch: int = 32,
    rate: float = 0.01,
    margin: float = 0.1,
) -> Tensor:
    """Fit a CleanNet to features (N, D), labels y (N,) and verified rows `trusted`; the cosine of each label (N,).

    A verified example is right for its own label and wrong for every other class, of which one is drawn half of the
    times. The last tenth of the steps is made at a tenth of the rate. Drawn from torch's global generator.
    """
    v = _scaled(features.cpu())
    labels, rows = y.cpu(), trusted.cpu()
    centroids, present = class_references(v, labels, classes, references)
    net = CleanNet(v.shape[1]).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate if step < 0.9 * steps else rate / 10
        known = rows[torch.randint(len(rows), (batch,))]
        other = (labels[known] + torch.randint(1, classes, (batch,))) % classes
        right = torch.randint(2, (batch,))
        unknown = torch.randint(len(labels), (batch,))
        i = torch.cat([known, unknown])
        claimed = torch.cat([torch.where(right == 1, labels[known], other), labels[unknown]])
        code = net.query(v[i])
        cosine = F.cosine_similarity(code, net.classes(centroids, present)[claimed])
        guessed = (cosine[batch:] >= margin).float()
        pairs = pair_losses(cosine, torch.cat([right.float(), guessed.detach()]), margin)
        pairs = torch.cat([pairs[:batch], UNVERIFIED * pairs[batch:]])
        rebuilt = (net.decoder(code) - v[i]).square().sum(1)
        loss = (pairs + RECONSTRUCTION * rebuilt).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
    net.eval()
    with torch.no_grad():
        found = F.cosine_similarity(net.query(v), net.classes(centroids, present)[labels])
    return found.to(features)


def _scaled(features: Tensor) -> Tensor:
    """sign(f) log(1 + |f|), of the same size for all networks: a fit to small features would take long."""
    f = features.detach().float()
    v = f.sign() * f.abs().log1p()
    return NORM * v / v.square().sum(1).mean().sqrt().clamp(min=torch.finfo(v.dtype).tiny)
