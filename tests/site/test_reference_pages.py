"""The pages of docs/reference that are written from the code are up to date."""

import pytest

from tools.reference import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_written_from_the_code(name: str) -> None:
    page = (FOLDER / name).read_text(encoding="utf-8")
    assert page == PAGES[name](), "run: python -m tools.reference"
