"""The hooks that mkdocs calls when it builds the site."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

from tools.site.documents import Documents
from tools.site.modules import FOLDER, api_page, public_modules
from tools.site.page_text import page_of, source_page

ROOT = Path(__file__).resolve().parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of documents outside of docs/, of source files and of modules."""
    documents = Documents.of(ROOT)
    for path, page in documents.pages.items():
        if documents.is_source(path):
            text = source_page(path, documents)
            files.append(_generated(config, page, text, InclusionLevel.NOT_IN_NAV))
        else:
            if (old := files.get_file_from_path(page)) is not None:
                files.remove(old)
            files.append(_generated(config, page, page_of(path, documents)))
    for module in public_modules(ROOT):
        files.append(_generated(config, f"{FOLDER}/{module}.md", api_page(module)))
    return files


def _generated(
    config: MkDocsConfig, page: str, text: str, inclusion: InclusionLevel = InclusionLevel.UNDEFINED
) -> File:
    return File.generated(config, page, content=text, inclusion=inclusion)
