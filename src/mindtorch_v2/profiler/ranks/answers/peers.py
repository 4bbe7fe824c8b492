"""Which ranks do the same work, and how far a rank is from them: medians and their spread, which few outliers do not move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..collectives import RECV, SEND
from ..job import Job, Numbers

FEWEST = 3  # ranks that do the same work, for one of them to be told from the others
_TO_SIGMA = 1.4826  # from the median of absolute deviations, for normal noise


def peer_classes(job: Job) -> Numbers:
    """The number of each rank's class: ranks that send the same things. Classes that are too small are joined into one.

    Stages of a pipeline differ in what they compute, and in what they communicate.
    """
    messages = job.messages
    if not len(messages):
        return np.zeros(len(job.ranks), np.int64)
    message = (messages.kind == SEND) | (messages.kind == RECV)
    descriptions = {text: at for at, text in enumerate(sorted({group.description for group in job.groups}))}
    described = np.array([descriptions[group.description] for group in job.groups], np.int64)
    # Sizes of messages may differ by the data; what is called, and in which kind of group, does not.
    what = np.where(message, 0, described[messages.group] + 1) * 16 + messages.kind
    kinds = np.flatnonzero(np.bincount(what))
    place = np.zeros(int(kinds[-1]) + 1, np.int64)
    place[kinds] = np.arange(len(kinds))
    table = np.bincount(messages.rank.astype(np.int64) * len(kinds) + place[what], minlength=len(job.ranks) * len(kinds))
    _, number = np.unique(table.reshape(len(job.ranks), len(kinds)), axis=0, return_inverse=True)
    number = number.reshape(-1).astype(np.int64)
    counts = np.bincount(number)
    if (counts >= FEWEST).any():
        number = np.where(counts[number] >= FEWEST, number, -1)
        if (number == -1).sum() < FEWEST:
            number[number == -1] = np.argmax(counts)
    else:
        number[:] = 0
    return np.unique(number, return_inverse=True)[1].reshape(-1).astype(np.int64)


def class_medians(values: NDArray[np.float64], classes: Numbers) -> NDArray[np.float64]:
    """The median of each rank's class, column by column; the same shape as `values`, ranks in rows."""
    medians = np.empty(values.shape, np.float64)
    for number in np.unique(classes):
        chosen = classes == number
        medians[chosen] = np.median(values[chosen], axis=0)
    return medians


def spread(deviations: NDArray[np.float64], least: float) -> float:
    """The standard deviation of the usual ones, as a robust estimate; not below `least`."""
    return max(_TO_SIGMA * float(np.median(np.abs(deviations))), least) if deviations.size else least
