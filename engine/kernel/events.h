/* The event heap: earlier first, ties by code, so that the order never depends on history. */
#ifndef KFP_PLACEMENT_EVENTS_H
#define KFP_PLACEMENT_EVENTS_H

#include "state.h"

enum { ENDS = 0, BECOMES_READY = 1 };

static inline int before(double time, int64_t code, double other_time, int64_t other_code) {
    return time < other_time || (time == other_time && code < other_code);
}

static void push_event(State *s, double time, int64_t activity, int kind) {
    int64_t code = 2 * activity + kind, slot = s->heap_size++;
    while (slot > 0) {
        int64_t parent = (slot - 1) / 2;
        if (!before(time, code, s->heap_time[parent], s->heap_code[parent])) break;
        s->heap_time[slot] = s->heap_time[parent];
        s->heap_code[slot] = s->heap_code[parent];
        slot = parent;
    }
    s->heap_time[slot] = time;
    s->heap_code[slot] = code;
}

static int64_t pop_event(State *s) {
    int64_t first = s->heap_code[0], size = --s->heap_size, slot = 0;
    double time = s->heap_time[size];
    int64_t code = s->heap_code[size];
    for (int64_t child = 1; child < size; child = 2 * slot + 1) {
        if (child + 1 < size &&
            before(s->heap_time[child + 1], s->heap_code[child + 1], s->heap_time[child], s->heap_code[child]))
            child += 1;
        if (before(time, code, s->heap_time[child], s->heap_code[child])) break;
        s->heap_time[slot] = s->heap_time[child];
        s->heap_code[slot] = s->heap_code[child];
        slot = child;
    }
    s->heap_time[slot] = time;
    s->heap_code[slot] = code;
    return first;
}

#endif
