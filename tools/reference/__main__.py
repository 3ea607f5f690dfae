"""Write all pages."""

from . import FOLDER, PAGES

for name, render in PAGES.items():
    (FOLDER / name).write_text(render(), encoding="utf-8")
