"""Figures of the source tree that can only improve: each has a ceiling in ``tools/ceilings.toml``.

A guard measures one kind of fault, counts it by folder or crate, and lists each occurrence with
advice. ``python -m tools.guards`` compares every count with its ceiling; ``make ceilings`` stores
lower ones.
"""
