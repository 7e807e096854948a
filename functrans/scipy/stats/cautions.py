"""Warnings of samples from which a statistic cannot be found, or not with many digits."""

__all__ = ["ConstantInputWarning", "DegenerateDataWarning", "NearConstantInputWarning"]


class DegenerateDataWarning(RuntimeWarning):
    """A sample is degenerate, and a result of it may not be right.

    >>> import warnings
    >>> from functrans.scipy import stats
    >>> warnings.filterwarnings("ignore", category=stats.DegenerateDataWarning)
    """


class ConstantInputWarning(DegenerateDataWarning):
    """All elements of a sample are equal: it has no correlation.

    >>> import warnings
    >>> from functrans.scipy import stats
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     r = stats.pearsonr([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).statistic
    >>> found[0].category.__name__
    'ConstantInputWarning'
    """


class NearConstantInputWarning(DegenerateDataWarning):
    """All elements of a sample are nearly equal: its correlation has few digits.

    >>> from functrans.scipy import stats
    >>> issubclass(stats.NearConstantInputWarning, stats.DegenerateDataWarning)
    True
    """
