"""The rows of a micro-batch: brought together where the effect runs, in log order, in bounded memory."""
