"""`profile`: how long each step of a program takes, how near that is to what can be done."""

from functrans.inspect.profile.profiles import Profile, Timed, profile

__all__ = ["Profile", "Timed", "profile"]
