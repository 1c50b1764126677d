"""Measurements of the project against scorers of other projects."""
