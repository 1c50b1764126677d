"""`python -m ncu_exp`."""

import sys

from ncu_exp.cli import main

if __name__ == "__main__":
    sys.exit(main())
