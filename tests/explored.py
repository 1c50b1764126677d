"""The points of a comparison's page, for tests that click one."""

from __future__ import annotations

from typing import Any

POINTS = "#plot .scatterlayer path.point"


def lonely_item(where: Any) -> int:
    """An item whose point can be hit: none other is within 20 pixels, and it has details."""
    found: int = where.locator("#plot").evaluate(
        """plot => {
          const { xaxis, yaxis } = plot._fullLayout;
          const of = (trace) => trace.customdata.map((item, i) => ({
            item, full: Boolean(trace.text), x: xaxis.d2p(trace.x[i]), y: yaxis.d2p(trace.y[i]),
          }));
          const all = plot.data.flatMap(of);
          const near = (a) => all.filter((b) => Math.hypot(a.x - b.x, a.y - b.y) < 20).length;
          return all.find((point) => point.full && point.item > 0 && near(point) === 1).item;
        }"""
    )
    return found


def point_of(where: Any, item: int) -> Any:
    """The drawn mark of an item."""
    place = where.locator("#plot").evaluate(
        """(plot, item) => {
          let before = 0;
          for (const trace of plot.data) {
            const at = trace.text ? trace.customdata.indexOf(item) : -1;
            if (at >= 0) return before + at;
            before += trace.customdata.length;
          }
        }""",
        item,
    )
    return where.locator(POINTS).nth(place)
