"""Methods. A new one is one file here with one subclass of `Method`; its file name is its name."""
