"""python -m ncu_exp.compare sweep=<id> | experiment=<name> | runs=[<id>,<id>]

Compares runs that have ended, from their tables: no model is loaded. What the main command takes
can follow, to say how: compare.margin=0.03, compare.across=[prompt], metrics.tau=0.1 (computed
anew from the stored log-probs), tracking=server. The result lies below multirun/, and in the
tracking store: on the sweep's own run, or on a run of its own.
"""

from ncu_exp.compare.cli import main

if __name__ == "__main__":
    main()
