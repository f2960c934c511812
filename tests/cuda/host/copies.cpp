/* cp.async. A copy happens when it is waited for, which is the last moment the hardware may choose, or at
 * once: a kernel that is right gives the same with both. */
#include <cstdint>
#include <cstring>

#include "block.h"
#include "race.h"

namespace host {

static constexpr size_t copy_bytes = 16;

static void perform(const Copy &copy) {
    if (copy.valid)
        memcpy(copy.shared, copy.global, copy_bytes);
    else
        memset(copy.shared, 0, copy_bytes);
}

static bool aligned(const void *pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % copy_bytes == 0;
}

/* A fault of AddressSanitizer belongs here, where the copy is issued, rather than to the wait. */
static void touch(const volatile void *memory) {
    const volatile char *byte = static_cast<const volatile char *>(memory);
    (void)byte[0];
    (void)byte[copy_bytes - 1];
}

void copy_async16(void *shared, const void *global, bool valid, Site site) {
    if (!aligned(shared) || (valid && !aligned(global)))
        kernel_fault("cp.async: an address is not aligned to 16 bytes", site);
    need_shared(shared, copy_bytes, site);
    const void *code = __builtin_return_address(0);
    touch(shared);
    race_access(shared, copy_bytes, Access::write, code);
    if (valid) {
        touch(global);
        race_access(global, copy_bytes, Access::read, code);
    }
    Thread *thread = block.current;
    Copy copy = {shared, global, valid, thread->copy_group};
    if (settings().eager_copies)
        perform(copy);
    else
        thread->copies.push_back(copy);
}

void copy_async_commit() {
    block.current->copy_group++;
}

void copy_async_wait(int pending) {
    Thread *thread = block.current;
    std::vector<Copy> &copies = thread->copies;
    size_t arrived = 0;
    for (; arrived < copies.size(); arrived++) {
        const Copy &copy = copies[arrived];
        if (copy.group >= thread->copy_group - pending) break;
        perform(copy);
        race_access(copy.shared, copy_bytes, Access::write, __builtin_return_address(0));
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(arrived));
}

} // namespace host
