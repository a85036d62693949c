"""Pictures from tidy data."""
