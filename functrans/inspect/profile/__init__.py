"""`profile`: how long each step of a program takes, how near that is to what can be done."""

from functrans.inspect.profile.compare import ProfileComparison
from functrans.inspect.profile.profiles import Profile, Timed
from functrans.inspect.profile.run import Profiler, profile

__all__ = ["Profile", "ProfileComparison", "Profiler", "Timed", "profile"]
