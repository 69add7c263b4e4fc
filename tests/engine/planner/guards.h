/* The kernel keeps all arrays of a state in one block; this puts a gap behind each that nobody may
 * touch, so that AddressSanitizer sees an array's end. Included before the kernel. */
#include <sanitizer/asan_interface.h>
#include <stddef.h>

enum { GUARD_BYTES = 64 };

static size_t guarded(char *array, size_t bytes) {
    size_t aligned = (bytes + 15) & ~(size_t)15;
    if (array) ASAN_POISON_MEMORY_REGION(array + bytes, aligned - bytes + GUARD_BYTES);
    return aligned + GUARD_BYTES;
}

/* Used where `memory` is the block, or NULL while bytes are counted, and `used` what is laid out. */
#define ALIGNED(bytes) guarded(memory ? memory + used : NULL, (size_t)(bytes))
