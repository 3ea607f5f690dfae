"""How a broker comes up, before its control thread exists."""
