/* The kernel's arrays begin at a cache line somewhere in a block; this keeps what is behind each from
 * being touched, so that AddressSanitizer sees an array's end. Included before the kernel. */
#include <sanitizer/asan_interface.h>

enum { GUARD_BYTES = 64 };

#define GUARD(end) ASAN_POISON_MEMORY_REGION(end, GUARD_BYTES)
