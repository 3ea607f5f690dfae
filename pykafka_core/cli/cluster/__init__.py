"""Commands about clusters of several nodes."""
