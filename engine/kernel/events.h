/* Events: earlier first, ties by code, so that the order never depends on history. Those of the instant
 * that is being played, to which most are added, have a heap of their own. */
#pragma once

#include "state.h"

enum { ENDS = 0, BECOMES_READY = 1 };

static inline int is_before(Event one, Event other) { return one.due < other.due + (one.code < other.code); }

static void push_now(State *s, int64_t code) {
    int64_t slot = s->now_size++;
    for (; slot > 0 && s->now_code[(slot - 1) / 2] > code; slot = (slot - 1) / 2)
        s->now_code[slot] = s->now_code[(slot - 1) / 2];
    s->now_code[slot] = code;
}

static int64_t pop_now(State *s) {
    const int64_t first = s->now_code[0], size = --s->now_size, code = s->now_code[size];
    int64_t slot = 0;
    for (int64_t child = 1; child < size; child = 2 * slot + 1) {
        if (child + 1 < size && s->now_code[child + 1] < s->now_code[child]) child += 1;
        if (code < s->now_code[child]) break;
        s->now_code[slot] = s->now_code[child];
        slot = child;
    }
    s->now_code[slot] = code;
    return first;
}

/* Put an event into a hole of the heap, or above it. */
static inline void fill_hole(State *s, int64_t slot, Event event) {
    for (; slot > 0 && is_before(event, s->later[(slot - 1) / 2]); slot = (slot - 1) / 2)
        s->later[slot] = s->later[(slot - 1) / 2];
    s->later[slot] = event;
}

static void push_event(State *s, double time, int64_t activity, int kind) {
    const Event event = {ordinal_of(time), 2 * activity + kind};
    if (event.due == s->due)
        push_now(s, event.code);
    else
        fill_hole(s, s->later_size++, event);
}

/* The hole goes down to a leaf, near which the last event belongs: it is a late one. */
static int64_t pop_later(State *s) {
    const int64_t first = s->later[0].code, size = --s->later_size;
    int64_t slot = 0;
    for (int64_t child = 1; child < size; child = 2 * slot + 1) {
        if (child + 1 < size) child += is_before(s->later[child + 1], s->later[child]);
        s->later[slot] = s->later[child];
        slot = child;
    }
    fill_hole(s, slot, s->later[size]);
    const int64_t next = s->later[0].code / 2;
    fetch_ahead(s, next);
    fetch_ahead(s, s->t->successors[s->t->successors_start[next]]);
    return first;
}

/* The next event of this instant; -1 = there is none left. */
static int64_t pop_event(State *s) {
    const int is_due = s->later_size > 0 && s->later[0].due == s->due;
    if (s->now_size == 0) return is_due ? pop_later(s) : -1;
    return is_due && s->later[0].code < s->now_code[0] ? pop_later(s) : pop_now(s);
}
