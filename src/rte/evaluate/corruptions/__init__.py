"""The 15 corruptions of CIFAR-10-C and ImageNet-C at 5 severities, and the mean corruption error."""

from rte.evaluate.corruptions.constants import EXTRAS, NAMES, SEVERITIES
from rte.evaluate.corruptions.generate import corrupt
from rte.evaluate.corruptions.measure import Step, evaluate_corruptions, mean_corruption_error
from rte.evaluate.corruptions.published import official

__all__ = [
    "EXTRAS",
    "NAMES",
    "SEVERITIES",
    "Step",
    "corrupt",
    "evaluate_corruptions",
    "mean_corruption_error",
    "official",
]
