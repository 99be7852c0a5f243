"""A run: its stages put together, its folder, its budget, and what predicts afterwards."""
