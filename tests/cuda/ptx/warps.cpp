/* What the lanes of a warp do with each other's registers. */
#include <algorithm>

#include "host/warp.h"
#include "visit.h"

namespace ptx {

namespace {

enum class From { up, down, butterfly, index };

/* slots: result, whether the source is in range, value, distance or lane, control, mask. The control has
 * the bits of the lane that a segment shares, from bit 8, and the last lane of a segment. */
template <From MODE> void shuffle(Thread &thread, const Instruction &i) {
    const int lane = static_cast<int>(host::lane());
    const int by = read<int>(thread, i.slots[3]) & 31, control = read<int>(thread, i.slots[4]);
    const int segment = control >> 8 & 31, first = lane & segment;
    const int last = first | (control & ~segment & 31);
    const int source = MODE == From::up          ? lane - by
                       : MODE == From::down      ? lane + by
                       : MODE == From::butterfly ? lane ^ by
                                                 : first | (by & ~segment);
    const bool in_range = MODE == From::up ? source >= last : source <= last;
    const uint32_t result =
        host::shuffle(read<uint32_t>(thread, i.slots[5]), read<uint32_t>(thread, i.slots[2]),
                      static_cast<unsigned>(in_range ? source : lane), site(thread, i));
    write<uint32_t>(thread, i.slots[1], in_range);
    write<uint32_t>(thread, i.slots[0], result);
}

/* Without a name for "in range" that goes where the result then overwrites it. */
void decode_shfl(Decoder &d) {
    d.choose({"sync"});
    d.choose({"b32"});
    const auto &operands = d.statement.operands;
    if (!operands.empty() && operands[0].slots.size() == 2) {
        d.operands({2, 1, 1, 1, 1});
    } else {
        d.operands({1, 1, 1, 1, 1});
        std::copy_backward(d.result.slots, d.result.slots + 5, d.result.slots + 6);
    }
    static const Execute modes[] = {shuffle<From::up>, shuffle<From::down>,
                                    shuffle<From::butterfly>, shuffle<From::index>};
    d.execute(modes[d.choose({"up", "down", "bfly", "idx"})]);
}

/* slots of the following: result, value, mask */

uint32_t ballot(Thread &thread, const Instruction &i, bool vote) {
    return host::ballot(read<uint32_t>(thread, i.slots[2]), vote, site(thread, i));
}

void vote_ballot(Thread &thread, const Instruction &i) {
    write<uint32_t>(thread, i.slots[0], ballot(thread, i, thread.slots[i.slots[1]] & 1));
}

void vote_any(Thread &thread, const Instruction &i) {
    write<uint32_t>(thread, i.slots[0], ballot(thread, i, thread.slots[i.slots[1]] & 1) != 0);
}

void vote_all(Thread &thread, const Instruction &i) {
    write<uint32_t>(thread, i.slots[0], ballot(thread, i, !(thread.slots[i.slots[1]] & 1)) == 0);
}

void decode_vote(Decoder &d) {
    d.values(3);
    d.choose({"sync"});
    if (d.take("ballot")) {
        d.choose({"b32"});
        d.execute(vote_ballot);
    } else {
        d.choose({"pred"});
        d.execute(d.choose({"any", "all"}) == 0 ? vote_any : vote_all);
    }
}

template <class T, class Operator> void reduce(Thread &thread, const Instruction &i) {
    write<T>(thread, i.slots[0],
             host::reduce<Operator>(read<uint32_t>(thread, i.slots[2]), read<T>(thread, i.slots[1]),
                                    site(thread, i)));
}

void decode_redux(Decoder &d) {
    d.values(3);
    d.choose({"sync"});
    const unsigned operation = d.choose({"add", "min", "max", "and", "or"});
    const bool with_sign = d.choose({"s32", "u32", "b32"}) == 0;
    static const Execute of_signed[] = {reduce<uint32_t, host::Add>, reduce<int32_t, host::Minimum>,
                                        reduce<int32_t, host::Maximum>};
    static const Execute of_unsigned[] = {
        reduce<uint32_t, host::Add>, reduce<uint32_t, host::Minimum>,
        reduce<uint32_t, host::Maximum>, reduce<uint32_t, host::And>, reduce<uint32_t, host::Or>};
    if (with_sign && operation > 2) d.refuse("not for this type");
    d.execute(with_sign ? of_signed[operation] : of_unsigned[operation]);
}

} // namespace

const Family warp_opcodes = {{"shfl", decode_shfl}, {"vote", decode_vote}, {"redux", decode_redux}};

} // namespace ptx
