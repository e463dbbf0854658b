"""`POST /api/v1/flows/{flow}/translations`: translates source offsets that an application keeps."""

import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter
from fastapi.params import Depends
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tsoffset.cluster import Connect, all_failed
from tsoffset.errors import ClusterUnreachable
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.rows import failed_row
from tsoffset.offset_files.document import LARGEST_PARTITION, StoredOffset
from tsoffset.offset_files.translation import translate_stored
from tsoffset.server.answers import Name, TranslatedRow
from tsoffset.server.problems import Refused

MOST_POSITIONS = 1_000
# The largest integer that JSON clients with floating-point numbers read exactly.
LARGEST_EXACT = 2**53 - 1


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


# In JSON Schema, 7.0 is an integer, too.
Integer = Annotated[int, BeforeValidator(_whole)]


class SourceOffset(BaseModel):
    """The next record to read of a source partition."""

    model_config = ConfigDict(extra="forbid", strict=True)

    topic: str = Field(min_length=1, max_length=249, description="Name on the source.")
    partition: Integer = Field(ge=0, le=LARGEST_PARTITION)
    offset: Integer = Field(ge=0, le=LARGEST_EXACT, description="The next record to read.")


class SourceOffsets(BaseModel):
    """The source offsets to translate."""

    model_config = ConfigDict(extra="forbid", strict=True)

    positions: list[SourceOffset] = Field(
        min_length=1, max_length=MOST_POSITIONS, description="Offsets on the source."
    )


class Translations(BaseModel):
    """The rows, in the order of the request; a single row without a topic if a cluster could not be
    reached."""

    flow: Name
    rows: list[TranslatedRow]


def add_translations(
    router: APIRouter,
    settings_of: Callable[[str], FlowSettings],
    connect: Connect,
    allowed: list[Depends],
) -> None:
    """Add the endpoint to `router`. `settings_of` raises Refused for an unknown flow."""
    # A translation may read megabytes from both clusters.
    busy = threading.Lock()

    @router.post("/flows/{flow}/translations", tags=["control"], dependencies=allowed)
    def translations(flow: str, asked: SourceOffsets) -> Translations:
        """Translate up to 1,000 source offsets that an application keeps itself. Reads from both
        clusters, commits nothing, and uses the flow's fetch limits. One request runs at a time."""
        settings = settings_of(flow)
        stored = [
            StoredOffset(one.topic, one.partition, one.offset, log=str(number))
            for number, one in enumerate(asked.positions)
        ]
        if not busy.acquire(blocking=False):
            raise Refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "another translation is in progress",
                "wait for its answer, and send the request again",
                retry_after="1",
            )
        try:
            with connect(settings.source) as source, connect(settings.target) as target:
                found = translate_stored(settings, source, target, stored)
            rows = [one.row for one in found]
        except ClusterUnreachable as error:
            rows = [failed_row(settings.name, all_failed(error))]
        finally:
            busy.release()
        return Translations.model_validate({"flow": settings.name, "rows": rows})
