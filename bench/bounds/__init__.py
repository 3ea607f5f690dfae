"""Attacks on the memory limits of a broker, and the peak memory of each."""
