"""The metadata as values: images, drafts and the effect of each record."""
