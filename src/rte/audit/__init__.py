"""Which labels are wrong, and what they should be.

evidence    what is known of each example: margins seen in training, and the prediction at the end
likelihood  the noise under which the given labels are most likely
noise       how many are wrong, and which classes are taken for which
judge       the rows: what is wrong, and what is something else: two classes, none, a copy with another label
records     audit.csv and audit.json
summary     what the rows come to
decisions   what people said of examples
fix         a label file in which the wrong labels are mended
export      the table for other programs
"""

from rte.audit.records import KINDS, Audit, Rows, read

__all__ = ["KINDS", "Audit", "Rows", "read"]
