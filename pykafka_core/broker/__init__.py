"""The running broker: the only package that holds the core, the clock and the control thread."""
