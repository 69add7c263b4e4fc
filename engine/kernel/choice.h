/* Which node a pod gets at one moment. */
#ifndef KFP_PLACEMENT_CHOICE_H
#define KFP_PLACEMENT_CHOICE_H

#include "random.h"
#include "scores.h"
#include "state.h"

/* VolumeRestrictions: whether a bound pod has a claim that only one pod at a time may have. */
static int awaits_claim(const Problem *p, const State *s, int64_t activity) {
    for (int64_t i = p->claims_start[activity]; i < p->claims_start[activity + 1]; i++)
        if (p->exclusive[p->claims[i]] && s->claim_holders[p->claims[i]] > 0) return 1;
    return 0;
}

/* NodeResourcesFit, VolumeRestrictions and the static filters. */
static inline int fits(const Problem *p, const State *s, int64_t activity, int64_t node) {
    if (!p->feasible[p->class_of[activity] * p->nodes + node]) return 0;
    const int64_t *request = p->requests + activity * p->resources, *room = s->free + node * p->resources;
    for (int64_t resource = 0; resource < p->resources; resource++)
        if (request[resource] > 0 && request[resource] > room[resource]) return 0;
    return p->exclusive_claims == 0 || !awaits_claim(p, s, activity);
}

/* When the inputs are on the node, with direct transfers from the producers' ends. */
static double arrival_seconds(const Problem *p, const State *s, int64_t activity, int64_t node) {
    double latest = 0.0;
    for (int64_t edge = p->predecessors_start[activity]; edge < p->predecessors_start[activity + 1]; edge++) {
        int64_t producer = p->predecessors[edge];
        double arrival = s->end[producer];
        if (p->direct && s->node[producer] != node) arrival += p->transfer_bytes[edge] / p->link_rate;
        if (arrival > latest) latest = arrival;
    }
    return latest;
}

/* Download, run and upload on the node. */
static inline double occupied_seconds(const Problem *p, int64_t activity, int64_t node) {
    double seconds = p->duration_seconds[activity];
    if (p->scales[activity]) seconds /= p->speed[node];
    return seconds + (p->download_bytes[activity] + p->upload_bytes[activity]) / p->store_rate[node];
}

/* When the activity would end if it were bound to the node now. */
static double finish_seconds(const Problem *p, const State *s, int64_t activity, int64_t node, double now) {
    double begin = now;
    int64_t image = p->image[activity];
    if (image >= 0) {
        double there = s->image_ready_at[image * p->nodes + node];
        begin = isinf(there) ? now + p->image_bytes[image] / p->pull_rate[node] : fmax(now, there);
    }
    if (p->direct) begin = fmax(begin, arrival_seconds(p, s, activity, node));
    return begin + occupied_seconds(p, activity, node);
}

/* What the scores of one pod have in common for all nodes. */
typedef struct {
    int64_t most_taints, most_weight;  /* of the feasible nodes */
    const double *image_ready_at;      /* [N] of its image, or NULL: it has none */
    const uint8_t *image_scored;       /* [N] of its class */
    int64_t image_held, image_missing; /* ImageLocality of nodes that hold it, of others */
    double now;
} Scoring;

/* Whether the node holds the image, under the name the pod asks for. */
static inline int shows_image(const Scoring *scoring, int64_t node) {
    return scoring->image_ready_at[node] <= scoring->now && scoring->image_scored[node];
}

/* ImageLocality: a node holds an image once its pull has ended. The launcher's and Argo's images are
 * everywhere alike. */
static void score_image(const Problem *p, const State *s, int64_t activity, Scoring *scoring) {
    const int64_t image = p->image[activity], containers = p->containers[p->class_of[activity]];
    int64_t holders = 0;
    scoring->image_missing = scoring->image_held = image_locality(0, containers);
    scoring->image_ready_at = NULL;
    if (image < 0) return;
    scoring->image_ready_at = s->image_ready_at + image * p->nodes;
    scoring->image_scored = p->image_scored + p->class_of[activity] * p->nodes;
    for (int64_t node = 0; node < p->nodes; node++) holders += shows_image(scoring, node);
    const double scaled = p->image_bytes[image] * ((double)holders / (double)p->nodes);
    scoring->image_held = image_locality((int64_t)fmin(scaled, 0x1p62), containers);
}

/* Weighted total of the default profile's plugins for one feasible node. */
static int64_t kube_score(const Problem *p, const State *s, int64_t activity, int64_t node, const Scoring *scoring) {
    int64_t class = p->class_of[activity], cell = class * p->nodes + node;
    const int64_t *request = p->requests + activity * p->resources;
    int64_t cpu = p->allocatable[node * p->resources], memory = p->allocatable[node * p->resources + 1];
    int64_t score = TAINT_TOLERATION_WEIGHT * normalise_reversed(p->preferred_taints[cell], scoring->most_taints);
    if (p->scores_affinity[class])
        score += NODE_AFFINITY_WEIGHT * normalise(p->preferred_weight[cell], scoring->most_weight);
    score += RESOURCES_FIT_WEIGHT * least_allocated(s->scored[node * 2] + p->scored_requests[activity * 2],
                                                    s->scored[node * 2 + 1] + p->scored_requests[activity * 2 + 1],
                                                    cpu, memory);
    if (p->scores_balance[class])
        score += BALANCED_ALLOCATION_WEIGHT *
                 balanced_allocation(cpu - s->free[node * p->resources], memory - s->free[node * p->resources + 1],
                                     request[0], request[1], cpu, memory, p->version_136);
    const int held = scoring->image_ready_at && shows_image(scoring, node);
    return score + IMAGE_LOCALITY_WEIGHT * (held ? scoring->image_held : scoring->image_missing);
}

