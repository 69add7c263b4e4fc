/* kube-scheduler's choice of a node for a pod at one moment. */
#pragma once

#include "choice.h"
#include "random.h"

/* Return whether the node holds the image under the pod's name for it. */
static inline int shows_image(const Problem *p, const State *s, int64_t activity, int64_t node, double now) {
    return image_ready_seconds(p, s, activity, s->t->of[activity].image, node) <= now &&
           p->image_scored[s->t->of[activity].class * p->nodes + node];
}

/* ImageLocality: a node holds an image once its pull has ended. The launcher's and Argo's images are
 * everywhere alike. */
static void add_image_scores(const Problem *p, State *s, int64_t activity, int64_t count, double now) {
    const int64_t image = s->t->of[activity].image, containers = p->containers[s->t->of[activity].class];
    int64_t holders = 0;
    if (image < 0) return;
    for (int64_t node = 0; node < p->nodes; node++) holders += shows_image(p, s, activity, node, now);
    const double scaled = p->image_bytes[image] * ((double)holders / (double)p->nodes);
    const int64_t missing = image_locality(0, containers);
    const int64_t held = image_locality((int64_t)fmin(scaled, 0x1p62), containers);
    for (int64_t i = 0; i < count; i++)
        s->total[i] += IMAGE_LOCALITY_WEIGHT * (shows_image(p, s, activity, s->sample[i], now) ? held : missing);
}

/* TaintToleration and NodeAffinity: against the most of the nodes that are scored. */
static void add_preferences(const Problem *p, State *s, int64_t activity, int64_t count) {
    const int64_t class = s->t->of[activity].class;
    const int64_t *taints = p->preferred_taints + class * p->nodes, *weight = p->preferred_weight + class * p->nodes;
    int64_t most_taints = 0, most_weight = 0;
    if (!s->t->tells_apart[class]) return;
    for (int64_t i = 0; i < count; i++) {
        if (taints[s->sample[i]] > most_taints) most_taints = taints[s->sample[i]];
        if (weight[s->sample[i]] > most_weight) most_weight = weight[s->sample[i]];
    }
    for (int64_t i = 0; i < count; i++) {
        s->total[i] += TAINT_TOLERATION_WEIGHT * normalise_reversed(taints[s->sample[i]], most_taints);
        if (p->scores_affinity[class])
            s->total[i] += NODE_AFFINITY_WEIGHT * normalise(weight[s->sample[i]], most_weight);
    }
}

/* The best of the nodes so far, in the order in which kube-scheduler looks at them. */
typedef struct {
    int64_t most, ties, slot, node; /* its score, number of nodes with that score, place in the order, index */
} Best;

/* Since 1.35 the best is the one that Go's heap.Init brings to the top (newSortedNodeScores,
 * schedule_one.go): of equal ones the first in preorder. Before, it is drawn after a look at all of them. */
static inline void look_at(const Problem *p, const State *s, Best *best, int64_t slot, int64_t node, int64_t score) {
    if (score < best->most) return;
    const int64_t ties = score > best->most ? 1 : best->ties + 1;
    if (ties == 1 || (p->ties == HEAP_TIES && s->t->preorder[slot] < s->t->preorder[best->slot]))
        *best = (Best){score, ties, slot, node};
    best->ties = ties;
}

/* Return the node of the sample that the default profile prefers, by scores for its room so far; -1 if it is
 * empty. A draw depends on the pod alone, so that a plan which does the same until then finds its
 * driver pods on the same nodes. */
static int64_t best_of_sample(const Problem *p, State *s, int64_t activity, int64_t count, double now) {
    Best best = {INT64_MIN, 0, 0, -1};
    if (count < 2) return count ? s->sample[0] : -1;
    add_preferences(p, s, activity, count);
    add_image_scores(p, s, activity, count, now);
    for (int64_t slot = 0; slot < count; slot++) look_at(p, s, &best, slot, s->sample[slot], s->total[slot]);
    if (p->ties != RANDOM_TIES || best.ties == 1) return best.node;
    int64_t drawn = (int64_t)(mixed((uint64_t)s->draw, (uint64_t)activity) % (uint64_t)best.ties), slot = 0;
    while (s->total[slot] != best.most || drawn-- > 0) slot += 1;
    return s->sample[slot];
}

/* The places that kube-scheduler looks at for one pod: [from, to), then [0, again). */
typedef struct {
    int64_t from, to, again;
} Look;

/* Return the next look: from the end of the last one until enough nodes have room, or over all. */
static Look next_look(const Problem *p, State *s, int64_t shape, const uint64_t *fit) {
    const int64_t n = p->nodes, wanted = s->t->nodes_scored, from = s->next_start;
    Look look = {from, n, from};
    if (s->fit_count[shape] < wanted) return look;
    const int is_everywhere = s->fit_count[shape] == n;
    const int64_t behind = is_everywhere ? n - from : count_between(fit, from, n), left = wanted - behind;
    if (left <= 0) {
        look.to = is_everywhere ? from + wanted : place_behind(fit, from, wanted);
        look.again = 0;
        s->next_start = look.to % n;
    } else {
        s->next_start = look.again = is_everywhere ? left : place_behind(fit, 0, left);
    }
    return look;
}

static int16_t most_between(const int16_t *score, int64_t from, int64_t to) {
    int16_t most = NO_ROOM;
    for (int64_t place = from; place < to; place++) most = score[place] > most ? score[place] : most;
    return most;
}

