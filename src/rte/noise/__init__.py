"""Label noise: the transition model, its sampling, label files, and the record of what was done."""
