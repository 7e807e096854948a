"""`jax.monitoring`: events that libraries record, and functions that are told of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["clear_event_listeners", "record_event", "record_event_duration_secs",
           "record_event_time_span", "record_scalar", "register_event_duration_secs_listener",
           "register_event_listener", "register_event_time_span_listener",
           "register_scalar_listener", "unregister_event_duration_listener",
           "unregister_event_listener", "unregister_event_time_span_listener",
           "unregister_scalar_listener"]

Listener = Callable[..., Any]
_listeners: Final[dict[str, list[Listener]]] = {
    "event": [], "duration": [], "span": [], "scalar": []}


def _told(kind: str, *what: Any, **more: Any) -> None:
    for listener in tuple(_listeners[kind]):
        listener(*what, **more)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell listeners of an event."""
    _told("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell listeners of an event that took some time, in seconds."""
    _told("duration", event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float,
                           **kwargs: str | int) -> None:
    """Tell listeners of an event with its first and last time."""
    _told("span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Tell listeners of a number."""
    _told("scalar", event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Have a function called with each event."""
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Have a function called with each event and its duration."""
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Have a function called with each event, its first and its last time."""
    _listeners["span"].append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Have a function called with each number."""
    _listeners["scalar"].append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Undo `register_event_listener`."""
    _listeners["event"].remove(callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Undo `register_event_duration_secs_listener`."""
    _listeners["duration"].remove(callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Undo `register_event_time_span_listener`."""
    _listeners["span"].remove(callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Undo `register_scalar_listener`."""
    _listeners["scalar"].remove(callback)


def clear_event_listeners() -> None:
    """Undo all registrations."""
    for kind in _listeners.values():
        kind.clear()
