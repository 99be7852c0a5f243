"""The final numbers of a run."""

from __future__ import annotations

from typing import Any

import rte
from rte.evaluate.examiner import Examiner
from rte.evaluate.implied import implied_accuracy, sentence, wilson
from rte.evaluate.metrics import summarise
from rte.parts.noise_rate import SURE, NoiseEstimate
from rte.run.build import Prepared
from rte.train.trainer import Trainer


def summary(prepared: Prepared, trainer: Trainer, examiner: Examiner) -> dict[str, Any]:
    """The final numbers of a run: accuracies are called `last`, `last5` or `best`, and `best` peeks at the test set."""
    history, config = trainer.history, prepared.config
    out: dict[str, Any] = {
        "data": config.data_name,
        "method": config.method_label,
        "net": config.net.name,
        "seed": config.seed,
        "digest": config.digest,
        "version": rte.__version__,
        "noise": {
            "name": prepared.manifest.name,
            "asked": prepared.manifest.ratio_asked,
            "measured": prepared.manifest.ratio_measured,
            "trained": examiner.wrong(),
            "warning": prepared.manifest.warning,
        },
        "epochs": trainer.epoch,
        "steps": trainer.step,
        "train_seconds": round(trainer.seconds, 2),
        "parameters": sum(p.numel() for p in trainer.method.parameters() if p.requires_grad),
    }
    for name, scores in (history[-1] if history else {}).items():
        if isinstance(scores, dict):  # of the test set, of held-out labels, of each further network
            values = [entry[name]["top1"] for entry in history if name in entry]
            out[f"network {name}" if name in out else name] = {**summarise(values), **scores}
    if "val" in out:
        chosen = max(history, key=lambda entry: entry["val"]["top1"])
        out["selected"] = {"epoch": chosen["epoch"], "val": chosen["val"]["top1"]}
        if "test" in chosen:
            out["selected"]["test"] = chosen["test"]["top1"]
    if "val" in out and len(prepared.val_rows):
        out["implied"] = meaning(prepared, trainer, examiner, out["val"]["top1"])
    out["memorisation"] = examiner.memorisation(trainer.method)
    return out


def meaning(prepared: Prepared, trainer: Trainer, examiner: Examiner, noisy: float) -> dict[str, Any]:
    """What the accuracy on held-out labels says of that on true ones.

    By the noise of the held-out labels themselves; or by what the method has estimated from more of them while it was
    trained, unless the held-out labels contradict that, because the others were memorised.
    """
    n, classes = len(prepared.val_rows), len(prepared.spec.classes)
    noise, m = examiner.contradicted(trainer.method)
    low, high = wilson(noise, m)
    estimate = next((part for part in trainer.method.modules() if isinstance(part, NoiseEstimate)), None)
    if estimate is not None and float(estimate.count) > 0 and low <= estimate.rate <= high:
        noise, m = estimate.rate, round(SURE * len(prepared.train_rows))
    found = implied_accuracy(noisy, n, noise, m, classes)
    known = {} if found is None else {"noise": noise, **found._asdict()}
    return {**known, "sentence": sentence(noisy, n, noise, found)}
