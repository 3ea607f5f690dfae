"""The files that the control plane stores in the data directory."""
