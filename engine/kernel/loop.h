/* The event loop: plays one schedule from submission to the end of the last activity. */
#ifndef KFP_PLACEMENT_LOOP_H
#define KFP_PLACEMENT_LOOP_H

#include "sequence.h"

typedef struct {
    int policy;
    const int64_t *planned;   /* [G] planned node of each gene (READY, ORDERED, BACKFILL) */
    const double *priority;   /* [A] the smaller, the more urgent (ORDERED, BACKFILL, GREEDY) */
    const double *not_before; /* [A] planned starts to wait for (ORDERED), or NULL */
    const int64_t *listed;    /* [N] the nodes as kube-scheduler lists them, or NULL: as numbered */
    int64_t draw;             /* seed of its random ties */
} Decision;

static inline int in_sequence(const Problem *p, const Decision *d, int64_t activity) {
    return d->policy == ORDERED && p->gene[activity] >= 0;
}

/* Put a pod into the queue: by urgency where the policy has one (drivers first), else by creation. */
static void enqueue(const Problem *p, State *s, const Decision *d, int64_t activity) {
    if (d->policy == BACKFILL || d->policy == GREEDY)
        s->order[activity] = p->gene[activity] >= 0 ? d->priority[activity] : -INFINITY;
    else
        s->order[activity] = (double)s->created++;
    s->fresh[activity] = 1;
    s->fresh_count += 1;
    s->queued[p->class_of[activity]] += 1;
    s->like[p->class_of[activity]] = activity;
    int64_t slot = s->pending_count++;
    for (; slot > 0 && s->order[s->pending[slot - 1]] > s->order[activity]; slot--)
        s->pending[slot] = s->pending[slot - 1];
    s->pending[slot] = activity;
}

/* Queue an activity whose time has come, unless its loop is at its parallelism limit. */
static void become_ready(const Problem *p, State *s, const Decision *d, int64_t activity, double now) {
    int64_t entered = p->entry_iteration[activity];
    if (entered >= 0 && !s->iteration_active[entered]) {
        int64_t loop = p->iteration_loop[entered];
        if (s->loop_running[loop] >= p->loop_parallelism[loop]) {
            s->iteration_blocked[entered] = activity;
            return;
        }
        s->loop_running[loop] += 1;
        s->iteration_active[entered] = 1;
    }
    if (p->is_virtual[activity]) {
        s->start[activity] = s->begin[activity] = now;
        s->end[activity] = now + p->duration_seconds[activity];
        push_event(s, s->end[activity], activity, ENDS);
        return;
    }
    if (p->is_running[activity]) {
        go_on(p, s, activity, now);
        return;
    }
    s->ready[activity] = 1;
    if (in_sequence(p, d, activity))
        touch(s, d->planned[p->gene[activity]]);
    else
        enqueue(p, s, d, activity);
}

/* When an activity without unfinished predecessors may start. */
static double ready_seconds(const Problem *p, const State *s, const Decision *d, int64_t activity, double now) {
    double when = fmax(now, p->release_seconds[activity]);
    if (!in_sequence(p, d, activity)) return when;
    if (d->not_before) when = fmax(when, d->not_before[activity]);
    if (p->direct) when = fmax(when, arrival_seconds(p, s, activity, d->planned[p->gene[activity]]));
    return when;
}

/* Count the activity out of its limited iterations; a loop below its limit lets the next one in. */
static void leave_iterations(const Problem *p, State *s, int64_t activity, double now) {
    for (int64_t iteration = p->iteration[activity]; iteration >= 0; iteration = p->iteration_parent[iteration]) {
        if (--s->iteration_left[iteration] > 0) continue;
        int64_t loop = p->iteration_loop[iteration];
        s->loop_running[loop] -= 1;
        for (int64_t other = 0; other < p->iterations; other++) {
            if (p->iteration_loop[other] != loop || s->iteration_blocked[other] < 0) continue;
            push_event(s, now, s->iteration_blocked[other], BECOMES_READY);
            s->iteration_blocked[other] = -1;
            break;
        }
    }
}

/* Offer every node again to pods that may have waited for a claim of the activity, and not for room. */
static void wake_claimants(const Problem *p, State *s, const Decision *d, int64_t activity) {
    for (int64_t other = 0; other < p->activities; other++) {
        if (!s->ready[other] || !shares_exclusive_claim(p, activity, other)) continue;
        if (in_sequence(p, d, other)) {
            touch(s, d->planned[p->gene[other]]);
        } else if (!s->fresh[other]) {
            s->fresh[other] = 1;
            s->fresh_count += 1;
        }
    }
}

static void finish(const Problem *p, State *s, const Decision *d, int64_t activity, double now) {
    s->unfinished -= 1;
    if (s->node[activity] >= 0) leave(p, s, activity, now);
    if (p->exclusive_claims && mounts_volumes(p, activity)) wake_claimants(p, s, d, activity);
    leave_iterations(p, s, activity, now);
    for (int64_t edge = p->successors_start[activity]; edge < p->successors_start[activity + 1]; edge++) {
        int64_t successor = p->successors[edge];
        if (--s->waiting[successor] > 0) continue;
        s->cause[successor] = activity;
        push_event(s, ready_seconds(p, s, d, successor, now), successor, BECOMES_READY);
    }
}