/* How many feasible nodes kube-scheduler scores: all of fewer than 100, else a share that shrinks with
 * the cluster (numFeasibleNodesToFind with percentageOfNodesToScore unset, schedule_one.go). */
static inline int64_t nodes_to_score(int64_t nodes) {
    if (nodes < 100) return nodes;
    int64_t percentage = 50 - nodes / 125, count = nodes * (percentage < 5 ? 5 : percentage) / 100;
    return count < 100 ? 100 : count;
}

/* Look at the nodes from where the last look ended until enough are feasible; returns their number. */
static int64_t sample_feasible(const Problem *p, State *s, int64_t activity) {
    int64_t found = 0, looked_at = 0, wanted = nodes_to_score(p->nodes);
    while (looked_at < p->nodes && found < wanted) {
        int64_t node = s->everywhere[(s->next_start + looked_at++) % p->nodes];
        if (fits(p, s, activity, node)) s->sample[found++] = node;
    }
    s->next_start = (s->next_start + looked_at) % p->nodes;
    return found;
}

static inline void exchange(int64_t *values, int64_t one, int64_t other) {
    int64_t value = values[one];
    values[one] = values[other];
    values[other] = value;
}

/* Which of the best of the sample: since 1.35 the one that Go's heap.Init brings to the top
 * (newSortedNodeScores, schedule_one.go), before one at random. A draw depends on the pod alone, so
 * that a plan which does the same until then finds its driver pods on the same nodes. */
static int64_t break_tie(const Problem *p, State *s, int64_t activity, int64_t count, int64_t most, int64_t ties) {
    if (p->ties == RANDOM_TIES) {
        int64_t drawn = (int64_t)(mixed((uint64_t)s->draw, (uint64_t)activity) % (uint64_t)ties), slot = 0;
        while (s->total[slot] != most || drawn-- > 0) slot += 1;
        return s->sample[slot];
    }
    for (int64_t start = count / 2 - 1; start >= 0; start--) {
        int64_t parent = start;
        for (int64_t child = 2 * parent + 1; child < count; child = 2 * parent + 1) {
            if (child + 1 < count && s->total[child + 1] > s->total[child]) child += 1;
            if (s->total[child] <= s->total[parent]) break;
            exchange(s->total, parent, child);
            exchange(s->sample, parent, child);
            parent = child;
        }
    }
    return s->sample[0];
}

/* The node of the sample that the default profile prefers; -1 if it is empty. */
static int64_t best_by_score(const Problem *p, State *s, int64_t activity, int64_t count, double now) {
    const int64_t row = p->class_of[activity] * p->nodes;
    int64_t best = -1, most = -1, ties = 0;
    Scoring scoring = {.now = now};
    if (count < 2) return count ? s->sample[0] : -1;
    score_image(p, s, activity, &scoring);
    for (int64_t i = 0; i < count; i++) {
        int64_t cell = row + s->sample[i];
        if (p->preferred_taints[cell] > scoring.most_taints) scoring.most_taints = p->preferred_taints[cell];
        if (p->preferred_weight[cell] > scoring.most_weight) scoring.most_weight = p->preferred_weight[cell];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t score = kube_score(p, s, activity, s->sample[i], &scoring);
        s->total[i] = score;
        if (score == most) ties += 1;
        if (score <= most) continue;
        best = s->sample[i];
        most = score;
        ties = 1;
    }
    if (ties == 1 || p->ties == FIRST_TIES) return best;
    return break_tie(p, s, activity, count, most, ties);
}

/* kube-scheduler's choice for a pod it has not tried yet, on the state of the moment. */
static int64_t choose_by_kube(const Problem *p, State *s, int64_t activity, double now) {
    return best_by_score(p, s, activity, sample_feasible(p, s, activity), now);
}

/* Its choice for a pod that fitted nowhere until room came on the candidates just now. */
static int64_t choose_by_kube_among(const Problem *p, State *s, int64_t activity, const int64_t *candidates,
                                    int64_t count, double now) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!fits(p, s, activity, candidates[i])) continue;
        int64_t slot = found++;
        const int64_t place = s->place_in_list[candidates[i]];
        for (; slot > 0 && s->place_in_list[s->sample[slot - 1]] > place; slot--) s->sample[slot] = s->sample[slot - 1];
        s->sample[slot] = candidates[i];
    }
    return best_by_score(p, s, activity, found, now);
}

/* The allowed node with room of least latency excess, then of earliest finish, then the fullest. */
static int64_t choose_by_finish(const Problem *p, const State *s, int64_t activity, const int64_t *candidates,
                                int64_t count, double now) {
    const int64_t row = p->class_of[activity] * p->nodes, gene_row = p->gene[activity] * p->nodes;
    int64_t best = -1;
    double best_key[3] = {INFINITY, INFINITY, INFINITY};
    for (int64_t i = 0; i < count; i++) {
        int64_t node = candidates[i];
        if (!p->allowed[gene_row + node] || !fits(p, s, activity, node)) continue;
        double excess = p->latency_excess_ms[row + node];
        if (excess > best_key[0]) continue;
        double finish = finish_seconds(p, s, activity, node, now);
        int64_t size = p->allocatable[node * p->resources];
        double left = (double)(s->free[node * p->resources] - p->requests[activity * p->resources]) /
                      (double)(size > 1 ? size : 1);
        int earlier = excess != best_key[0]   ? excess < best_key[0]
                      : finish != best_key[1] ? finish < best_key[1]
                      : left != best_key[2]   ? left < best_key[2]
                                              : node < best;
        if (best < 0 || earlier) {
            best = node;
            best_key[0] = excess;
            best_key[1] = finish;
            best_key[2] = left;
        }
    }
    return best;
}

#endif
