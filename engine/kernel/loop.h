/* The event loop: it simulates one schedule from submission to the end of the last activity. */
#pragma once

#include "fullest.h"
#include "kube_choice.h"
#include "limits.h"
#include "sequence.h"

typedef struct {
    int policy;
    const int64_t *planned;   /* [G] planned node of each gene (READY, ORDERED, BACKFILL), or UNDECIDED (READY) */
    const double *priority;   /* [A] the smaller, the more urgent (ORDERED, BACKFILL, GREEDY) */
    const double *not_before; /* [A] planned starts to wait for (ORDERED), or NULL */
    int32_t *order;           /* [A] an order near the plan's, from which sorting starts, or NULL: the last plan's */
    const int64_t *listed;    /* [N] the nodes as kube-scheduler lists them, or NULL: as numbered */
    int64_t draw;             /* seed of its random ties */
    double limit;             /* limit of the weighted completion; INFINITY = none */
    double deadline;          /* deadline of UNDECIDED steps; 0 = the sooner, the better */
} Decision;

enum { UNDECIDED = -1 };

static inline int in_sequence(const State *s, const Decision *d, int64_t activity) {
    return d->policy == ORDERED && s->t->of[activity].gene >= 0;
}

/* Return the order of a new pod: by urgency if the policy has one (drivers first), else by creation. */
static void create_pod(const Problem *p, State *s, const Decision *d, int64_t activity) {
    const int64_t gene = s->t->of[activity].gene;
    s->created[activity] = s->created_count++;
    s->order[activity] = (double)s->created[activity];
    if (d->policy == BACKFILL || d->policy == GREEDY || d->policy == FULLEST)
        s->order[activity] = gene >= 0 ? d->priority[activity] : -INFINITY;
    s->fresh[s->fresh_count++] = (int32_t)activity;
    if (gene < 0) return;
    __builtin_prefetch(d->planned + gene);
    for (int64_t node = 0; node < p->nodes && node < 2 * CACHE_LINE; node += CACHE_LINE)
        __builtin_prefetch(p->allowed + gene * p->nodes + node);
}

/* Queue an activity whose time has come, unless it must wait for the place of a limit. */
static void become_ready(const Problem *p, State *s, const Decision *d, int64_t activity, double now) {
    if (!take_places(p, s, activity, now)) return;
    if (s->t->of[activity].is_virtual) {
        s->of[activity].start = s->of[activity].begin = now;
        s->of[activity].end = now + p->duration_seconds[activity];
        count_end(p, s, activity);
        push_event(s, s->of[activity].end, activity, ENDS);
        return;
    }
    if (s->t->of[activity].is_running) {
        go_on(p, s, activity, now);
        return;
    }
    s->of[activity].waiting = READY_NOW;
    if (s->t->kinds) __builtin_prefetch(s->t->occupied + activity * s->t->kinds);
    if (in_sequence(s, d, activity))
        touch(s, d->planned[s->t->of[activity].gene]);
    else
        create_pod(p, s, d, activity);
}

/* Return when an activity without unfinished predecessors may start. */
static double ready_seconds(const Problem *p, State *s, const Decision *d, int64_t activity, double now) {
    double when = later_of(now, s->t->of[activity].release_seconds);
    if (!in_sequence(s, d, activity)) return when;
    if (d->not_before) when = later_of(when, d->not_before[activity]);
    if (!p->direct) return when;
    s->of[activity].arrival = arrival_seconds(p, s, activity, d->planned[s->t->of[activity].gene]);
    return later_of(when, s->of[activity].arrival);
}

/* Offer every node again to pods that may have waited for a claim of the activity, and not for room. */
static void wake_claimants(const Problem *p, State *s, const Decision *d, int64_t activity) {
    for (int64_t other = 0; other < p->activities; other++) {
        if (s->of[other].waiting != READY_NOW || !shares_exclusive_claim(p, activity, other)) continue;
        if (in_sequence(s, d, other)) {
            touch(s, d->planned[s->t->of[other].gene]);
        } else if (s->of[other].queue_of >= 0) {
            dequeue(s, other);
            s->fresh[s->fresh_count++] = (int32_t)other;
        }
    }
}

