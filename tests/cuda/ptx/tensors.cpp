/* Tensor cores: mma, ldmatrix and cp.async in the forms that src/cuda/kernels/seam.h uses. */
#include "host/tensor_core.h"

#include "address.h"
#include "visit.h"

namespace ptx {

namespace {

/* slots: d of 4, a of 4, b of 2, c of 4 */
struct Fragments {
    uint32_t a[4], b[2];
    float d[4];

    Fragments(const Thread &thread, const Instruction &i) {
        for (unsigned r = 0; r < 4; r++) {
            a[r] = read<uint32_t>(thread, i.slots[4 + r]);
            d[r] = read<float>(thread, i.slots[10 + r]);
        }
        for (unsigned r = 0; r < 2; r++) b[r] = read<uint32_t>(thread, i.slots[8 + r]);
    }

    void write_result(Thread &thread, const Instruction &i) const {
        for (unsigned r = 0; r < 4; r++) write<float>(thread, i.slots[r], d[r]);
    }
};

template <void (*MMA)(float *, const uint32_t *, const uint32_t *, host::Site)>
void multiply(Thread &thread, const Instruction &i) {
    Fragments fragments(thread, i);
    MMA(fragments.d, fragments.a, fragments.b, site(thread, i));
    fragments.write_result(thread, i);
}

/* then: the scales of a, two selectors, the scales of b, two selectors */
template <void (*MMA)(float *, const uint32_t *, const uint32_t *, uint32_t, uint32_t, host::Site)>
void multiply_scaled(Thread &thread, const Instruction &i) {
    for (unsigned selector : {15, 16, 18, 19})
        if (read<uint16_t>(thread, i.slots[selector]) != 0)
            fault(thread, i, "a selector of scales other than 0");
    Fragments fragments(thread, i);
    MMA(fragments.d, fragments.a, fragments.b, read<uint32_t>(thread, i.slots[14]),
        read<uint32_t>(thread, i.slots[17]), site(thread, i));
    fragments.write_result(thread, i);
}

void decode_mma(Decoder &d) {
    if (d.take("block_scale")) {
        d.operands({4, 4, 2, 4, 1, 2, 1, 2});
        if (d.take_all("sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.scale_vec::1X"
                       ".f32.e4m3.e4m3.f32.ue8m0"))
            d.execute(multiply_scaled<host::mma_mxfp8>);
        else if (d.take_all("sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.scale_vec::4X"
                            ".f32.e2m1.e2m1.f32.ue4m3"))
            d.execute(multiply_scaled<host::mma_nvfp4>);
        else
            d.refuse("an unknown form of mma");
        return;
    }
    d.operands({4, 4, 2, 4});
    if (d.take_all("sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"))
        d.execute(multiply<host::mma_bf16>);
    else if (d.take_all("sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"))
        d.execute(multiply<host::mma_e4m3>);
    else
        d.refuse("an unknown form of mma");
}

template <bool TRANSPOSED> void load_matrices(Thread &thread, const Instruction &i) {
    uint32_t r[4];
    const void *row = address<Space::shared>(thread, i, 4, i.immediate, 16);
    host::load_matrix_x4(r, row, TRANSPOSED, site(thread, i));
    for (unsigned k = 0; k < 4; k++) write<uint32_t>(thread, i.slots[k], r[k]);
}

void decode_ldmatrix(Decoder &d) {
    d.operands({4, 1});
    d.result.immediate = d.statement.operands[1].offset;
    const bool transposed = d.take("trans");
    if (!d.take_all("sync.aligned.m8n8.x4.shared.b16")) d.refuse("an unknown form of ldmatrix");
    d.execute(transposed ? load_matrices<true> : load_matrices<false>);
}

/* slots: address in shared memory, in global memory, 16, the bytes to copy of these; the rest is zero. */
void copy_async(Thread &thread, const Instruction &i) {
    const uint32_t bytes = read<uint32_t>(thread, i.slots[3]);
    if (bytes != 0 && bytes != 16) fault(thread, i, "cp.async of a part");
    void *to = address<Space::shared>(thread, i, 0, i.immediate, 16);
    const void *from = reinterpret_cast<const void *>(thread.slots[i.slots[1]]);
    host::copy_async16(to, from, bytes == 16, site(thread, i));
}

void commit(Thread &, const Instruction &) {
    host::copy_async_commit();
}

void wait(Thread &thread, const Instruction &i) {
    host::copy_async_wait(read<int>(thread, i.slots[0]));
}

void decode_cp(Decoder &d) {
    d.choose({"async"});
    if (d.take("commit_group")) {
        d.values(0);
        d.execute(commit);
    } else if (d.take("wait_group")) {
        d.values(1);
        d.execute(wait);
    } else {
        d.operands({1, 1, 1, 1});
        const auto &operands = d.statement.operands;
        d.result.immediate = operands[0].offset;
        if (operands[1].offset != 0 || d.kernel.slots[d.result.slots[2]] != 16 ||
            !d.take_all("cg.shared.global"))
            d.refuse("an unknown form of cp.async");
        d.execute(copy_async);
    }
}

} // namespace

const Family tensor_opcodes = {
    {"mma", decode_mma}, {"ldmatrix", decode_ldmatrix}, {"cp", decode_cp}};

} // namespace ptx
