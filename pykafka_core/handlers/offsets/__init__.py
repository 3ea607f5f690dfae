"""The APIs of committed offsets."""
