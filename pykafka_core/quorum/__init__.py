"""The metadata quorum (KRaft), which commits metadata records."""
