"""The start of a broker, before its control thread runs."""
