"""`python -m rte`, also for torchrun."""

from rte.cli import main

main()
