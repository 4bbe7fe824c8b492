"""CategoryDict: the category of each version of a piece of memory."""

from __future__ import annotations

from ....store.memory_profile import Category
from .tensor_keys import Key, TensorAndID, TensorKey


class CategoryDict:
    """Categories that hold for an id, for one piece of memory, or for one version of it; the first of these counts."""

    def __init__(self) -> None:
        self._of_id: dict[int, Category] = {}
        self._of_key: dict[TensorKey, Category] = {}
        self._of_version: dict[TensorAndID, Category] = {}
        self.keys_by_id: set[TensorKey] = set()

    def set_by_id(self, key: TensorKey, category: Category) -> None:
        """Set the category of all memory of the key's id."""
        self._of_id[key.id] = category
        self.keys_by_id.add(key)

    def set_by_key(self, key: TensorKey, category: Category) -> None:
        """Set the category of a piece of memory."""
        self._of_key[key] = category

    def set_by_version(self, key: TensorKey, version: int, category: Category) -> None:
        """Set the category of one version."""
        self._of_version[key, version] = category

    def setdefault_by_version(self, key: TensorKey, version: int, category: Category) -> None:
        """Set the category of one version, unless it has one."""
        if self.get(key, version) is None:
            self.set_by_version(key, version, category)

    def get(self, key: Key, version: int) -> Category | None:
        """The category of a version, None if it is not known."""
        if not isinstance(key, TensorKey):
            return None
        return self._of_id.get(key.id) or self._of_key.get(key) or self._of_version.get((key, version))
