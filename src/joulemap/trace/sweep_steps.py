"""The steps of a sweep over nested and overlapping slices: plain loops over arrays, compiled where numba is there.

``advance_events`` gives starts and ends in order of time from slices in order of start, with a heap of the open ones:
memory is bounded by how many are open, not by how many there are. ``accumulate_events`` shares the energy between two
events among the tracks that are busy; what a track holds falls to its innermost slice, the one that started last.

The running totals are double-doubles: a slice of microjoules after hours of kilowatts keeps its digits. It must not
know clocks, channels or traces. The same functions run as Python (the reference) and compiled (``kernels``).

References:
    D. E. Knuth, The Art of Computer Programming, vol. 2, 4.2.2 (TwoSum); vol. 3, 5.2.3 (heaps).
"""

# ruff: noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917  functions that are compiled take plain positional arrays and are inlined by hand
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["accumulate_events", "advance_events"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def advance_events(
    start_ns: Ints, end_ns: Ints, group: NDArray[np.int32], cursor: Ints, heap: Ints, time_ns: Ints, code: Ints
) -> int:
    """Fills the next events in order of time, ends before starts of one instant, and returns how many.

    Args:
        start_ns: (n,) in order, the longer slice first where two start together.
        end_ns: (n,).
        group: (n,) slices below 0 are skipped.
        cursor: next slice, open slices; kept between calls.
        heap: open slices by their end; when it is full no start is taken and ``cursor[2]`` is 1.
        time_ns: (m,) out.
        code: (m,) out: twice the slice, plus 1 for its end.
    """
    n = len(start_ns)
    k, size = cursor[0], cursor[1]
    cursor[2] = 0
    count = 0
    while count < len(time_ns):
        while k < n and group[k] < 0:
            k += 1
        if size > 0 and (k >= n or end_ns[heap[0]] <= start_ns[k]):
            done = heap[0]
            time_ns[count] = end_ns[done]
            code[count] = 2 * done + 1
            count += 1
            size -= 1
            last = heap[size]
            place = 0
            while True:
                child = 2 * place + 1
                if child >= size:
                    break
                if child + 1 < size and end_ns[heap[child + 1]] < end_ns[heap[child]]:
                    child += 1
                if end_ns[heap[child]] >= end_ns[last]:
                    break
                heap[place] = heap[child]
                place = child
            heap[place] = last
        elif k < n:
            if size == len(heap):
                cursor[2] = 1
                break
            time_ns[count] = start_ns[k]
            code[count] = 2 * k
            count += 1
            if end_ns[k] > start_ns[k]:
                place = size
                size += 1
                while place > 0:
                    parent = (place - 1) // 2
                    if end_ns[heap[parent]] <= end_ns[k]:
                        break
                    heap[place] = heap[parent]
                    place = parent
                heap[place] = k
            k += 1
        else:
            break
    cursor[0], cursor[1] = k, size
    return count


def accumulate_events(
    time_ns: Ints,
    code: Ints,
    held: Floats,
    first: int,
    start_ns: Ints,
    end_ns: Ints,
    group: NDArray[np.int32],
    track: NDArray[np.int32],
    split: int,
    by_path: bool,
    path_key: Ints,
    path_of: Ints,
    path_parent: Ints,
    path_name: Ints,
    names: int,
    whole: Ints,
    total: Floats,
    top: Ints,
    last_ns: Ints,
    tracks: Floats,
    slot: Ints,
    kept: Floats,
    free: Ints,
    counts: Ints,
    sums: Floats,
    slice_held: Floats,
    slice_self: Floats,
) -> int:
    """Takes events from ``first`` on and returns how many were taken; fewer when slots or paths ran out.

    Args:
        time_ns: (m,) of the events.
        code: (m,) of the events.
        held: (m,) what the time since the event before holds (J, or s).
        first: first event to take.
        start_ns: (n,) of the slices.
        end_ns: (n,) of the slices.
        group: (n,) group (or name, with ``by_path``) of each slice.
        track: (n,) track of each slice.
        split: between busy tracks: 0 each has all, 1 equal, 2 by the duration of the innermost slice.
        by_path: groups are made here, from the names on the way from the outermost slice.
        path_key: hash table of paths, -1 for empty; its length is a power of two.
        path_of: group of each entry.
        path_parent: (g,) group above, -1 for none.
        path_name: (g,) its last name.
        names: number of names.
        whole: free slots, busy tracks, groups in use, time of the event before, most tracks busy at once, busy ns.
        total: running share as a double-double, weight of the busy tracks, busy and idle totals as double-doubles.
        top: (t,) innermost open slot of each track, -1 for none.
        last_ns: (t,) when each track was last brought up to date.
        tracks: (t, 4) running share when each was last brought up to date; what the track holds; double-doubles.
        slot: (s, 5) slice, slot below, closed, group (its complement when inside a slice of its own group), self ns.
        kept: (s, 5) what the track held at its start, what it holds by itself; double-doubles; weight.
        free: (s,) free slots.
        counts: (g, 2) slices, pieces of their own.
        sums: (g, 7) held by outermost slices, by themselves (double-doubles), squares, ns of outermost, ns by itself.
        slice_held: (n,) or (0,) out.
        slice_self: (n,) or (0,) out.
    """
    mask = len(path_key) - 1
    for event in range(first, len(time_ns)):
        row = code[event] >> 1
        ending = code[event] & 1
        now_ns = time_ns[event]
        if whole[0] == 0 or (by_path and whole[2] >= len(path_parent)):
            return event - first
        # what lies between the event before and this one
        amount = held[event]
        if whole[1] > 0:
            share = amount / total[2] if split > 0 else amount
            high = total[0] + share
            back = high - total[0]
            low = total[1] + ((total[0] - (high - back)) + (share - back))
            total[0] = high + low
            total[1] = low - (total[0] - high)
            high = total[3] + amount
            back = high - total[3]
            low = total[4] + ((total[3] - (high - back)) + (amount - back))
            total[3] = high + low
            total[4] = low - (total[3] - high)
            whole[5] += now_ns - whole[3]
        else:
            high = total[5] + amount
            back = high - total[5]
            low = total[6] + ((total[5] - (high - back)) + (amount - back))
            total[5] = high + low
            total[6] = low - (total[5] - high)
        whole[3] = now_ns
        lane = track[row]
        if ending == 0 and end_ns[row] == start_ns[row] and not by_path:
            counts[group[row], 0] += 1
            continue
        above = top[lane]
        if above >= 0:  # bring the track up to date
            gained = ((total[0] - tracks[lane, 0]) + (total[1] - tracks[lane, 1])) * kept[above, 4]
            high = tracks[lane, 2] + gained
            back = high - tracks[lane, 2]
            low = tracks[lane, 3] + ((tracks[lane, 2] - (high - back)) + (gained - back))
            tracks[lane, 2] = high + low
            tracks[lane, 3] = low - (tracks[lane, 2] - high)
            high = kept[above, 2] + gained
            back = high - kept[above, 2]
            low = kept[above, 3] + ((kept[above, 2] - (high - back)) + (gained - back))
            kept[above, 2] = high + low
            kept[above, 3] = low - (kept[above, 2] - high)
            if now_ns > last_ns[lane]:
                slot[above, 4] += now_ns - last_ns[lane]
                own = slot[above, 3]
                counts[own if own >= 0 else ~own, 1] += 1
        tracks[lane, 0], tracks[lane, 1], last_ns[lane] = total[0], total[1], now_ns
        if ending == 0:
            member = np.int64(group[row])
            if by_path:
                parent = np.int64(-1)
                if above >= 0:
                    parent = slot[above, 3]
                    if parent < 0:
                        parent = ~parent
                key = (parent + 1) * names + member
                at = (key * 2654435761) & mask
                while path_key[at] != -1 and path_key[at] != key:
                    at = (at + 1) & mask
                if path_key[at] == -1:
                    path_key[at] = key
                    path_of[at] = whole[2]
                    path_parent[whole[2]] = parent
                    path_name[whole[2]] = member
                    whole[2] += 1
                member = path_of[at]
                if end_ns[row] == start_ns[row]:
                    counts[member, 0] += 1
                    continue
            inside = False
            walk = above
            while walk >= 0 and not inside:
                other = slot[walk, 3]
                inside = (other if other >= 0 else ~other) == member and slot[walk, 2] == 0
                walk = slot[walk, 1]
            whole[0] -= 1
            new = free[whole[0]]
            slot[new, 0], slot[new, 1], slot[new, 2], slot[new, 4] = row, above, 0, 0
            slot[new, 3] = ~member if inside else member
            kept[new, 0], kept[new, 1], kept[new, 2], kept[new, 3] = tracks[lane, 2], tracks[lane, 3], 0.0, 0.0
            kept[new, 4] = np.float64(end_ns[row] - start_ns[row]) if split == 2 else 1.0
            total[2] += kept[new, 4]
            if above >= 0:
                total[2] -= kept[above, 4]
            else:
                whole[1] += 1
                whole[4] = max(whole[4], whole[1])
            top[lane] = new
        else:
            found = above
            while slot[found, 0] != row:
                found = slot[found, 1]
            own = slot[found, 3]
            member = own if own >= 0 else ~own
            inclusive = (tracks[lane, 2] - kept[found, 0]) + (tracks[lane, 3] - kept[found, 1])
            counts[member, 0] += 1
            if own >= 0:
                high = sums[member, 0] + inclusive
                back = high - sums[member, 0]
                low = sums[member, 1] + ((sums[member, 0] - (high - back)) + (inclusive - back))
                sums[member, 0] = high + low
                sums[member, 1] = low - (sums[member, 0] - high)
                sums[member, 4] += inclusive * inclusive
                sums[member, 5] += np.float64(end_ns[row] - start_ns[row])
            alone = kept[found, 2] + kept[found, 3]
            high = sums[member, 2] + alone
            back = high - sums[member, 2]
            low = sums[member, 3] + ((sums[member, 2] - (high - back)) + (alone - back))
            sums[member, 2] = high + low
            sums[member, 3] = low - (sums[member, 2] - high)
            sums[member, 6] += np.float64(slot[found, 4])
            if len(slice_held) > 0:
                slice_held[row] = inclusive
                slice_self[row] = alone
            slot[found, 2] = 1
            if found == above:
                total[2] -= kept[above, 4]
                while above >= 0 and slot[above, 2] == 1:
                    free[whole[0]] = above
                    whole[0] += 1
                    above = slot[above, 1]
                top[lane] = above
                if above >= 0:
                    total[2] += kept[above, 4]
                else:
                    whole[1] -= 1
    return len(time_ns) - first
