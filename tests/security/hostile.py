"""Texts and values that mean harm, for the readers of data and the pages that show them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

SNIPPETS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</script x",
    "</style><style>*{display:none}</style>",
    "</textarea></title></noscript></details></table><svg onload=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "<img src=x onerror=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href=javascript:alert(1)>",
    "<!--<script>",
    "-->",
    "<![CDATA[",
    "{{ 7 * 7 }}{% raw %}{% include 'base.html.j2' %}",
    "{{ ''.__class__.__mro__ }}",
    "${alert(1)}`",
    "&lt;b&gt;&amp;&#60;i&#62;&NewLine;",
    "\u2028\u2029\u0085",
    "\u202e\u2066\u200f",
    "\x00\x1b[31m\x07\x0c",
    "\ufeff\ufffe\uffff",
    "\U0001f9d1\u200d\U0001f680e\u0301",
    "../../../etc/passwd",
    "/etc/passwd",
    "C:\\windows\\system32",
    "=cmd|' /C calc'!A0",
    "%s%n{0}{}",
    "$\\frac{$",
    "[/bold][link=x]",
    "\r\nSet-Cookie: a=b",
)

# Any text that can be written as UTF-8, with snippets that break out of something.
texts = st.lists(
    st.sampled_from(SNIPPETS) | st.text(st.characters(codec="utf-8"), max_size=8), max_size=4
).map("".join)

# What a JSON file may hold, half surrogates and numbers without end included.
any_texts = texts | st.text(st.characters(codec=None), max_size=6)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**30), 2**63])
    | st.floats()
    | any_texts
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            any_texts | st.sampled_from(["title", "text", "is_gold"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
