"""functrans: composable function transformations for Python and NumPy."""
