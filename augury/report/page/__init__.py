"""The report of studies: one page that holds all it needs."""

from augury.report.page.writing import write_page

__all__ = ["write_page"]