static void finish(const Problem *p, State *s, const Decision *d, int64_t activity, double now) {
    s->unfinished -= 1;
    if (s->of[activity].node >= 0) leave(p, s, activity, now);
    if (p->exclusive_claims && s->t->of[activity].mounts_volumes) wake_claimants(p, s, d, activity);
    leave_places(p, s, activity, now);
    const int32_t *successors = s->t->successors, end = s->t->successors_start[activity + 1];
    for (int32_t edge = s->t->successors_start[activity]; edge < end; edge++) {
        const int64_t successor = successors[edge];
        if (edge + 4 < end) fetch_ahead(s, successors[edge + 4]);
        if (--s->of[successor].waiting > 0) continue;
        s->of[successor].cause = (int32_t)activity;
        push_event(s, ready_seconds(p, s, d, successor, now), successor, BECOMES_READY);
    }
}

/* Return the planned node of a gene, or the node of its first pod if its pods share one; or UNDECIDED. */
static inline int64_t decided_node(const State *s, const Decision *d, int64_t gene) {
    return d->policy == GREEDY || d->planned[gene] == UNDECIDED ? s->gene_node[gene] : d->planned[gene];
}

/* Return the node for a pod, -1 = none. */
static int64_t choose(const Problem *p, State *s, const Decision *d, int64_t activity, int is_new, double now) {
    int64_t gene = s->t->of[activity].gene, fixed = s->t->of[activity].fixed_node;
    if (fixed >= 0) return fits(p, s, activity, fixed) ? fixed : -1;
    if (gene < 0 || d->policy == KUBE_DEFAULT || d->policy == STRICT_FIFO)
        return is_new ? choose_by_kube(p, s, activity, now) : choose_by_kube_again(p, s, activity, now);
    int64_t node = decided_node(s, d, gene);
    const double deadline = node == UNDECIDED ? d->deadline : 0.0;
    if (node >= 0 && fits(p, s, activity, node)) return node;
    if (d->policy == BACKFILL || (p->sticky[gene] && node >= 0)) return -1;
    node = choose_by_finish(p, s, activity, is_new, now, deadline);
    if (p->sticky[gene]) s->gene_node[gene] = node;
    return node;
}

/* Return the queue of a pod that fitted nowhere. */
static int64_t queue_for(const Problem *p, const State *s, const Decision *d, int64_t activity) {
    const int64_t gene = s->t->of[activity].gene;
    if (s->t->of[activity].fixed_node >= 0) return s->t->shapes + s->t->of[activity].fixed_node;
    const int waits_for_one = gene >= 0 && (d->policy == BACKFILL || (d->policy == READY && p->sticky[gene]));
    const int64_t node = waits_for_one ? decided_node(s, d, gene) : UNDECIDED;
    return node == UNDECIDED ? s->t->of[activity].shape : s->t->shapes + node;
}

/* STRICT_FIFO: at most one pod waits that was offered every node, and none passes it. */
static void dispatch_in_turn(const Problem *p, State *s, const Decision *d, double now) {
    const int64_t queue = s->t->shapes + p->nodes;
    int64_t done = 0, activity = s->first[queue], node;
    sort_fresh(s);
    if (activity >= 0) {
        if ((node = choose(p, s, d, activity, 0, now)) < 0) return;
        dequeue(s, activity);
        bind(p, s, activity, node, now);
    }
    while (done < s->fresh_count) {
        activity = s->fresh[done++];
        if ((node = choose(p, s, d, activity, 1, now)) < 0) {
            enqueue(s, queue, activity);
            break;
        }
        bind(p, s, activity, node, now);
    }
    s->fresh_count -= done;
    memmove(s->fresh, s->fresh + done, sizeof(int32_t) * (size_t)s->fresh_count);
}

