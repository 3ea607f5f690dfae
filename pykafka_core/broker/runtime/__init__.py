"""The control thread: takes events, decides, sends responses."""
