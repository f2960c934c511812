/* Branches, barriers and the end of a thread. */
#include "visit.h"

namespace ptx {

namespace {

void branch(Thread &thread, const Instruction &i) {
    thread.next = &thread.kernel.code[static_cast<size_t>(i.immediate)];
}

void decode_bra(Decoder &d) {
    d.take("uni");
    const auto &operands = d.statement.operands;
    if (operands.size() != 1 || operands[0].kind != Operand::Kind::name) d.refuse("no label");
    const auto label = d.kernel.labels.find(operands[0].text);
    if (label == d.kernel.labels.end()) d.refuse("no label " + operands[0].text);
    d.result.immediate = static_cast<int64_t>(label->second);
    d.execute(branch);
}

void end_thread(Thread &thread, const Instruction &) {
    thread.next = nullptr;
}

void decode_ret(Decoder &d) {
    d.take("uni");
    d.values(0);
    d.execute(end_thread);
}

void trap(Thread &thread, const Instruction &i) {
    fault(thread, i, "a trap: the kernel refuses what it was given");
}

void decode_trap(Decoder &d) {
    d.values(0);
    d.execute(trap);
}

void block_barrier(Thread &thread, const Instruction &i) {
    host::barrier(site(thread, i));
}

void warp_barrier(Thread &thread, const Instruction &i) {
    host::warp_barrier(read<uint32_t>(thread, i.slots[0]), site(thread, i));
}

/* Of the block's sixteen barriers only number 0, which is __syncthreads(). */
void decode_bar(Decoder &d) {
    d.take("cta");
    d.values(1);
    if (d.take("warp")) {
        d.choose({"sync"});
        d.execute(warp_barrier);
        return;
    }
    d.choose({"sync"});
    if (d.kernel.slots[d.result.slots[0]] != 0) d.refuse("a barrier other than 0");
    d.execute(block_barrier);
}

void nothing(Thread &, const Instruction &) {
}

/* Fibers see each other's writes at once, in order. */
void decode_fence(Decoder &d) {
    d.values(0);
    d.ignore({"cta", "gl", "gpu", "sys", "sc", "acq_rel"});
    d.execute(nothing);
}

} // namespace

const Family control_opcodes = {
    {"bra", decode_bra}, {"ret", decode_ret},      {"exit", decode_ret},    {"trap", decode_trap},
    {"bar", decode_bar}, {"membar", decode_fence}, {"fence", decode_fence},
};

} // namespace ptx