/* Offer nodes in one round to all pods that may find one, in their order. */
ALWAYS_INLINE void dispatch(const Problem *p, State *s, const Decision *d, double now, const int branches) {
    if (s->fresh_count == 0 && s->queued_count == 0) return;
    int64_t live = open_round(p, s, branches), done = 0;
    while (live > 0 || done < s->fresh_count) {
        int64_t activity = done < s->fresh_count ? s->fresh[done] : -1, from = -1;
        for (int64_t i = 0; i < live; i++) {
            if (activity >= 0 && !is_sooner(s, s->cursor[i], activity)) continue;
            activity = s->cursor[i];
            from = i;
        }
        const int64_t node = choose(p, s, d, activity, from < 0, now);
        if (from < 0) {
            done += 1;
            if (node < 0) enqueue(s, queue_for(p, s, d, activity), activity);
        } else {
            s->cursor[from] = s->of[activity].later;
            if (s->cursor[from] < 0) live = drop_live(s, from, live);
            if (node >= 0) dequeue(s, activity);
        }
        if (node < 0) continue;
        bind(p, s, activity, node, now);
        if (s->touched[node]) live = drop_hopeless(p, s, live, branches);
    }
    s->fresh_count = 0;
}

/* Start the most urgent ready step out of order when the order can never be kept, which happens when
 * a limit holds back what the order wants first. */
static int break_stall(const Problem *p, State *s, const Decision *d) {
    if (d->policy != ORDERED) return 0;
    int64_t activity = first_stalled(p, s, d->planned, d->priority);
    if (activity < 0) return 0;
    double latest = 0.0;
    for (int64_t other = 0; other < p->activities; other++)
        if (isfinite(s->of[other].end)) latest = later_of(latest, s->of[other].end);
    bind(p, s, activity, d->planned[s->t->of[activity].gene], latest);
    return 1;
}

static void list_nodes(const Problem *p, State *s, const Decision *d) {
    for (int64_t place = 0; place < p->nodes; place++) {
        s->everywhere[place] = d->listed ? d->listed[place] : place;
        s->place_in_list[s->everywhere[place]] = place;
    }
    s->draw = d->draw;
}

/* Simulate a decision, and return whether its schedule costs no more than the decision's limit. */
static int simulate_decision(const Problem *p, State *s, const Decision *d) {
    state_reset(s, p);
    take_started_places(p, s);
    set_limit(p, s, d->limit);
    list_nodes(p, s, d);
    if (d->policy == FULLEST) count_work(p, s);
    if (d->policy == ORDERED) build_sequences(p, s, d->planned, d->priority, d->order ? d->order : s->in_order);
    for (int64_t activity = 0; activity < p->activities; activity++)
        if (s->of[activity].waiting == 0)
            push_event(s, ready_seconds(p, s, d, activity, 0.0), activity, BECOMES_READY);
    while (s->unfinished > 0) {
        if (s->later_size == 0 && s->now_size == 0 && !break_stall(p, s, d)) return 1;
        if (s->now_size == 0) s->due = s->later[0].due;
        const double now = number_of(s->due);
        count_idle(s, now);
        if (is_lost(s)) return 0;
        for (int64_t code; (code = pop_event(s)) >= 0;) {
            if (code % 2 == ENDS)
                finish(p, s, d, code / 2, now);
            else
                become_ready(p, s, d, code / 2, now);
        }
        if (d->policy == ORDERED) start_in_order(p, s, now);
        if (d->policy == STRICT_FIFO)
            dispatch_in_turn(p, s, d, now);
        else if (d->policy == FULLEST)
            dispatch_fullest(p, s, now);
        else if (s->t->uses)
            dispatch(p, s, d, now, 1);
        else
            dispatch(p, s, d, now, 0);
        for (int64_t i = 0; i < s->touched_count; i++) s->touched[s->touched_nodes[i]] = 0;
        s->touched_count = 0;
    }
    return 1;
}
