"""Whether the hub can be reached, asked once and quickly.

The hub's own client retries for 20 seconds and more before it says that there is no network.
"""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request

PROBE_TIMEOUT_S = 5.0


def hub_answers() -> bool:
    """Whether anything answers at the hub's address; what it says is for the hub's client."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return True  # the client is offline by the user's wish, and says so at once
    request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=PROBE_TIMEOUT_S):
            return True
    except urllib.error.HTTPError as answer:
        answer.close()
        return True
    except urllib.error.URLError as error:
        return isinstance(error.reason, ssl.SSLError)  # the client has certificates of its own
    except OSError:
        return False
