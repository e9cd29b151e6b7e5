"""The page that Prometheus reads."""

from sage.http.metrics import (
    SECONDS,
    CounterMetric,
    Histogram,
    family,
    gauge,
    process_families,
    rendered,
)


def test_a_counter_has_one_number_for_each_combination_of_labels() -> None:
    calls = CounterMetric("calls_total", "Calls.", ("tool", "outcome"))
    calls.add("search", "ok")
    calls.add("search", "ok", by=2)
    calls.add("info", "TIMEOUT")
    assert list(calls.lines()) == [
        "# HELP calls_total Calls.",
        "# TYPE calls_total counter",
        'calls_total{tool="info",outcome="TIMEOUT"} 1',
        'calls_total{tool="search",outcome="ok"} 3',
    ]


def test_the_buckets_of_a_histogram_add_up() -> None:
    times = Histogram("call_seconds", "Time.", ("tool",))
    for seconds in (0.0005, 0.001, 0.3, 99.0):
        times.observe(seconds, "search")
    lines = list(times.lines())
    assert lines[1] == "# TYPE call_seconds histogram"
    assert 'call_seconds_bucket{tool="search",le="0.001"} 2' in lines
    assert 'call_seconds_bucket{tool="search",le="0.25"} 2' in lines
    assert 'call_seconds_bucket{tool="search",le="0.5"} 3' in lines
    assert 'call_seconds_bucket{tool="search",le="30"} 3' in lines
    assert 'call_seconds_bucket{tool="search",le="+Inf"} 4' in lines
    assert lines[-2:] == [
        'call_seconds_sum{tool="search"} 99.3015',
        'call_seconds_count{tool="search"} 4',
    ]
    assert len(lines) == 2 + len(SECONDS) + 1 + 2


def test_a_gauge_without_labels_is_one_line() -> None:
    assert list(gauge("waiting", "Waiting.", 2))[-1] == "waiting 2"
    assert list(gauge("rate", "Rate.", 0.25))[-1] == "rate 0.25"


def test_a_label_cannot_break_the_page() -> None:
    lines = list(family("x", "X.", "gauge", ("path",), {('a"\\\nb',): 1.0}))
    assert lines[-1] == 'x{path="a\\"\\\\\\nb"} 1'


def test_the_page_ends_with_a_line_end() -> None:
    assert rendered([gauge("a", "A.", 1), gauge("b", "B.", 2)]).endswith(
        b"a 1\n# HELP b B.\n# TYPE b gauge\nb 2\n"
    )


def test_the_process_is_measured() -> None:
    page = rendered(process_families()).decode()
    assert "process_cpu_seconds_total" in page
    assert "sage_threads" in page
