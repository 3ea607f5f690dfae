"""How metadata changes: requests that write, their batches, the quorum and the image that is committed."""
