"""The running broker: the only place that holds the core, the clock and the control thread."""
