"""`rte export`: a trained run as one file that others can use, checked against the run, with a model card beside it."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from rte.data.types import ArrayImages, ArrayVectors, Embedded, Source
from rte.errors import CheckpointError, UserError
from rte.files import write_atomic
from rte.run.build import load_dataset
from rte.run.card import card
from rte.run.deployed import Deployed, described, some_inputs
from rte.run.folder import data_folder
from rte.run.predictor import Predictor

Form = Literal["onnx", "safetensors", "torch"]
FILES: dict[str, str] = {"onnx": "model.onnx", "safetensors": "model.safetensors", "torch": "model.pt2"}
CLOSE = 1e-3
"""Probabilities may differ by so much between the run and its file."""
OPSET = 18


def export(
    run: Path, folder: Path, form: Form = "onnx", *, data_dir: Path | None = None, trust_code: bool = False
) -> dict[str, Any]:
    """Write the model and its card; returns file, difference and what it was checked on."""
    if form == "onnx" and any(find_spec(name) is None for name in ("onnx", "onnxscript", "onnxruntime")):
        raise UserError(
            "an .onnx file needs onnx, onnxscript and onnxruntime; install them with "
            "`pip install 'robust-temporal-ensembling[onnx]'`, or choose --format torch."
        )
    predictor = Predictor.load(run, device="cpu", trust_code=trust_code)
    module = Deployed(predictor)
    source, on = _examples(predictor, module, data_folder(run, data_dir))
    x, expected = some_inputs(predictor, module, source)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILES[form]
    write = {"onnx": _onnx, "safetensors": _safetensors, "torch": _torch}[form]
    with torch.no_grad():
        answer = write(module, x, file, described(predictor, module))
    gap = float(np.abs(np.asarray(answer(x)) - expected).max())
    if not gap <= CLOSE:
        file.unlink()
        raise CheckpointError(
            f"the {form} file answers otherwise than the run (by {gap:.3g} on {on}), and was not kept; choose another "
            "--format."
        )
    text = card(run, predictor, form, file.name)
    write_atomic(folder / "README.md", lambda out: out.write(text.encode()))
    return {"file": str(file), "difference": gap, "examples": len(x), "on": on}


Answer = Callable[[Tensor], Any]


def _onnx(module: Deployed, x: Tensor, file: Path, about: dict[str, str]) -> Answer:
    import onnx
    import onnxruntime

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    name = "image" if module.images else "vector"
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module, (x,), dynamo=True, verbose=False, opset_version=OPSET, input_names=[name],
            output_names=["probabilities"], dynamic_shapes={"x": {0: torch.export.Dim("batch")}},
        )  # fmt: skip
    assert program is not None
    model = program.model_proto
    onnx.helper.set_model_props(model, about)
    data = model.SerializeToString()
    write_atomic(file, lambda out: out.write(data))
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])

    def answer(given: Tensor) -> Any:
        one = session.run(None, {name: given[:1].numpy()})[0]  # any number at a time
        rest = session.run(None, {name: given[1:].numpy()})[0] if len(given) > 1 else one[:0]
        return np.concatenate([one, rest])

    return answer


def _torch(module: Deployed, x: Tensor, file: Path, about: dict[str, str]) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
        torch.export.save(program, file, extra_files=about)
        loaded = torch.export.load(file).module()
    return lambda given: loaded(given).numpy()


def _safetensors(module: Deployed, x: Tensor, file: Path, about: dict[str, str]) -> Answer:
    state = {key: value.detach().clone().contiguous() for key, value in module.state_dict().items()}
    data = safetensors.torch.save(state, about)
    write_atomic(file, lambda out: out.write(data))
    module.load_state_dict(safetensors.torch.load_file(file))
    return lambda given: module(given).detach().numpy()


def _examples(predictor: Predictor, module: Deployed, data_dir: Path | None) -> tuple[Source, str]:
    """Examples of the run's own data, or random ones where it is gone."""
    try:
        source = load_dataset(predictor.config, data_dir).train.images
        predictor.spec.check(source.images if isinstance(source, Embedded) else source)
        return source, "examples of the run's data"
    except UserError:
        rng = np.random.default_rng(0)
        if module.images:
            return ArrayImages(rng.integers(0, 256, (8, *module.shape), dtype=np.uint8)), "random images"
        return ArrayVectors(rng.normal(size=(8, *module.shape)).astype(np.float32)), "random vectors"
