"""Which tests a change needs: what `tools.changed` prints, one job a module."""
