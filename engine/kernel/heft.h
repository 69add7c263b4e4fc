/* HEFT (Topcuoglu, Hariri, Wu 2002): upward ranks, earliest finish, insertion into gaps.
 *
 * Ranks take mean run times and, for direct transfers, mean transfer times x (1 - 1/N). Nodes hold many
 * tasks at once, so a gap is a stretch of time in which all requested resources are free. */
#ifndef KFP_PLACEMENT_HEFT_H
#define KFP_PLACEMENT_HEFT_H

#include "choice.h"
#include "sorting.h"

/* Room on one node over time: room[i] holds from time[i] to time[i + 1], the last forever. */
typedef struct {
    int64_t count, capacity;
    double *time;
    int64_t *room; /* [capacity, R] */
} Profile;

static int profile_reserve(Profile *profile, int64_t resources) {
    if (profile->count + 2 <= profile->capacity) return 1;
    int64_t capacity = 2 * profile->capacity + 8;
    double *time = realloc(profile->time, sizeof(double) * (size_t)capacity);
    if (time) profile->time = time;
    int64_t *room = realloc(profile->room, sizeof(int64_t) * (size_t)(capacity * resources));
    if (room) profile->room = room;
    if (!time || !room) return 0;
    profile->capacity = capacity;
    return 1;
}

