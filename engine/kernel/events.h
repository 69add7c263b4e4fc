/* Events: earlier first, ties by code, so that the order never depends on history. Events of the
 * present instant, to which most are added, have a heap of their own. */
#pragma once

#include "state.h"

enum { ENDS = 0, BECOMES_READY = 1 };

static inline int is_before(Event one, Event other) { return one.due < other.due + (one.code < other.code); }

/* Put an event into a hole of a heap, or above it. */
static inline void fill_hole(Event *heap, int64_t slot, Event event) {
    for (; slot > 0 && is_before(event, heap[(slot - 1) / 2]); slot = (slot - 1) / 2) heap[slot] = heap[(slot - 1) / 2];
    heap[slot] = event;
}

static void push_event(State *s, double time, int64_t activity, int kind) {
    const Event event = {ordinal_of(time), 2 * activity + kind};
    if (event.due == s->due)
        fill_hole(s->now, s->now_size++, event);
    else
        fill_hole(s->later, s->later_size++, event);
}

/* The hole goes down to a leaf, since the last event is late and belongs near one. */
static int64_t pop_first(const State *s, Event *heap, int64_t size) {
    const int64_t first = heap[0].code;
    int64_t slot = 0;
    if (size == 0) return first;
    for (int64_t child = 1; child < size; child = 2 * slot + 1) {
        if (child + 1 < size) child += is_before(heap[child + 1], heap[child]);
        heap[slot] = heap[child];
        slot = child;
    }
    fill_hole(heap, slot, heap[size]);
    const int64_t next = heap[0].code / 2;
    fetch_ahead(s, next);
    fetch_ahead(s, s->t->successors[s->t->successors_start[next]]);
    return first;
}

/* Return the next event of this instant; -1 = there is none left. */
static int64_t pop_event(State *s) {
    const int is_due = s->later_size > 0 && s->later[0].due == s->due;
    if (s->now_size == 0 && !is_due) return -1;
    if (s->now_size > 0 && (!is_due || s->now[0].code < s->later[0].code)) return pop_first(s, s->now, --s->now_size);
    return pop_first(s, s->later, --s->later_size);
}
