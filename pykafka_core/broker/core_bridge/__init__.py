"""The control plane's interface to the core."""
