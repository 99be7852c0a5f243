"""Which labels are wrong, and what they should be.

evidence  what is known of each example: margins seen in training, the prediction now, its neighbours
score     how far each given label is to be believed
noise     how many are wrong, and which classes are taken for which
kinds     what is no wrong label: two classes, none, a near duplicate
records   audit.csv and audit.json
"""

from rte.audit.records import KINDS, Audit, Rows, read

__all__ = ["KINDS", "Audit", "Rows", "read"]
