//! The data plane: listeners, partitions, purgatories, fetch sessions and the seam to Python.