/* Return the first place of [from, to) with the score, else `to`: four at a time, since few have it. */
static int64_t find_score(const int16_t *score, int16_t wanted, int64_t from, int64_t to) {
    const uint64_t ones = 0x0001000100010001u, pattern = ones * (uint16_t)wanted;
    int64_t place = from;
    for (uint64_t four; place + 4 <= to; place += 4) {
        memcpy(&four, score + place, sizeof(four));
        four ^= pattern;
        if ((four - ones) & ~four & ones << 15) break;
    }
    while (place < to && score[place] != wanted) place += 1;
    return place;
}

static int64_t count_score(const int16_t *score, int16_t wanted, int64_t from, int64_t to) {
    int32_t count = 0;
    for (int64_t place = from; place < to; place++) count += score[place] == wanted;
    return count;
}

/* A look at the places with room, numbered as slots in the order of the look. */
typedef struct {
    Look look;
    const uint64_t *fit;  /* NULL: all have room */
    int64_t turn;         /* the slot of the first place with room in [0, again) */
} Slots;

static inline int64_t place_of(const Slots *slots, int64_t slot) {
    const int64_t from = slot < slots->turn ? slots->look.from : 0, index = slot < slots->turn ? slot : slot - slots->turn;
    return slots->fit ? place_behind(slots->fit, from, index + 1) - 1 : from + index;
}

static inline int64_t slot_of(const Slots *slots, int64_t place, int is_again) {
    const int64_t from = is_again ? 0 : slots->look.from;
    return (is_again ? slots->turn : 0) + (slots->fit ? count_between(slots->fit, from, place) : place - from);
}

/* Return the place with the score that is first in preorder of the slots. Where many have the score, the first
 * slots in preorder soon show one; where few have it, the places with the score are looked for. */
static int64_t first_in_preorder(const State *s, const int16_t *score, int16_t most, int64_t ties, const Slots *slots) {
    const Look look = slots->look;
    const int64_t count = slot_of(slots, look.again, 1);
    int64_t best = -1;
    int32_t best_rank = INT32_MAX;
    if (ties * ties > count)
        for (int64_t rank = 0;; rank++) {
            const int64_t slot = s->t->slot_at[rank];
            if (slot >= count) continue;
            if (score[best = place_of(slots, slot)] == most) return best;
        }
    for (int is_again = 0; is_again < 2; is_again++) {
        const int64_t to = is_again ? look.again : look.to;
        int64_t place = find_score(score, most, is_again ? 0 : look.from, to);
        for (; place < to; place = find_score(score, most, place + 1, to)) {
            const int32_t rank = s->t->preorder[slot_of(slots, place, is_again)];
            if (rank > best_rank) continue;
            best_rank = rank;
            best = place;
        }
    }
    return best;
}

/* Return the best node of a look where room alone decides; `fit` is NULL where all nodes have room. */
static int64_t best_by_room(const Problem *p, const State *s, const int16_t *score, const uint64_t *fit, Look look) {
    const int16_t one = most_between(score, look.from, look.to), other = most_between(score, 0, look.again);
    const int16_t most = one > other ? one : other;
    const int64_t first = count_score(score, most, look.from, look.to), ties = first + count_score(score, most, 0, look.again);
    if (ties == 1 || p->ties == FIRST_TIES)
        return s->everywhere[first ? find_score(score, most, look.from, look.to) : find_score(score, most, 0, look.again)];
    const Slots slots = {look, fit, fit ? count_between(fit, look.from, look.to) : look.to - look.from};
    return s->everywhere[first_in_preorder(s, score, most, ties, &slots)];
}

/* Return kube-scheduler's choice for a pod that it has not tried yet; -1 = none. */
static int64_t choose_by_kube(const Problem *p, State *s, int64_t activity, double now) {
    const int64_t class = s->t->of[activity].class, shape = s->t->of[activity].shape;
    if (is_kept_back(p, s, activity)) return -1;
    const uint64_t *fit = fitting(p, s, shape);
    if (s->fit_count[shape] == 0) return -1;
    const int16_t *score = room_scores(p, s, shape);
    const Look look = next_look(p, s, shape, fit);
    if (s->t->of[activity].image < 0 && !s->t->tells_apart[class] && p->ties != RANDOM_TIES)
        return best_by_room(p, s, score, s->fit_count[shape] == p->nodes ? NULL : fit, look);
    int64_t count = list_between(s, fit, look.from, look.to, s->sample);
    count += list_between(s, fit, 0, look.again, s->sample + count);
    for (int64_t i = 0; i < count; i++) s->total[i] = score[s->place_in_list[s->sample[i]]];
    return best_of_sample(p, s, activity, count, now);
}

/* Return its choice for a pod that fitted nowhere before, among the nodes that got room, in its list's order. */
static int64_t choose_by_kube_again(const Problem *p, State *s, int64_t activity, double now) {
    const int64_t count = list_fitting(p, s, activity, 0);
    for (int64_t i = 0; i < count; i++) {
        const int64_t node = s->sample[i], place = s->place_in_list[node];
        int64_t slot = i;
        for (; slot > 0 && s->place_in_list[s->sample[slot - 1]] > place; slot--) s->sample[slot] = s->sample[slot - 1];
        s->sample[slot] = node;
    }
    for (int64_t i = 0; i < count; i++) s->total[i] = room_score(p, s, s->t->of[activity].shape, s->sample[i]);
    return best_of_sample(p, s, activity, count, now);
}
