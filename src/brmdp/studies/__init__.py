"""Pictures from records, and the report of an experiment.

Nothing here is imported with the package: matplotlib is loaded with the submodules that draw.
"""
