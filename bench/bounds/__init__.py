"""Attacks on the bounds of a broker's memory, and the peak that each reaches."""
