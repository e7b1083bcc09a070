"""`Result` to text, JSON and HTML: pure functions, three renderings of one record.

What to say is decided once, in `view`; `text` and `html` only set it. Rich, Jinja and Pygments are imported
when a rendering needs them, because `grader --help` must not wait for them.
"""

from grader.report.html import to_html
from grader.report.json import from_json, json_schema, to_json
from grader.report.text import print_result
from grader.report.view import Audience, for_audience

__all__ = ["Audience", "for_audience", "from_json", "json_schema", "print_result", "to_html", "to_json"]
