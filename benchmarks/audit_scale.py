"""What an audit of a million labels in a thousand classes takes, besides the predictions: CPU time and memory.

python benchmarks/audit_scale.py --json results/audit-scale.json
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from rte.audit.evidence import gather
from rte.audit.judge import judge
from rte.audit.noise import estimate
from rte.audit.records import Audit
from rte.audit.summary import summarise
from rte.files import write_json

BATCH = 2000


def main() -> None:
    """Words in, words out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    n, k = args.examples, args.classes
    rng = np.random.default_rng(0)
    true = rng.integers(0, k, n)
    wrong = rng.random(n) < 0.2
    y = np.where(wrong, (true + rng.integers(1, k, n)) % k, true)
    noise = torch.randn(BATCH, k)

    def logits() -> Iterator[torch.Tensor]:
        for start in range(0, n, BATCH):
            part = noise[: min(BATCH, n - start)].clone()
            part[torch.arange(len(part)), torch.from_numpy(true[start : start + BATCH])] += 8.0
            yield part

    begun = time.process_time()
    evidence = gather(y, logits(), k)
    gathered = time.process_time()
    found = estimate(evidence)
    rows = judge(evidence, found.rate, str)
    judged = time.process_time()
    names = [f"class {c}" for c in range(k)]
    with tempfile.TemporaryDirectory() as folder:
        Audit(rows, summarise(rows, found, names)).write(Path(folder))
    written = time.process_time()
    out = {
        "examples": n,
        "classes": k,
        "gather_seconds": round(gathered - begun, 1),
        "judge_seconds": round(judged - gathered, 1),
        "write_seconds": round(written - judged, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "rate": round(found.rate, 4),
        "true_rate": round(float(wrong.mean()), 4),
    }
    print(out)
    if args.json:
        write_json(args.json, out)


if __name__ == "__main__":
    main()