static int64_t segment_at(const Profile *profile, double time) {
    int64_t low = 0, high = profile->count - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (profile->time[middle] <= time)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static int segment_fits(const Profile *profile, const int64_t *request, int64_t resources, int64_t segment) {
    for (int64_t resource = 0; resource < resources; resource++)
        if (request[resource] > 0 && request[resource] > profile->room[segment * resources + resource]) return 0;
    return 1;
}

/* Earliest start from `earliest` on with room for the whole duration. */
static double earliest_gap(const Profile *profile, const int64_t *request, int64_t resources, double earliest,
                           double seconds) {
    double start = earliest;
    for (int64_t segment = segment_at(profile, earliest); segment < profile->count; segment++) {
        int last = segment + 1 == profile->count;
        if (!segment_fits(profile, request, resources, segment)) {
            if (last) return INFINITY;
            start = profile->time[segment + 1];
        } else if (last || profile->time[segment + 1] >= start + seconds) {
            return start;
        }
    }
    return INFINITY;
}

/* Make `time` a breakpoint; returns its segment. The capacity is there. */
static int64_t split_at(Profile *profile, int64_t resources, double time) {
    int64_t segment = segment_at(profile, time);
    if (profile->time[segment] == time) return segment;
    int64_t moved = profile->count - segment;
    memmove(profile->time + segment + 1, profile->time + segment, sizeof(double) * (size_t)moved);
    memmove(profile->room + (segment + 1) * resources, profile->room + segment * resources,
            sizeof(int64_t) * (size_t)(moved * resources));
    profile->time[segment + 1] = time;
    profile->count += 1;
    return segment + 1;
}

static int take_room(Profile *profile, const int64_t *request, int64_t resources, double start, double end) {
    if (!profile_reserve(profile, resources)) return 0;
    int64_t first = split_at(profile, resources, start), last = split_at(profile, resources, end);
    for (int64_t segment = first; segment < last; segment++)
        for (int64_t resource = 0; resource < resources; resource++)
            profile->room[segment * resources + resource] -= request[resource];
    return 1;
}

/* Whether HEFT may put the activity there. */
static int heft_allows(const Problem *p, int64_t activity, int64_t node) {
    int64_t gene = p->gene[activity];
    if (p->fixed_node[activity] >= 0) return 1;
    if (gene >= 0) return p->allowed[gene * p->nodes + node];
    return p->feasible[p->class_of[activity] * p->nodes + node];
}

/* Upward ranks: mean time of the longest path from the activity's start to the end of the run. */
static void upward_ranks(const Problem *p, double *rank) {
    double inverse_speed = 0.0, inverse_store = 0.0;
    for (int64_t node = 0; node < p->nodes; node++) {
        inverse_speed += 1.0 / p->speed[node] / (double)p->nodes;
        inverse_store += 1.0 / p->store_rate[node] / (double)p->nodes;
    }
    for (int64_t i = p->activities - 1; i >= 0; i--) {
        int64_t activity = p->topological[i];
        double longest = 0.0;
        for (int64_t e = p->successors_start[activity]; e < p->successors_start[activity + 1]; e++) {
            int64_t successor = p->successors[e];
            double moved = 0.0;
            for (int64_t b = p->predecessors_start[successor]; b < p->predecessors_start[successor + 1]; b++)
                if (p->predecessors[b] == activity) moved = p->transfer_bytes[b];
            double apart = p->direct ? moved / p->link_rate * (1.0 - 1.0 / (double)p->nodes) : 0.0;
            longest = fmax(longest, apart + rank[successor]);
        }
        double seconds = p->duration_seconds[activity] * (p->scales[activity] ? inverse_speed : 1.0);
        seconds += (p->download_bytes[activity] + p->upload_bytes[activity]) * inverse_store;
        rank[activity] = seconds + longest;
    }
}

typedef struct {
    Profile *profiles;  /* [N] */
    uint8_t *pulled;    /* [I, N] */
    int64_t *gene_node; /* [G] */
    double *rank, *end; /* [A] */
    int64_t *order;     /* [2A] */
    double *claim_end;  /* [V] when the last pod placed gives an exclusive claim back */
} Heft;

static double heft_ready(const Problem *p, const Heft *h, const int64_t *placed, int64_t activity, int64_t node) {
    double ready = p->release_seconds[activity];
    for (int64_t edge = p->predecessors_start[activity]; edge < p->predecessors_start[activity + 1]; edge++) {
        int64_t before = p->predecessors[edge];
        double arrival = h->end[before];
        if (p->direct && placed[before] != node) arrival += p->transfer_bytes[edge] / p->link_rate;
        ready = fmax(ready, arrival);
    }
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        ready = fmax(ready, h->claim_end[p->claims[i]]);
    return ready;
}

static int heft_place(const Problem *p, Heft *h, int64_t activity, double *start, int64_t *placed) {
    int64_t best = -1, gene = p->gene[activity], image = p->image[activity];
    double best_start = INFINITY, best_end = INFINITY;
    const int64_t *request = p->requests + activity * p->resources, fixed = p->fixed_node[activity];
    const int64_t first = fixed >= 0 ? fixed : 0, end = fixed >= 0 ? fixed + 1 : p->nodes;
    for (int64_t node = first; node < end; node++) {
        if (!heft_allows(p, activity, node)) continue;
        if (gene >= 0 && p->sticky[gene] && h->gene_node[gene] >= 0 && h->gene_node[gene] != node) continue;
        double seconds = seconds_on(p, activity, node);
        if (image >= 0 && !h->pulled[image * p->nodes + node]) seconds += p->image_bytes[image] / p->pull_rate[node];
        double from = heft_ready(p, h, placed, activity, node);
        if (!p->is_running[activity]) from = earliest_gap(h->profiles + node, request, p->resources, from, seconds);
        if (from + seconds < best_end) {
            best = node;
            best_start = from;
            best_end = from + seconds;
        }
    }
    placed[activity] = best;
    start[activity] = best_start;
    h->end[activity] = best_end;
    if (best < 0) return 1;
    if (gene >= 0) h->gene_node[gene] = best;
    if (image >= 0) h->pulled[image * p->nodes + best] = 1;
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        if (p->exclusive[p->claims[i]]) h->claim_end[p->claims[i]] = best_end;
    return take_room(h->profiles + best, request, p->resources, best_start, best_end);
}

static int heft_run(const Problem *p, Heft *h, double *start, int64_t *placed) {
    for (int64_t node = 0; node < p->nodes; node++) {
        if (!profile_reserve(h->profiles + node, p->resources)) return 0;
        h->profiles[node].count = 1;
        h->profiles[node].time[0] = 0.0;
        memcpy(h->profiles[node].room, p->free + node * p->resources, sizeof(int64_t) * (size_t)p->resources);
    }
    memcpy(h->pulled, p->image_present, (size_t)(p->images * p->nodes));
    for (int64_t gene = 0; gene < p->genes; gene++) h->gene_node[gene] = -1;
    upward_ranks(p, h->rank);
    for (int64_t i = 0; i < p->activities; i++) {
        h->order[i] = p->topological[i];
        h->rank[i] = p->fixed_node[i] >= 0 ? -INFINITY : -h->rank[i];
    }
    sort_by_key(h->rank, NULL, h->order, h->order + p->activities, p->activities);
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

/* Starts and nodes of HEFT's schedule; 0 when there is no memory left. */
int64_t heft(const Problem *p, double *start, int64_t *placed) {
    const size_t a = (size_t)p->activities, n = (size_t)p->nodes;
    Heft h = {calloc(n, sizeof(Profile)),
              calloc((size_t)p->images * n + 1, 1),
              calloc((size_t)p->genes + 1, sizeof(int64_t)),
              calloc(a + 1, sizeof(double)),
              calloc(a + 1, sizeof(double)),
              calloc(2 * a + 1, sizeof(int64_t)),
              calloc((size_t)p->claim_count + 1, sizeof(double))};
    int done = h.profiles && h.pulled && h.gene_node && h.rank && h.end && h.order && h.claim_end &&
               heft_run(p, &h, start, placed);
    for (size_t node = 0; h.profiles && node < n; node++) {
        free(h.profiles[node].time);
        free(h.profiles[node].room);
    }
    free(h.profiles);
    free(h.pulled);
    free(h.gene_node);
    free(h.rank);
    free(h.end);
    free(h.order);
    free(h.claim_end);
    return done;
}

#endif
