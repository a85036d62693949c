"""From records to numbers: curves, intervals, comparisons, claims."""
