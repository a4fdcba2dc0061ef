"""html-python: a page out of a template, by Jinja2."""

from functools import cache
from typing import Any, Final

from jinja2 import Environment, Template

PAGE: Final = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>{{ title }}</title></head>
<body><p>Hello, {{ user }}.</p>
<table>
{%- for article in articles %}
<tr><td>{{ article.name }}</td><td>{{ article.price }}</td><td>{% for tag in article.tags %}{{ tag }} {% endfor -%}
</td></tr>
{%- endfor %}
</table></body></html>
"""


@cache
def _template() -> Template:
    return Environment(autoescape=True).from_string(PAGE)


def handler(event: dict[str, Any]) -> dict[str, Any]:
    return {"html": _template().render(event)}
