"""Where storages are restored: the tags in checkpoints, and who makes a storage of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.device import device as Device
from .._core.storage import Storage
from .._core.untyped_storage import MemoryObject, UntypedStorage, as_untyped
from .._dispatch import backends

MapLocation = Callable[[Any, str], Any] | str | Device | dict[str, str] | None
Tagger = Callable[[Any], str | None]
Restorer = Callable[[Any, str], Any]
# Devices of torch's that are never here.
_ABSENT = ("cuda", "xpu", "hpu", "mtia", "mps")


def _tag_of(kind: str) -> Tagger:
    def tag(storage: Any) -> str | None:
        place: str = storage._storage.place
        return place if place.partition(":")[0] == kind else None

    return tag


def _restored_here(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _restored_meta(storage: Any, location: str) -> Any:
    if location != "meta":
        return None
    untyped = storage._storage
    return as_untyped(Storage(untyped.owner, external=untyped.external, device="meta"))


def _refused(storage: Any, location: str) -> Any:
    kind = location.partition(":")[0]
    if kind in _ABSENT:
        raise absent(kind)
    return None


def absent(kind: str) -> RuntimeError:
    """What a storage for a device gets that this machine does not have."""
    return RuntimeError(
        f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is "
        "False. If you are running on a CPU-only machine, please use torch.load with "
        "map_location=torch.device('cpu') to map your storages to the CPU."
    )


# (priority, tagger, restorer), in the order in which they are asked.
registry: list[tuple[int, Tagger, Restorer]] = [
    (10, _tag_of("cpu"), _restored_here),
    (20, lambda storage: None, _refused),
    (22, _tag_of("meta"), _restored_meta),
]
_BUILT_IN = frozenset(map(id, registry))


def register_package(priority: int, tagger: Tagger, deserializer: Restorer) -> None:
    """Ask these two functions, in the order of priorities, what a storage is tagged with and what a tag stands for.

    `tagger(storage)` gives a location or None; `deserializer(storage, location)` a storage or None. The CPU has priority 10.
    """
    registry.append((priority, tagger, deserializer))
    registry.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """The location that a checkpoint notes for a storage."""
    for _, tagger, _ in registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_type_name(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage at a location, by the first registered function that knows it."""
    for _, _, restore in registry:
        restored = restore(storage, location)
        if restored is not None:
            return restored
    raise RuntimeError(f"don't know how to restore data location of {_type_name(storage)} (tagged with {location})")


def _type_name(storage: Any) -> str:
    return f"torch.storage.{type(storage).__name__}"


def has_own_taggers() -> bool:
    """Whether `register_package` was called."""
    return len(registry) != len(_BUILT_IN)


def wanted_location(saved: str, map_location: Any) -> str:
    """What a map_location that is no function makes of a location."""
    if map_location is None:
        return saved
    if isinstance(map_location, dict):
        return map_location.get(saved, saved)
    return str(map_location)


def own_location(wanted: str) -> str | None:
    """The location, if storages can be made there without a registered package: "cpu", "meta" or a device that is loaded."""
    if has_own_taggers():
        return None
    if wanted in ("cpu", "meta"):
        return wanted
    if wanted.partition(":")[0] == "npu":
        try:
            backends.load("npu")
            return str(backends.resolved(Device(wanted)))
        except AssertionError:
            raise absent("npu") from None
    return None


class PlacingError(RuntimeError):
    """What a function for places raised, on its way through a reader that takes other errors for those of the file."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original


def restored(storage: UntypedStorage, saved: str, map_location: MapLocation) -> UntypedStorage:
    """The storage where the functions say that it belongs: map_location itself, or those of `register_package`."""
    found = None
    if map_location is None or isinstance(map_location, dict | str | Device):
        found = default_restore_location(storage, wanted_location(saved, map_location))
    else:
        try:
            found = map_location(storage, saved)
        except Exception as error:
            raise PlacingError(error) from None
        if found is None:
            found = default_restore_location(storage, saved)
    if not isinstance(found, MemoryObject):
        raise PlacingError(
            TypeError(
                "TypedStorage.__init__ received an invalid combination of arguments. Argument 'wrap_storage' must be "
                f"UntypedStorage, but got {type(found)}"
            )
        )
    return as_untyped(found._storage)
