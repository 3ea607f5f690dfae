"""Changes of metadata: requests that write, their batches, the quorum and the committed image."""
