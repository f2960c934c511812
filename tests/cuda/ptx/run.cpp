#include "run.h"

namespace ptx {

host::Site site(const Thread &thread, const Instruction &instruction) {
    return {thread.kernel.file.c_str(), instruction.line, 0};
}

void fault(const Thread &thread, const Instruction &instruction, const char *why) {
    const auto &lines = thread.kernel.lines;
    const size_t line = static_cast<size_t>(instruction.line);
    const std::string text = line >= 1 && line <= lines.size() ? ": " + lines[line - 1] : "";
    host::kernel_fault((why + text).c_str(), site(thread, instruction));
}

void run(const DecodedKernel &kernel, void **parameters) {
    std::vector<uint64_t> slots = kernel.parsed.slots;
    for (const Special &special : kernel.parsed.specials) slots[special.slot] = special.value();
    for (size_t i = 0; i < kernel.parsed.parameters.size(); i++) {
        const Parameter &parameter = kernel.parsed.parameters[i];
        memcpy(&slots[parameter.slot], parameters[i], parameter.bytes);
    }
    for (const ParameterAddress &address : kernel.parsed.parameter_addresses)
        slots[address.slot] = reinterpret_cast<uintptr_t>(&slots[address.parameter]);
    const size_t shared_bytes = kernel.parsed.static_shared_bytes + host::dynamic_shared_bytes();
    Thread thread{kernel, slots.data(), kernel.code.data(), host::static_shared(), shared_bytes};
    while (thread.next) {
        const Instruction &i = *thread.next++;
        if (i.guarded && (slots[i.guard] & 1) == i.guard_negated) continue;
        i.execute(thread, i);
    }
}

} // namespace ptx
