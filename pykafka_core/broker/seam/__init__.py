"""What the control plane knows of the core, and how it speaks to it."""
