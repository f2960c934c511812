#include "tensor_core.h"

#include <cstring>

#include "block.h"
#include "race.h"

namespace host {

/* The formats are decoded without a branch or a table, which keeps MSan exact for each element. */
static float float_from(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float decode_e4m3(uint32_t byte) {
    uint32_t nan = (byte & 0x7f) == 0x7f ? 0x7fc00000 : 0;
    float magnitude = float_from((byte & 0x7f) << 20) * 0x1p120f;
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    return float_from((bits | nan) ^ (byte & 0x80) << 24);
}

static float decode_e2m1(uint32_t nibble) {
    float magnitude = float_from((nibble & 7) << 22) * 0x1p126f;
    return nibble & 8 ? -magnitude : magnitude;
}

/* 2^(byte - 127); 255 is NaN. */
static double decode_ue8m0(uint32_t byte) {
    uint64_t bits =
        byte == 255 ? 0x7ff8000000000000 : static_cast<uint64_t>(byte + 1023 - 127) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double decode_ue4m3(uint32_t byte) {
    return static_cast<double>(decode_e4m3(byte & 0x7f));
}

static uint32_t byte_of(uint32_t word, unsigned i) {
    return word >> 8 * i & 0xff;
}

struct Bf16Format {
    typedef float Sum;
    static constexpr unsigned per_register = 2, per_scale = 0;
    static float element(uint32_t word, unsigned e) {
        return float_from(word >> 16 * e << 16);
    }
};

struct E4m3Format {
    typedef float Sum;
    static constexpr unsigned per_register = 4, per_scale = 0;
    static float element(uint32_t word, unsigned e) {
        return decode_e4m3(byte_of(word, e));
    }
};

struct Mxfp8Format : E4m3Format {
    typedef double Sum;
    static constexpr unsigned per_scale = 32;
    static double scale(uint32_t byte) {
        return decode_ue8m0(byte);
    }
};

struct Nvfp4Format {
    typedef double Sum;
    static constexpr unsigned per_register = 8, per_scale = 16;
    static float element(uint32_t word, unsigned e) {
        return decode_e2m1(word >> 4 * e & 0xf);
    }
    static double scale(uint32_t byte) {
        return decode_ue4m3(byte);
    }
};

/* A lane's part in a multiplication. */
struct Fragments {
    float *d;
    const uint32_t *a, *b;
    uint32_t scale_a, scale_b;
};

template <class Format> struct Operands {
    static constexpr unsigned depth = 8 * Format::per_register;
    typename Format::Sum a[16][depth], b[depth][8];
};

template <class Format> static void gather(Operands<Format> &operands, Fragments *const *lanes) {
    constexpr unsigned per = Format::per_register;
    for (unsigned l = 0; l < warp_size; l++) {
        for (unsigned r = 0; r < 4; r++)
            for (unsigned e = 0; e < per; e++) {
                Place place = place_a(l, r, e, per);
                operands.a[place.row][place.column] = Format::element(lanes[l]->a[r], e);
            }
        for (unsigned r = 0; r < 2; r++)
            for (unsigned e = 0; e < per; e++) {
                Place place = place_b(l, r, e, per);
                operands.b[place.row][place.column] = Format::element(lanes[l]->b[r], e);
            }
    }
}

template <class Format>
static void apply_scales(Operands<Format> &operands, Fragments *const *lanes) {
    for (unsigned k = 0; k < operands.depth; k++) {
        unsigned byte = k / Format::per_scale;
        for (unsigned row = 0; row < 16; row++)
            operands.a[row][k] *= Format::scale(byte_of(lanes[scale_lane_a(row)]->scale_a, byte));
        for (unsigned column = 0; column < 8; column++)
            operands.b[k][column] *=
                Format::scale(byte_of(lanes[scale_lane_b(column)]->scale_b, byte));
    }
}

template <class Format> static void multiply(void **arguments) {
    Fragments *const *lanes = reinterpret_cast<Fragments *const *>(arguments);
    Operands<Format> operands;
    gather(operands, lanes);
    if constexpr (Format::per_scale != 0) apply_scales(operands, lanes);
    typename Format::Sum sums[16][8] = {};
    for (unsigned row = 0; row < 16; row++)
        for (unsigned k = 0; k < operands.depth; k++)
            for (unsigned column = 0; column < 8; column++)
                sums[row][column] += operands.a[row][k] * operands.b[k][column];
    for (unsigned l = 0; l < warp_size; l++)
        for (unsigned r = 0; r < 4; r++) {
            Place place = place_d(l, r);
            lanes[l]->d[r] += static_cast<float>(sums[place.row][place.column]);
        }
}

template <class Format> static void mma(Fragments fragments, Site site) {
    need_full_warp(site);
    warp_collective(full_warp, multiply<Format>, &fragments, site);
}

void mma_bf16(float *d, const uint32_t *a, const uint32_t *b, Site site) {
    mma<Bf16Format>({d, a, b, 0, 0}, site);
}

void mma_e4m3(float *d, const uint32_t *a, const uint32_t *b, Site site) {
    mma<E4m3Format>({d, a, b, 0, 0}, site);
}

void mma_mxfp8(float *d, const uint32_t *a, const uint32_t *b, uint32_t scale_a, uint32_t scale_b,
               Site site) {
    mma<Mxfp8Format>({d, a, b, scale_a, scale_b}, site);
}

void mma_nvfp4(float *d, const uint32_t *a, const uint32_t *b, uint32_t scale_a, uint32_t scale_b,
               Site site) {
    mma<Nvfp4Format>({d, a, b, scale_a, scale_b}, site);
}

struct Load {
    const uint16_t *row;
    uint32_t *r;
};

template <bool transposed> static void load(void **lanes) {
    for (unsigned matrix = 0; matrix < 4; matrix++)
        for (unsigned l = 0; l < warp_size; l++) {
            uint32_t pair = 0;
            for (unsigned e = 0; e < 2; e++) {
                Place place = place_loaded(l, e);
                if (transposed) place = {place.column, place.row};
                const Load *from = static_cast<const Load *>(lanes[8 * matrix + place.row]);
                pair |= static_cast<uint32_t>(from->row[place.column]) << 16 * e;
            }
            static_cast<Load *>(lanes[l])->r[matrix] = pair;
        }
}

void load_matrix_x4(uint32_t *r, const void *row, bool transposed, Site site) {
    need_full_warp(site);
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
        kernel_fault("ldmatrix: a row's address is not aligned to 16 bytes", site);
    need_shared(row, 16, site);
    race_access(row, 16, Access::read, __builtin_return_address(0));
    Load argument = {static_cast<const uint16_t *>(row), r};
    warp_collective(full_warp, transposed ? load<true> : load<false>, &argument, site);
}

} // namespace host
