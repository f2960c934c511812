/* Where an instruction's address points, checked: to shared memory, in which addresses count from 0, or
 * to memory of the host. */
#ifndef TEST_CUDA_PTX_ADDRESS_H
#define TEST_CUDA_PTX_ADDRESS_H

#include "instruction.h"

namespace ptx {

enum class Space {
    global,
    shared,
    parameter,   /* one by its name */
    in_parameter /* by an address, in those that the name stands for */
};

/* `bytes` at [slots[operand] + offset], aligned to as many bytes. */
template <Space SPACE>
unsigned char *address(Thread &thread, const Instruction &i, size_t operand, int64_t offset,
                       size_t bytes) {
    uint64_t *slot = &thread.slots[i.slots[operand]];
    if constexpr (SPACE == Space::parameter)
        return reinterpret_cast<unsigned char *>(slot) + offset; /* checked when decoded */
    const uint64_t at = *slot + static_cast<uint64_t>(offset);
    if constexpr (SPACE == Space::shared) {
        const uint32_t in_window = static_cast<uint32_t>(at);
        if (in_window % bytes) fault(thread, i, "a misaligned address in shared memory");
        if (in_window + uint64_t{bytes} > thread.shared_bytes)
            fault(thread, i, "an address beyond the block's shared memory");
        return thread.shared + in_window;
    }
    if constexpr (SPACE == Space::in_parameter) {
        const uint64_t begins = reinterpret_cast<uintptr_t>(thread.slots);
        const uint64_t size = sizeof *slot * thread.kernel.parsed.parameter_slots;
        if (at - begins > size - bytes) fault(thread, i, "an address beyond the parameters");
    }
    if (at % bytes) fault(thread, i, "a misaligned address");
    if (at < 4096) fault(thread, i, "a null address");
    return reinterpret_cast<unsigned char *>(at);
}

} // namespace ptx

#endif
