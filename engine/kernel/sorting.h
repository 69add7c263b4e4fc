/* Sorting activities by keys. */
#pragma once

#include <stdint.h>
#include <string.h>

/* Return a number as bits in the order of the numbers: they are quicker to compare, and pairs of them
 * do not need a branch, which could not be predicted. Zero has one sign. */
static inline uint64_t ordinal_of(double number) {
    uint64_t bits;
    number += 0.0;
    memcpy(&bits, &number, sizeof(bits));
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static inline double number_of(uint64_t ordinal) {
    double number;
    ordinal = ordinal >> 63 ? ordinal & ~((uint64_t)1 << 63) : ~ordinal;
    memcpy(&number, &ordinal, sizeof(number));
    return number;
}

/* An activity with its sort keys. */
typedef struct {
    uint64_t key;
    int32_t place, activity;
} Ranked;

/* Of equal keys the lower place comes first. */
static inline int is_less(Ranked one, Ranked other) { return one.key < other.key + (one.place < other.place); }

/* Sort by stable merging; parts that are in order stay where they are. Behind `items` is room for half as many. */
static void sort_ranked(Ranked *items, int64_t count) {
    Ranked *spare = items + count;
    for (int64_t width = 1; width < count; width *= 2)
        for (int64_t low = 0; low + width < count; low += 2 * width) {
            Ranked *slot = items + low, *right = slot + width, *end = low + 2 * width < count ? right + width : spare;
            if (!is_less(right[0], right[-1])) continue;
            memcpy(spare, slot, sizeof(Ranked) * (size_t)width);
            for (const Ranked *left = spare, *last = spare + width; left < last;)
                *slot++ = right < end && is_less(*right, *left) ? *right++ : *left++;
        }
}

/* Sort activities by key and then by place, if that is given; `scratch` has room for twice as many. */
static void sort_by_key(const double *key, const int32_t *place, int32_t *activities, Ranked *scratch, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        scratch[i] = (Ranked){ordinal_of(key[activities[i]]), place ? place[activities[i]] : 0, activities[i]};
    sort_ranked(scratch, count);
    for (int64_t i = 0; i < count; i++) activities[i] = scratch[i].activity;
}
