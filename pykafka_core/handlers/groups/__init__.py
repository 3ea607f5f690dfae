"""The APIs of groups and their members."""
