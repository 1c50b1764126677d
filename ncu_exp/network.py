"""Whether the hub can be reached, asked once and quickly.

The hub's own client retries for 20 seconds and more before it says that there is no network.
"""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request

PROBE_TIMEOUT_S = 5.0


def hub_answers(endpoint: str) -> bool:
    """Whether anything answers at a URL; what it says is for the hub's own client."""
    request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310  the user's HF_ENDPOINT
    try:
        with urllib.request.urlopen(request, timeout=PROBE_TIMEOUT_S):  # noqa: S310
            return True
    except urllib.error.HTTPError as answer:
        answer.close()
        return True
    except urllib.error.URLError as error:
        return isinstance(error.reason, ssl.SSLError)  # the client has certificates of its own
    except OSError:
        return False
