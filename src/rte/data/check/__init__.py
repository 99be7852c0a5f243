"""What is worth knowing of a dataset before anything is trained on it: reads everything once."""
