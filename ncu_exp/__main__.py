"""`python -m ncu_exp`."""

from ncu_exp.cli import main

if __name__ == "__main__":
    main()
