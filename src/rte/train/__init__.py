"""The training loop, and what keeps it safe: checkpoints, journal, run folders."""
