"""Datasets. A new dataset is one file here with `SUMMARY`, a `Config` and a `load(cfg, data_dir) -> Dataset`.

Nothing is imported here: `rte list` and `rte --help` must not pay for NumPy, Pillow or scikit-learn.
"""
