/* Moves, and operations on bits. */
#include <algorithm>

#include "visit.h"

namespace ptx {

namespace {

/* --- mov, with {a, b} on either side --- */

template <class T> void move(Thread &thread, const Instruction &i) {
    write<T>(thread, i.slots[0], read<T>(thread, i.slots[1]));
}

/* immediate: parts of a vector, each sizeof(T) bytes wide. */
template <class T> void join(Thread &thread, const Instruction &i) {
    uint64_t whole = 0;
    for (int64_t part = i.immediate; part-- > 0;) {
        if constexpr (sizeof(T) < 8) whole <<= 8 * sizeof(T);
        whole |= read<T>(thread, i.slots[1 + part]);
    }
    write<uint64_t>(thread, i.slots[0], whole);
}

template <class T> void split(Thread &thread, const Instruction &i) {
    const uint64_t whole = thread.slots[i.slots[i.immediate]];
    for (int64_t part = 0; part < i.immediate; part++)
        write<T>(thread, i.slots[part], static_cast<T>(whole >> 8 * sizeof(T) * part));
}

void decode_mov(Decoder &d) {
    const Type type = d.type();
    const auto &operands = d.statement.operands;
    if (operands.size() != 2) d.refuse("another number of operands is expected");
    const size_t results = operands[0].slots.size(), from = operands[1].slots.size();
    d.operands({results, from});
    const size_t parts = std::max(results, from);
    if (parts == 1) {
        d.execute(visit_widths(
            type, [](auto tag) -> Execute { return move<typename decltype(tag)::Of>; }));
        return;
    }
    if (std::min(results, from) != 1 || bytes_of(type) % parts)
        d.refuse("these vectors do not go together");
    d.result.immediate = static_cast<int64_t>(parts);
    switch (bytes_of(type) / parts) {
    case 1:
        d.execute(from > 1 ? join<uint8_t> : split<uint8_t>);
        break;
    case 2:
        d.execute(from > 1 ? join<uint16_t> : split<uint16_t>);
        break;
    default:
        d.execute(from > 1 ? join<uint32_t> : split<uint32_t>);
    }
}

/* --- logic --- */

struct And {
    uint64_t operator()(uint64_t a, uint64_t b) const {
        return a & b;
    }
};

struct Or {
    uint64_t operator()(uint64_t a, uint64_t b) const {
        return a | b;
    }
};

struct Xor {
    uint64_t operator()(uint64_t a, uint64_t b) const {
        return a ^ b;
    }
};

struct Not {
    uint64_t operator()(uint64_t a) const {
        return ~a;
    }
};

template <class Op> void decode_logic(Decoder &d) {
    d.values(3);
    d.execute(visit_widths(
        d.type(), [](auto tag) -> Execute { return binary<typename decltype(tag)::Of, Op>; }));
}

/* A predicate is its lowest bit. */
void decode_not(Decoder &d) {
    d.values(2);
    d.execute(visit_widths(
        d.type(), [](auto tag) -> Execute { return unary<typename decltype(tag)::Of, Not>; }));
}

/* Bit abc of the table is the result where a, b and c have these bits. */
void look_up(Thread &thread, const Instruction &i) {
    const uint32_t table = read<uint32_t>(thread, i.slots[4]);
    uint32_t result = 0;
    for (uint32_t entry = 0; entry < 8; entry++) {
        if (!(table >> entry & 1)) continue;
        uint32_t where = ~0u;
        for (uint32_t k = 0; k < 3; k++) {
            const uint32_t operand = read<uint32_t>(thread, i.slots[1 + k]);
            where &= entry >> (2 - k) & 1 ? operand : ~operand;
        }
        result |= where;
    }
    write<uint32_t>(thread, i.slots[0], result);
}

void decode_lop3(Decoder &d) {
    d.values(5);
    d.choose({"b32"});
    d.execute(look_up);
}

/* --- shifts: by any number of bits, of which more than the width count as the width --- */

template <class T> void shift_left(Thread &thread, const Instruction &i) {
    const uint32_t count = read<uint32_t>(thread, i.slots[2]);
    const uint64_t value = read<T>(thread, i.slots[1]);
    write<T>(thread, i.slots[0], count < 8 * sizeof(T) ? static_cast<T>(value << count) : T{0});
}

template <class T> void shift_right(Thread &thread, const Instruction &i) {
    const uint32_t count = read<uint32_t>(thread, i.slots[2]);
    const T value = read<T>(thread, i.slots[1]);
    const T all_out = static_cast<T>(std::is_signed_v<T> && value < 0 ? -1 : 0);
    write<T>(thread, i.slots[0], count < 8 * sizeof(T) ? static_cast<T>(value >> count) : all_out);
}

void decode_shl(Decoder &d) {
    d.values(3);
    d.execute(visit_widths(
        d.type(), [](auto tag) -> Execute { return shift_left<typename decltype(tag)::Of>; }));
}

void decode_shr(Decoder &d) {
    d.values(3);
    const Type type = d.type();
    const Execute with_sign = visit_integers(
        type, [](auto tag) -> Execute { return shift_right<typename decltype(tag)::Of>; });
    d.execute(with_sign ? with_sign : visit_widths(type, [](auto tag) -> Execute {
        return shift_right<typename decltype(tag)::Of>;
    }));
}

/* The two registers high:low shifted, of which one half is the result. */
template <bool LEFT, bool WRAP> void funnel(Thread &thread, const Instruction &i) {
    const uint64_t low = read<uint32_t>(thread, i.slots[1]);
    const uint64_t high = read<uint32_t>(thread, i.slots[2]);
    const uint32_t count = read<uint32_t>(thread, i.slots[3]);
    const uint32_t by = WRAP ? count & 31 : std::min(count, 32u);
    const uint64_t both = high << 32 | low;
    write<uint32_t>(thread, i.slots[0],
                    static_cast<uint32_t>(LEFT ? both << by >> 32 : both >> by));
}

void decode_shf(Decoder &d) {
    d.values(4);
    const bool left = d.choose({"l", "r"}) == 0, wrap = d.choose({"wrap", "clamp"}) == 0;
    d.choose({"b32"});
    d.execute(left   ? wrap ? funnel<true, true> : funnel<true, false>
                : wrap ? funnel<false, true>
                     : funnel<false, false>);
}

/* --- fields --- */

uint64_t low_bits(unsigned count) {
    return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/* Beyond the register a signed field continues with the register's sign. */
template <class T> void extract_field(Thread &thread, const Instruction &i) {
    const unsigned width = 8 * sizeof(T);
    const T value = read<T>(thread, i.slots[1]);
    const unsigned position = read<uint8_t>(thread, i.slots[2]);
    const unsigned length = read<uint8_t>(thread, i.slots[3]);
    const bool is_signed = std::is_signed_v<T>;
    const unsigned top = std::min(position + length - 1, width - 1);
    const bool negative = is_signed && length > 0 && (static_cast<uint64_t>(value) >> top & 1);
    const uint64_t shifted =
        position < width ? (static_cast<uint64_t>(value) & low_bits(width)) >> position : 0;
    const unsigned kept = position < width ? std::min(length, width - position) : 0;
    const uint64_t field = shifted & low_bits(kept);
    write<T>(thread, i.slots[0], static_cast<T>(negative ? field | ~low_bits(kept) : field));
}

void decode_bfe(Decoder &d) {
    d.values(4);
    const Type type = d.type();
    if (bytes_of(type) < 4) d.refuse("not for this type");
    d.execute(visit_integers(
        type, [](auto tag) -> Execute { return extract_field<typename decltype(tag)::Of>; }));
}

template <class T> void insert_field(Thread &thread, const Instruction &i) {
    const uint64_t field = read<T>(thread, i.slots[1]), into = read<T>(thread, i.slots[2]);
    const unsigned position = read<uint8_t>(thread, i.slots[3]);
    const unsigned length = read<uint8_t>(thread, i.slots[4]);
    const uint64_t mask = position < 8 * sizeof(T) ? low_bits(length) << position : 0;
    const uint64_t placed = position < 8 * sizeof(T) ? field << position : 0;
    write<T>(thread, i.slots[0], static_cast<T>((into & ~mask) | (placed & mask)));
}

void decode_bfi(Decoder &d) {
    d.values(5);
    d.execute(d.choose({"b32", "b64"}) == 0 ? insert_field<uint32_t> : insert_field<uint64_t>);
}

/* Each digit of the selector is the byte to take, of eight; its top bit spreads that byte's sign. */
void permute_bytes(Thread &thread, const Instruction &i) {
    const uint64_t bytes = static_cast<uint64_t>(read<uint32_t>(thread, i.slots[2])) << 32 |
                           read<uint32_t>(thread, i.slots[1]);
    const uint32_t selector = read<uint32_t>(thread, i.slots[3]);
    uint32_t result = 0;
    for (unsigned k = 0; k < 4; k++) {
        const uint32_t digit = selector >> 4 * k & 15;
        uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (digit & 7)) & 0xff;
        if (digit & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << 8 * k;
    }
    write<uint32_t>(thread, i.slots[0], result);
}

void decode_prmt(Decoder &d) {
    d.values(4);
    d.choose({"b32"});
    d.execute(permute_bytes);
}

/* --- counts --- */

template <class T> unsigned leading_zeros(T value) {
    unsigned count = 0;
    for (unsigned bit = 8 * sizeof(T); bit-- > 0 && !(value >> bit & 1);) count++;
    return count;
}

template <class T> void count_ones(Thread &thread, const Instruction &i) {
    const int ones = __builtin_popcountll(read<T>(thread, i.slots[1]));
    write<uint32_t>(thread, i.slots[0], static_cast<uint32_t>(ones));
}

template <class T> void count_leading_zeros(Thread &thread, const Instruction &i) {
    write<uint32_t>(thread, i.slots[0], leading_zeros(read<T>(thread, i.slots[1])));
}

template <class T> void reverse_bits(Thread &thread, const Instruction &i) {
    const T value = read<T>(thread, i.slots[1]);
    T reversed = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(T); bit++)
        reversed = static_cast<T>(reversed << 1 | (value >> bit & 1));
    write<T>(thread, i.slots[0], reversed);
}

/* The position of the highest bit that is not the sign; with `immediate` how far it is from the top. */
template <class T> void find_top_bit(Thread &thread, const Instruction &i) {
    typedef std::make_unsigned_t<T> Bits;
    const T value = read<T>(thread, i.slots[1]);
    const Bits bits = static_cast<Bits>(std::is_signed_v<T> && value < 0 ? ~value : value);
    const unsigned zeros = leading_zeros(bits), width = 8 * sizeof(T);
    const uint32_t found = i.immediate ? zeros : width - 1 - zeros;
    write<uint32_t>(thread, i.slots[0], zeros == width ? ~0u : found);
}

void decode_popc(Decoder &d) {
    d.values(2);
    d.execute(d.choose({"b32", "b64"}) == 0 ? count_ones<uint32_t> : count_ones<uint64_t>);
}

void decode_clz(Decoder &d) {
    d.values(2);
    d.execute(d.choose({"b32", "b64"}) == 0 ? count_leading_zeros<uint32_t>
                                            : count_leading_zeros<uint64_t>);
}

void decode_brev(Decoder &d) {
    d.values(2);
    d.execute(d.choose({"b32", "b64"}) == 0 ? reverse_bits<uint32_t> : reverse_bits<uint64_t>);
}

void decode_bfind(Decoder &d) {
    d.values(2);
    d.result.immediate = d.take("shiftamt");
    const Type type = d.type();
    if (bytes_of(type) < 4) d.refuse("not for this type");
    d.execute(visit_integers(
        type, [](auto tag) -> Execute { return find_top_bit<typename decltype(tag)::Of>; }));
}

} // namespace

const Family bit_opcodes = {
    {"mov", decode_mov},        {"and", decode_logic<And>}, {"or", decode_logic<Or>},
    {"xor", decode_logic<Xor>}, {"not", decode_not},        {"lop3", decode_lop3},
    {"shl", decode_shl},        {"shr", decode_shr},        {"shf", decode_shf},
    {"bfe", decode_bfe},        {"bfi", decode_bfi},        {"prmt", decode_prmt},
    {"popc", decode_popc},      {"clz", decode_clz},        {"brev", decode_brev},
    {"bfind", decode_bfind},
};

} // namespace ptx
