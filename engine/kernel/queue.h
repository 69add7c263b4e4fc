/* Pods that wait for a node, in the order in which they are offered one.
 *
 * A new pod is offered every node. One that found none waits with the pods that need the same: those of
 * its shape, or of the one node that it may take. It cannot fit where nothing has ended, so that in each
 * round a queue is gone through only if a node that got room has enough for its pods. */
#pragma once

#include "binding.h"
#include "sorting.h"

/* Return whether the first of two pods is offered nodes first. */
static inline int is_sooner(const State *s, int64_t one, int64_t other) {
    return s->order[one] < s->order[other] || (s->order[one] == s->order[other] && s->created[one] < s->created[other]);
}

static void sort_fresh(State *s) {
    if (s->fresh_count > 1) sort_by_key(s->order, s->created, s->fresh, s->scratch, s->fresh_count);
}

/* Make two pods neighbours in a queue; -1 = its end. */
static inline void link(State *s, int64_t queue, int64_t sooner, int64_t later) {
    if (sooner >= 0)
        s->of[sooner].later = (int32_t)later;
    else
        s->first[queue] = later;
    if (later >= 0)
        s->of[later].sooner = (int32_t)sooner;
    else
        s->last[queue] = sooner;
}

/* Let a pod wait which fitted nowhere. */
static void enqueue(State *s, int64_t queue, int64_t activity) {
    int64_t sooner = s->last[queue], later = -1;
    if (sooner < 0 && queue < s->t->shapes) {
        s->filled_at[queue] = s->filled_count;
        s->filled[s->filled_count++] = queue;
    }
    for (; sooner >= 0 && is_sooner(s, activity, sooner); sooner = s->of[sooner].sooner) later = sooner;
    s->of[activity].queue_of = (int32_t)queue;
    s->queued_count += 1;
    link(s, queue, sooner, activity);
    link(s, queue, activity, later);
}

static void dequeue(State *s, int64_t activity) {
    const int64_t queue = s->of[activity].queue_of;
    link(s, queue, s->of[activity].sooner, s->of[activity].later);
    s->of[activity].queue_of = -1;
    s->queued_count -= 1;
    if (s->first[queue] >= 0 || queue >= s->t->shapes) return;
    const int64_t moved = s->filled[--s->filled_count];
    s->filled[s->filled_at[queue]] = moved;
    s->filled_at[moved] = s->filled_at[queue];
}

/* Return whether a node that got room just now has enough for pods of the queue. */
ALWAYS_INLINE int is_hopeful(const Problem *p, const State *s, int64_t queue, const int branches) {
    if (queue >= s->t->shapes) return s->touched[queue - s->t->shapes];
    for (int64_t i = 0; i < s->touched_count; i++)
        if (admits_in(p, s, queue, s->touched_nodes[i], branches)) return 1;
    return 0;
}

/* Begin a round: list the queues that it goes through, and return their number. */
ALWAYS_INLINE int64_t open_round(const Problem *p, State *s, const int branches) {
    int64_t live = 0;
    sort_fresh(s);
    for (int64_t i = 0; s->touched_count > 0 && i < s->filled_count; i++)
        if (is_hopeful(p, s, s->filled[i], branches)) s->live[live++] = s->filled[i];
    for (int64_t i = 0; i < s->touched_count; i++) {
        const int64_t queue = s->t->shapes + s->touched_nodes[i];
        if (s->first[queue] >= 0) s->live[live++] = queue;
    }
    for (int64_t i = 0; i < live; i++) s->cursor[i] = s->first[s->live[i]];
    return live;
}

static inline int64_t drop_live(State *s, int64_t index, int64_t live) {
    s->live[index] = s->live[live - 1];
    s->cursor[index] = s->cursor[live - 1];
    return live - 1;
}

/* Leave out queues whose pods cannot fit any more: room only shrinks during a round. */
ALWAYS_INLINE int64_t drop_hopeless(const Problem *p, State *s, int64_t live, const int branches) {
    for (int64_t i = live - 1; i >= 0; i--)
        if (!is_hopeful(p, s, s->live[i], branches)) live = drop_live(s, i, live);
    return live;
}
