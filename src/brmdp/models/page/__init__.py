"""The page: what a decision says, in one HTML file that an analyst can send to her boss.

``page_of`` gives its text, ``write_page`` a file. Everything shown comes from the records in
``brmdp.models.results``; ``views`` words and draws it, ``page.html.j2`` puts it in order.
"""

from brmdp.models.page.page import page_of, write_page

__all__ = ["page_of", "write_page"]
