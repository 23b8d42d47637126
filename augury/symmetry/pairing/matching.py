"""Which element is the mirror image of which: pairs, or elements that are their own image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from augury.symmetry.maps import Array

Costs = Mapping[tuple[int, int], float]
"""What it costs to take two elements for mirror images of each other; pairs that cannot be are left out."""
_MANY = 1000
"""Ways to pair a group that are weighed against each other, at most."""


class NoImage(Exception):  # noqa: N818  (caught here, and said in words)
    """An element has no possible image."""

    def __init__(self, element: int):
        self.element = element


class Ambiguous(Exception):  # noqa: N818
    """An element has several images that are equally good."""

    def __init__(self, element: int, images: list[int]):
        self.element, self.images = element, images


def allowed(given: Mapping[str, str], first: str, second: str) -> bool:
    """Whether two names may be images of each other, by what the user gave."""
    return given.get(first, second) == second and given.get(second, first) == first


def best_pairing(
    elements: Iterable[int], costs: Costs, slack: float, named: Callable[[int, int], bool]
) -> dict[int, int]:
    """The image of every element; names decide among pairs within `slack` of the cheapest, then costs."""
    cheapest = {
        element: min((cost for pair, cost in costs.items() if element in pair), default=0.0)
        for element in elements
    }
    plausible: dict[int, list[int]] = {element: [] for element in cheapest}
    for (first, second), cost in sorted(costs.items(), key=lambda item: item[1]):
        if cost <= slack + min(cheapest[first], cheapest[second]):
            plausible[first].append(second)
            if first != second:
                plausible[second].append(first)
    images: dict[int, int] = {}
    for group in _groups(plausible):
        clear = _paired_by_name(group, plausible, named)
        rest = [element for element in group if element not in clear]
        options = list(islice(_pairings(rest, plausible), _MANY + 1))
        if len(options) > _MANY:  # too many to weigh one against the other
            raise Ambiguous(rest[0], plausible[rest[0]])
        images |= clear | _best_of(options, rest, costs, named)
    return images


def cheap_pairing(elements: Iterable[int], costs: Costs) -> dict[int, int]:
    """Cheapest pairs first; what is left over has no image. For elements that may be exchanged at will."""
    images: dict[int, int] = {}
    free = set(elements)
    for first, second in sorted(costs, key=lambda pair: (costs[pair], pair[0] != pair[1])):
        if {first, second} <= free:
            images |= {first: second, second: first}
            free -= {first, second}
    return images


def cheapest_columns(costs: Array) -> list[int]:
    """A column for each row, all different, such that they cost least together."""
    nearest: list[int] = costs.argmin(1).tolist()
    if len(set(nearest)) == len(nearest):
        return nearest
    from scipy.optimize import linear_sum_assignment  # slow to import, and most never get here

    columns: list[int] = linear_sum_assignment(costs)[1].tolist()
    return columns


def _groups(plausible: dict[int, list[int]]) -> Iterator[list[int]]:
    """Elements that may be exchanged with each other, directly or in turn."""
    seen: set[int] = set()
    for start in plausible:
        group, queue = [], [start]
        while queue:
            element = queue.pop()
            if element not in seen:
                seen.add(element)
                group.append(element)
                queue += plausible[element]
        if group:
            yield group


def _paired_by_name(
    group: list[int], plausible: dict[int, list[int]], named: Callable[[int, int], bool]
) -> dict[int, int]:
    """The elements that have one plausible image by their names, and are that one's only one."""
    by_name = {element: [other for other in plausible[element] if named(element, other)] for element in group}
    return {
        element: others[0]
        for element, others in by_name.items()
        if len(others) == 1 and by_name[others[0]] == [element]
    }


def _pairings(group: list[int], plausible: dict[int, list[int]]) -> Iterator[dict[int, int]]:
    """Every way to pair all elements of a group."""
    if not group:
        yield {}
        return
    first, rest = group[0], group[1:]
    for second in plausible[first]:
        if second in group:
            for images in _pairings([element for element in rest if element != second], plausible):
                yield {first: second, second: first, **images}


def _best_of(
    options: list[dict[int, int]], group: list[int], costs: Costs, named: Callable[[int, int], bool]
) -> dict[int, int]:
    if not group:
        return {}
    if not options:
        raise NoImage(group[0])

    def names_kept(images: dict[int, int]) -> int:
        return sum(named(first, second) for first, second in images.items())

    def cost(images: dict[int, int]) -> float:
        return sum(costs[pair] for pair in images.items() if pair in costs)

    most = max(map(names_kept, options))
    options = [images for images in options if names_kept(images) == most]
    least = min(map(cost, options))
    options = [images for images in options if cost(images) <= least * (1 + 1e-6) + 1e-9]
    if len(options) == 1:
        return options[0]
    element = next(e for e in group if len({images[e] for images in options}) > 1)
    raise Ambiguous(element, sorted({images[element] for images in options}))
