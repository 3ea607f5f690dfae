"""What the control plane keeps in the data directory itself."""
