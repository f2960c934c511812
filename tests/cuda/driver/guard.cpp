/* Device memory that no kernel may touch: a program puts guards between its own pieces of an allocation, which
 * AddressSanitizer cannot tell apart. Found by its name, where there is a test GPU. */
#include <cuda.h>

#include "driver.h"
#include "host/sanitizers.h"

#if TEST_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

API void testGpuGuard(CUdeviceptr address, size_t bytes, int guarded);

void testGpuGuard(CUdeviceptr address, size_t bytes, int guarded) {
    void *memory = reinterpret_cast<void *>(address);
    if (guarded) {
        ASAN_POISON_MEMORY_REGION(memory, bytes);
    } else {
        ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    }
}
