"""The metadata as values: the image, its drafts and what each record changes."""