static int64_t choose(const Problem *p, State *s, const Decision *d, int64_t activity, const int64_t *candidates,
                      int64_t count, double now) {
    int64_t gene = p->gene[activity], fixed = p->fixed_node[activity];
    if (fixed >= 0) return fits(p, s, activity, fixed) ? fixed : -1;
    if (gene < 0 || d->policy == KUBE_DEFAULT || d->policy == STRICT_FIFO)
        return candidates == s->everywhere ? choose_by_kube(p, s, activity, now)
                                           : choose_by_kube_among(p, s, activity, candidates, count, now);
    int64_t node = d->policy == GREEDY ? s->gene_node[gene] : d->planned[gene];
    if (node >= 0 && fits(p, s, activity, node)) return node;
    if (d->policy == BACKFILL || (p->sticky[gene] && node >= 0)) return -1;
    node = choose_by_finish(p, s, activity, candidates, count, now);
    if (p->sticky[gene]) s->gene_node[gene] = node;
    return node;
}

static int some_node_fits(const Problem *p, const State *s, int64_t activity, const int64_t *nodes, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (fits(p, s, activity, nodes[i])) return 1;
    return 0;
}

enum { MOST_CLASSES = 256 }; /* with more classes of pods, counting takes longer than offering */

/* How many of the pods that the round has not passed yet some touched node may have room for. */
static int64_t count_hopeful(const Problem *p, State *s, int64_t not_passed) {
    int64_t count = 0;
    if (p->classes > MOST_CLASSES) return s->touched_count > 0 ? not_passed : 0;
    for (int64_t class = 0; class < p->classes; class++) {
        int64_t left = s->queued[class] - s->passed[class];
        s->hopeful[class] = left > 0 && some_node_fits(p, s, s->like[class], s->touched_nodes, s->touched_count);
        if (s->hopeful[class]) count += left;
    }
    return count;
}

/* The node for a queued pod: a new one is offered all nodes, the others those that got room just now,
 * since a pod that no node could take before cannot fit where nothing has ended. */
static int64_t offer(const Problem *p, State *s, const Decision *d, int64_t activity, double now) {
    int64_t class = p->class_of[activity];
    if (!s->fresh[activity])
        return s->hopeful[class] ? choose(p, s, d, activity, s->touched_nodes, s->touched_count, now) : -1;
    s->fresh[activity] = 0;
    s->fresh_count -= 1;
    if (s->full[class]) return -1;
    int64_t node = choose(p, s, d, activity, s->everywhere, p->nodes, now);
    if (node < 0) s->full[class] = (uint8_t)!some_node_fits(p, s, activity, s->everywhere, p->nodes);
    return node;
}

/* One round of the queue. Room only shrinks during a round, so it ends when no pod is left that is new
 * or of a class that a touched node has room for. */
static void dispatch(const Problem *p, State *s, const Decision *d, double now) {
    if (s->pending_count == 0) return;
    memset(s->passed, 0, sizeof(int64_t) * (size_t)p->classes);
    memset(s->full, 0, (size_t)p->classes);
    int64_t kept = 0, i = 0, hopeful = count_hopeful(p, s, s->pending_count);
    while (i < s->pending_count && (hopeful > 0 || s->fresh_count > 0)) {
        int64_t activity = s->pending[i++], class = p->class_of[activity];
        int64_t node = offer(p, s, d, activity, now);
        if (node >= 0) {
            bind(p, s, activity, node, now);
            s->queued[class] -= 1;
            hopeful = count_hopeful(p, s, s->pending_count - i);
            continue;
        }
        s->pending[kept++] = activity;
        s->passed[class] += 1;
        hopeful -= s->hopeful[class];
        if (d->policy == STRICT_FIFO) break;
    }
    memmove(s->pending + kept, s->pending + i, sizeof(int64_t) * (size_t)(s->pending_count - i));
    s->pending_count -= i - kept;
}

/* Start the most urgent ready step out of order when the order can never be kept, which happens when
 * a loop's parallelism limit holds back what the order wants first. */
static int break_stall(const Problem *p, State *s, const Decision *d) {
    if (d->policy != ORDERED) return 0;
    int64_t activity = first_stalled(p, s, d->planned, d->priority);
    if (activity < 0) return 0;
    double latest = 0.0;
    for (int64_t other = 0; other < p->activities; other++)
        if (isfinite(s->end[other])) latest = fmax(latest, s->end[other]);
    bind(p, s, activity, d->planned[p->gene[activity]], latest);
    return 1;
}

static void list_nodes(const Problem *p, State *s, const Decision *d) {
    for (int64_t place = 0; place < p->nodes; place++) {
        s->everywhere[place] = d->listed ? d->listed[place] : place;
        s->place_in_list[s->everywhere[place]] = place;
    }
    s->draw = d->draw;
}

static void play(const Problem *p, State *s, const Decision *d) {
    state_reset(s, p);
    list_nodes(p, s, d);
    if (d->policy == ORDERED) build_sequences(p, s, d->planned, d->priority);
    for (int64_t activity = 0; activity < p->activities; activity++)
        if (s->waiting[activity] == 0)
            push_event(s, ready_seconds(p, s, d, activity, 0.0), activity, BECOMES_READY);
    while (s->unfinished > 0) {
        if (s->heap_size == 0 && !break_stall(p, s, d)) return;
        double now = s->heap_time[0];
        while (s->heap_size > 0 && s->heap_time[0] == now) {
            int64_t code = pop_event(s);
            if (code % 2 == ENDS)
                finish(p, s, d, code / 2, now);
            else
                become_ready(p, s, d, code / 2, now);
        }
        if (d->policy == ORDERED) start_in_order(p, s, now);
        dispatch(p, s, d, now);
        for (int64_t i = 0; i < s->touched_count; i++) s->touched[s->touched_nodes[i]] = 0;
        s->touched_count = 0;
    }
}

#endif
