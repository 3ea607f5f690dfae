"""The deadlines of consumer groups and their members."""
