/* HEFT (Topcuoglu, Hariri, Wu 2002): upward ranks, earliest finish, insertion into gaps.
 *
 * Ranks take mean run times and, for direct transfers, mean transfer times x (1 - 1/N). Nodes hold many
 * tasks at once, so a gap is a stretch of time in which all requested resources are free. */
#pragma once

#include "profile.h"
#include "sorting.h"
#include "tables.h"

/* Return whether HEFT may put the activity there. */
static int heft_allows(const Problem *p, int64_t activity, int64_t node) {
    int64_t gene = p->gene[activity];
    if (p->fixed_node[activity] >= 0) return 1;
    if (gene >= 0) return p->allowed[gene * p->nodes + node];
    return p->feasible[p->class_of[activity] * p->nodes + node];
}

/* Compute upward ranks, 0 before: mean time of the longest path from the activity's start to the end of the run. */
static void upward_ranks(const Problem *p, double *rank) {
    double inverse_speed = 0.0, inverse_store = 0.0;
    for (int64_t node = 0; node < p->nodes; node++) {
        inverse_speed += 1.0 / p->speed[node] / (double)p->nodes;
        inverse_store += 1.0 / p->store_rate[node] / (double)p->nodes;
    }
    const double apart = p->direct ? 1.0 - 1.0 / (double)p->nodes : 0.0;
    for (int64_t i = p->activities - 1; i >= 0; i--) {
        const int64_t activity = p->topological[i];
        double seconds = p->duration_seconds[activity] * (p->scales[activity] ? inverse_speed : 1.0);
        seconds += (p->download_bytes[activity] + p->upload_bytes[activity]) * inverse_store;
        rank[activity] += seconds;
        for (int64_t edge = p->predecessors_start[activity]; edge < p->predecessors_start[activity + 1]; edge++) {
            double *before = rank + p->predecessors[edge];
            *before = later_of(*before, p->tables->transfer_seconds[edge] * apart + rank[activity]);
        }
    }
}

typedef struct {
    Profile *profiles;  /* [N] */
    uint8_t *pulled;    /* [I, N] */
    int64_t *gene_node; /* [G] */
    double *rank, *end; /* [A] */
    int32_t *order;     /* [A] */
    Ranked *scratch;    /* [2A] */
    double *claim_end;  /* [V] end of the last pod placed with an exclusive claim */
} Heft;

static double heft_ready(const Problem *p, const Heft *h, const int64_t *placed, int64_t activity, int64_t node) {
    double ready = p->release_seconds[activity];
    for (int64_t edge = p->predecessors_start[activity]; edge < p->predecessors_start[activity + 1]; edge++) {
        int64_t before = p->predecessors[edge];
        double arrival = h->end[before];
        if (p->direct && placed[before] != node) arrival += p->tables->transfer_seconds[edge];
        ready = fmax(ready, arrival);
    }
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        ready = fmax(ready, h->claim_end[p->claims[i]]);
    return ready;
}

/* Find the node on which the activity ends first, and its start; return 0 when there is no memory left. */
static int heft_place(const Problem *p, Heft *h, int64_t activity, double *start, int64_t *placed) {
    const int64_t gene = p->gene[activity], image = p->image[activity], fixed = p->fixed_node[activity];
    const int64_t *request = p->requests + activity * p->resources;
    const int64_t first = fixed >= 0 ? fixed : 0, last = fixed >= 0 ? fixed : p->nodes - 1;
    placed[activity] = -1;
    start[activity] = h->end[activity] = INFINITY;
    for (int64_t node = first; node <= last; node++) {
        if (!heft_allows(p, activity, node)) continue;
        if (gene >= 0 && p->sticky[gene] && h->gene_node[gene] >= 0 && h->gene_node[gene] != node) continue;
        double seconds = occupied_seconds(p, p->tables, activity, node);
        if (image >= 0 && !h->pulled[image * p->nodes + node]) seconds += p->image_bytes[image] / p->pull_rate[node];
        double from = heft_ready(p, h, placed, activity, node);
        if (from + seconds >= h->end[activity]) continue;
        if (!p->is_running[activity]) from = earliest_gap(h->profiles + node, request, p->resources, from, seconds);
        if (from + seconds >= h->end[activity]) continue;
        placed[activity] = node;
        start[activity] = from;
        h->end[activity] = from + seconds;
    }
    const int64_t best = placed[activity];
    if (best < 0) return 1;
    if (gene >= 0) h->gene_node[gene] = best;
    if (image >= 0) h->pulled[image * p->nodes + best] = 1;
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        if (p->exclusive[p->claims[i]]) h->claim_end[p->claims[i]] = h->end[activity];
    if (p->after_failure[activity]) return 1;
    return take_room(h->profiles + best, request, p->resources, start[activity], h->end[activity]);
}

static int heft_run(const Problem *p, Heft *h, double *start, int64_t *placed) {
    if (!profiles_clear(p, h->profiles)) return 0;
    memcpy(h->pulled, p->image_present, (size_t)(p->images * p->nodes));
    for (int64_t gene = 0; gene < p->genes; gene++) h->gene_node[gene] = -1;
    upward_ranks(p, h->rank);
    for (int64_t i = 0; i < p->activities; i++) {
        h->order[i] = (int32_t)p->topological[i];
        h->rank[i] = p->fixed_node[i] >= 0 ? -INFINITY : -h->rank[i];
    }
    sort_by_key(h->rank, NULL, h->order, h->scratch, p->activities);
    for (int64_t i = 0; i < p->activities; i++) {
        int64_t activity = h->order[i];
        if (p->is_virtual[activity]) {
            placed[activity] = -1;
            start[activity] = heft_ready(p, h, placed, activity, -1);
            h->end[activity] = start[activity] + p->duration_seconds[activity];
        } else if (!heft_place(p, h, activity, start, placed)) {
            return 0;
        }
    }
    return 1;
}

/* Compute starts and nodes of HEFT's schedule; return 0 when there is no memory left. */
int64_t heft(const Problem *p, double *start, int64_t *placed) {
    Memory memory = {0};
    Heft h = {profiles_new(p),
              ARRAY(&memory, uint8_t, p->images * p->nodes),
              ARRAY(&memory, int64_t, p->genes),
              ARRAY(&memory, double, p->activities),
              ARRAY(&memory, double, p->activities),
              ARRAY(&memory, int32_t, p->activities),
              ARRAY(&memory, Ranked, 2 * p->activities),
              ARRAY(&memory, double, p->claim_count)};
    const int is_done = h.profiles && !memory.is_short && heft_run(p, &h, start, placed);
    profiles_free(p, h.profiles);
    give_back(&memory);
    return is_done;
}
