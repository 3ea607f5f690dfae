"""Limits of clients: altered and described."""
