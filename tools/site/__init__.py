"""The documentation site: pages that mkdocs makes of the repository's documents.

`hooks.py` is the part that mkdocs calls (mkdocs.yml). A build needs no network, and the pages load
nothing from other hosts.
"""
