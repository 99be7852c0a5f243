"""Several methods side by side: the same data, noise, network, seeds, and epochs or time for all."""
