"""Sweeps on other processes and other machines: Hydra's launchers over Slurm, Ray and joblib."""
