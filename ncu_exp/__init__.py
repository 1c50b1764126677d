"""Does a language model read the context it is given, or recite its memory?

An MLflow-tracked, Hydra-configured experiment framework for the Normalized Context Utilization
(NCU) metric of "Quantifying Prior Dominance in RAG Systems" (arXiv 2606.23695).
"""

__version__ = "0.1.0"
