"""What was compiled and run elsewhere, told at the end: how many of each, and the worst errors."""

from collections import Counter


def pytest_terminal_summary(terminalreporter):
    """Tests note (what, count), and ("ulp of ...", error), by `record_property`."""
    counts: Counter[str] = Counter()
    worst: dict[str, tuple[float, str]] = {}
    for report in terminalreporter.getreports("passed"):
        for what, value in report.user_properties:
            if what.startswith("ulp"):
                case = report.nodeid.rpartition("::")[2]
                worst[what] = max(worst.get(what, (0.0, "")), (value, case))
            else:
                counts[what] += value
    for what, count in sorted(counts.items()):
        terminalreporter.write_line(f"{what}: {count}")
    for what, (error, case) in sorted(worst.items()):
        terminalreporter.write_line(f"{what}: {error:.2f} at most, in {case}")
