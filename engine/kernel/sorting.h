/* Sorting activities by keys. */
#ifndef KFP_PLACEMENT_SORTING_H
#define KFP_PLACEMENT_SORTING_H

#include <stdint.h>
#include <string.h>

/* Whether one activity comes before another: of equal keys by place, if that is given. */
static inline int is_less(const double *key, const int32_t *place, int64_t one, int64_t other) {
    return key[one] < key[other] || (place && key[one] == key[other] && place[one] < place[other]);
}

/* Stable merge sort of indexes by key; what is in order already is left where it is. `spare` has room for
 * half of them. */
static void sort_by_key(const double *key, const int32_t *place, int64_t *items, int64_t *spare, int64_t count) {
    for (int64_t width = 1; width < count; width *= 2)
        for (int64_t low = 0; low + width < count; low += 2 * width) {
            int64_t *slot = items + low, *right = slot + width, *end = low + 2 * width < count ? right + width : items + count;
            if (!is_less(key, place, right[0], right[-1])) continue;
            memcpy(spare, slot, sizeof(int64_t) * (size_t)width);
            for (const int64_t *left = spare, *last = spare + width; left < last;)
                *slot++ = right < end && is_less(key, place, *right, *left) ? *right++ : *left++;
        }
}

#endif
