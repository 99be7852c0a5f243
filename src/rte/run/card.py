"""The model card beside an exported model: what it was made of, how good it is and by what measure, and its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rte
from rte.files import read_json
from rte.run.predictor import Predictor

LOADING = {
    "onnx": "`onnxruntime.InferenceSession`",
    "torch": "`torch.export.load`",
    "safetensors": "`safetensors`; the network itself is in the package `rte`",
}


def card(run: Path, predictor: Predictor, form: str, file: str) -> str:
    """Markdown, by what the run folder says."""
    result = read_json(run / "result.json") if (run / "result.json").is_file() else {}
    noise, config, spec = read_json(run / "noise.json"), predictor.config, predictor.spec
    start = "from nothing" if config.net.init is None else f"from trained weights ({config.net.train})"
    names = ", ".join(spec.classes[:20]) + (f" and {len(spec.classes) - 20} more" if len(spec.classes) > 20 else "")
    lines = [
        f"# {config.data_name}, by {config.method_label}",
        "",
        f"`{file}` is to be loaded with {LOADING[form]}. Class names and preprocessing are in its metadata.",
        "",
        "| what | value |",
        "|---|---|",
        f"| classes | {len(spec.classes)}: {names} |",
        f"| trained on | {spec.n:,} examples, labels as given |",
        f"| method | {config.method_label} |",
        f"| network | {config.net.name}, {start} |",
        f"| input | {'x'.join(map(str, (*spec.size, spec.channels)))} |",
        f"| made with | rte {rte.__version__}, seed {config.seed} |",
        "",
        "## Labels",
        "",
        *_noise(noise, result),
        "",
        "## Accuracy",
        "",
        *_accuracy(result),
        "",
        "## Limits",
        "",
        "- It knows the classes above and no other: whatever it is shown, it names one of them.",
        "- The figures hold for examples like those that it was trained on.",
        "- Probabilities were learnt from labels of which some are wrong; they are no guarantee.",
    ]
    if config.net.init is not None:
        lines.append("- Its network was trained on photographs of ImageNet, whose terms and biases it inherits.")
    return "\n".join(lines) + "\n"


def _noise(noise: dict[str, Any], result: dict[str, Any]) -> list[str]:
    if (share := noise.get("ratio_measured")) is not None:
        why = "differ from the true ones that came with the data"
        if noise.get("name") not in ("none", "labels"):
            why = f"were made wrong for an experiment ({noise['name']})"
        return [f"{100 * share:.1f} % of the labels {why}."]
    known = (result.get("implied") or {}).get("noise")
    if known is not None:
        return [f"About {100 * known:.0f} % of the training labels seem wrong, by the run's own estimate."]
    return ["How many of the training labels are wrong was not estimated; `rte audit` does."]


def _accuracy(result: dict[str, Any]) -> list[str]:
    found = []
    if "test" in result:
        found.append(f"{100 * result['test']['top1']:.1f} % of the test set, by its labels as they are.")
    if "implied" in result:
        found.append(str(result["implied"]["sentence"]))
    elif "val" in result:
        found.append(f"{100 * result['val']['top1']:.1f} % of held-out labels, which are noisy.")
    return found or ["Nothing was held out, so its accuracy is unknown."]
