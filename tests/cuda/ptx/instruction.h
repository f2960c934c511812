/* Decoded kernels: each instruction is a C++ function and the slots that it works on. */
#ifndef TEST_CUDA_PTX_INSTRUCTION_H
#define TEST_CUDA_PTX_INSTRUCTION_H

#include <cstring>
#include <type_traits>

#include "host/runtime.h"
#include "parse.h"

namespace ptx {

struct Thread;
struct Instruction;

typedef void (*Execute)(Thread &thread, const Instruction &instruction);

struct Instruction {
    Execute execute;
    int64_t immediate; /* what the function wants: an offset, a count, a target */
    int line;
    bool guarded, guard_negated;
    Slot guard;
    Slot slots[20]; /* results first, then operands, in the order of the text */
};

struct DecodedKernel {
    std::string file;
    ParsedKernel parsed;
    std::vector<std::string> lines; /* of the text, for reports */
    std::vector<Instruction> code;
};

/* A thread of a block, on its fiber. */
struct Thread {
    const DecodedKernel &kernel;
    uint64_t *slots;
    const Instruction *next; /* null when it has ended */
    unsigned char *shared;
    size_t shared_bytes;
};

/* Where an instruction stands in its file, for the runtime's reports. */
host::Site site(const Thread &thread, const Instruction &instruction);

/* Aborts with a report that shows the instruction. */
[[noreturn]] void fault(const Thread &thread, const Instruction &instruction, const char *why);

template <class T> T read(const Thread &thread, Slot slot) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "one slot");
    T value;
    memcpy(&value, &thread.slots[slot], sizeof value);
    return value;
}

/* A signed value is extended to the slot: a load may have a register wider than what it reads. */
template <class T> void write(Thread &thread, Slot slot, T value) {
    uint64_t bits = 0;
    if constexpr (std::is_integral_v<T>)
        bits = static_cast<uint64_t>(value);
    else
        memcpy(&bits, &value, sizeof value);
    thread.slots[slot] = bits;
}

} // namespace ptx

#endif
