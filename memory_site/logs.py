"""One line per event, for people or (LOG_FORMAT=json) for machines: ids and figures, never memory text."""

from __future__ import annotations

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger


def without_query(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The address of a request without what follows its "?": a search, or a token that was put there by mistake."""
    if isinstance(event.get("request"), str):
        event["request"] = event["request"].partition("?")[0]
    return event


# What every line carries, whether our code, Django, Celery or a library wrote it.
SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    without_query,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.PositionalArgumentsFormatter(),
]


def configure() -> None:
    """Send structlog's events through the standard library's logging, whose settings then hold for all."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def formatter(*, json: bool) -> structlog.stdlib.ProcessorFormatter:
    """How a line is written: JSON, or key=value without colours."""
    last: Processor = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            last,
        ],
    )
