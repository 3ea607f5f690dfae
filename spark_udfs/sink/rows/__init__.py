"""The rows of a micro-batch: collected for the effect, in log order and in bounded memory."""
