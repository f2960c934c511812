#include "cases.h"

#include <cmath>
#include <cstring>

/* The bits of a float and of a double. */
static uint64_t f(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t d(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static const uint64_t minus_one = ~uint64_t{0};
static const uint64_t tiny = 1; /* the least float above 0, which is denormal */
static const uint64_t not_a_number = 0x7fc00000;

static uint64_t negative(int64_t x) {
    return static_cast<uint64_t>(x);
}

const std::vector<Case> cases = {
    /* integers */
    {"add.s32 %x9, %x0, %x1;", {0x7fffffff, 1}, 0x80000000, 32},
    {"add.s64 %x9, %x0, -1;", {0}, minus_one, 64},
    {"add.s16 %x9, %x0, %x1;", {0xffff, 2}, 1, 16},
    {"sub.u32 %x9, %x0, %x1;", {1, 2}, 0xffffffff, 32},
    {"mul.lo.s32 %x9, %x0, %x1;", {0x10001, 0x10001}, 0x20001, 32},
    {"mul.lo.s64 %x9, %x0, %x1;", {negative(-3), 5}, negative(-15), 64},
    {"mul.hi.u32 %x9, %x0, %x1;", {0xffffffff, 0xffffffff}, 0xfffffffe, 32},
    {"mul.hi.s32 %x9, %x0, %x1;", {negative(-1), 5}, 0xffffffff, 32},
    {"mul.hi.u64 %x9, %x0, %x1;", {minus_one, minus_one}, minus_one - 1, 64},
    {"mul.wide.s32 %x9, %x0, %x1;", {0xfffffffe, 3}, negative(-6), 64},
    {"mul.wide.u32 %x9, %x0, 8;", {0xffffffff}, 0x7fffffff8, 64},
    {"mul.wide.u16 %x9, %x0, %x1;", {0xffff, 0xffff}, 0xfffe0001, 32},
    {"mad.lo.s32 %x9, %x0, %x1, %x2;", {7, 6, negative(-2)}, 40, 32},
    {"mad.wide.u32 %x9, %x0, %x1, %x2;", {0xffffffff, 2, 1}, 0x1ffffffff, 64},
    {"div.s32 %x9, %x0, %x1;", {negative(-7), 2}, negative(-3), 32},
    {"div.u32 %x9, %x0, %x1;", {0xfffffff9, 2}, 0x7ffffffc, 32},
    {"rem.s32 %x9, %x0, %x1;", {negative(-7), 2}, 0xffffffff, 32},
    {"rem.u64 %x9, %x0, %x1;", {minus_one, 10}, 5, 64},
    {"min.s32 %x9, %x0, %x1;", {negative(-1), 1}, 0xffffffff, 32},
    {"min.u32 %x9, %x0, %x1;", {negative(-1), 1}, 1, 32},
    {"max.s64 %x9, %x0, %x1;", {negative(-1), 1}, 1, 64},
    {"neg.s32 %x9, %x0;", {5}, 0xfffffffb, 32},
    {"abs.s32 %x9, %x0;", {negative(-5)}, 5, 32},

    /* floats */
    {"add.f32 %x9, %x0, %x1;", {f(1), f(0x1p-24f)}, f(1), 32},
    {"add.ftz.f32 %x9, %x0, %x1;", {tiny, tiny}, 0, 32},
    {"add.f32 %x9, %x0, %x1;", {tiny, tiny}, 2, 32},
    {"sub.rn.f64 %x9, %x0, %x1;", {d(1), d(0.25)}, d(0.75), 64},
    {"mul.f32 %x9, %x0, 0f40400000;", {f(1.5f)}, f(4.5f), 32},
    {"mul.f64 %x9, %x0, 0d4008000000000000;", {d(1.5)}, d(4.5), 64},
    {"fma.rn.f32 %x9, %x0, %x1, %x2;",
     {f(1 + 0x1p-23f), f(1 + 0x1p-23f), f(-1)},
     f(0x1p-22f + 0x1p-46f),
     32},
    {"fma.rm.f32 %x9, %x0, %x1, %x2;", {f(0.999f), f(252), f(12582913)}, f(12582913 + 251), 32},
    {"fma.rn.f64 %x9, %x0, %x1, %x2;", {d(3), d(4), d(5)}, d(17), 64},
    {"div.rn.f32 %x9, %x0, %x1;", {f(1), f(3)}, f(1.0f / 3), 32},
    {"div.rn.f64 %x9, %x0, %x1;", {d(1), d(3)}, d(1.0 / 3), 64},
    {"div.approx.ftz.f32 %x9, %x0, %x1;", {f(6), f(3)}, f(2), 32},
    {"min.f32 %x9, %x0, %x1;", {not_a_number, f(2)}, f(2), 32},
    {"max.f32 %x9, %x0, %x1;", {f(-0.0f), f(0.0f)}, f(0.0f), 32},
    {"min.f32 %x9, %x0, %x1;", {f(0.0f), f(-0.0f)}, f(-0.0f), 32},
    {"max.NaN.f32 %x9, %x0, %x1;", {not_a_number, f(2)}, not_a_number, 32},
    {"neg.f32 %x9, %x0;", {f(0)}, f(-0.0f), 32},
    {"abs.f64 %x9, %x0;", {d(-2)}, d(2), 64},
    {"copysign.f32 %x9, %x0, %x1;", {f(-1), f(3)}, f(-3), 32},
    {"sqrt.rn.f32 %x9, %x0;", {f(2)}, f(std::sqrt(2.0f)), 32},
    {"sqrt.rn.f64 %x9, %x0;", {d(2)}, d(std::sqrt(2.0)), 64},
    {"rcp.rn.f32 %x9, %x0;", {f(3)}, f(1.0f / 3), 32},
    {"rsqrt.approx.f32 %x9, %x0;", {f(16)}, f(0.25f), 32},
    {"ex2.approx.ftz.f32 %x9, %x0;", {f(-127)}, 0, 32},
    {"ex2.approx.f32 %x9, %x0;", {f(10)}, f(1024), 32},
    {"lg2.approx.f32 %x9, %x0;", {f(8)}, f(3), 32},
    {"cos.approx.f32 %x9, %x0;", {f(0)}, f(1), 32},
    {"sin.approx.f32 %x9, %x0;", {f(0)}, f(0), 32},

    /* bf16: 1 is 0x3f80, 3 is 0x4040 */
    {"add.bf16 %x9, %x0, %x1;", {0x3f80, 0x3b80}, 0x3f80, 16}, /* a tie, to even */
    {"mul.rn.bf16 %x9, %x0, %x1;", {0x4040, 0x3f80}, 0x4040, 16},
    {"fma.rn.bf16x2 %x9, %x0, %x1, %x2;", {0x3f804040, 0x40403f80, 0x3f803f80}, 0x40804080, 32},
    {"max.bf16x2 %x9, %x0, %x1;", {0x3f804040, 0x40403f80}, 0x40404040, 32},
    {"neg.bf16 %x9, %x0;", {0x3f80}, 0xbf80, 16},

    /* bits */
    {"mov.b64 {%x3, %x4}, %x0; mov.b64 %x9, {%x4, %x3};",
     {0x0123456789abcdef},
     0x89abcdef01234567,
     64},
    {"mov.b32 {%x3, %x4}, %x0; mov.b32 %x9, {%x4, %x3};", {0x01234567}, 0x45670123, 32},
    {"{ .reg .b16 %x3; mov.b16 %x3, 7; mov.u16 %x9, %x3; }", {0}, 7, 16},
    {"and.b32 %x9, %x0, %x1;", {0xff00ff00, 0xffff0000}, 0xff000000, 32},
    {"or.b64 %x9, %x0, %x1;", {1, 2}, 3, 64},
    {"xor.b16 %x9, %x0, -1;", {0x0f0f}, 0xf0f0, 16},
    {"not.b32 %x9, %x0;", {0}, 0xffffffff, 32},
    {"lop3.b32 %x9, %x0, %x1, %x2, 202;", {0xf0, 0xcc, 0xaa}, 202, 32}, /* a ? b : c */
    {"shl.b32 %x9, %x0, %x1;", {3, 31}, 0x80000000, 32},
    {"shl.b32 %x9, %x0, %x1;", {3, 32}, 0, 32},
    {"shr.u32 %x9, %x0, %x1;", {0x80000000, 31}, 1, 32},
    {"shr.s32 %x9, %x0, %x1;", {0x80000000, 99}, 0xffffffff, 32},
    {"shr.u64 %x9, %x0, 60;", {minus_one}, 15, 64},
    {"shf.l.wrap.b32 %x9, %x0, %x1, %x2;", {0x80000000, 1, 33}, 3, 32},
    {"shf.r.wrap.b32 %x9, %x0, %x1, %x2;", {0x80000000, 1, 63}, 3, 32},
    {"shf.r.clamp.b32 %x9, %x0, %x1, %x2;", {5, 7, 40}, 7, 32},
    {"bfe.u32 %x9, %x0, 8, 8;", {0x123456}, 0x34, 32},
    {"bfe.s32 %x9, %x0, 4, 4;", {0xf0}, 0xffffffff, 32},
    {"bfe.s32 %x9, %x0, 28, 8;", {0x80000000}, 0xfffffff8, 32},
    {"bfe.u64 %x9, %x0, 60, 8;", {minus_one}, 15, 64},
    {"bfi.b32 %x9, %x0, %x1, 8, 4;", {0x5, 0xffffffff}, 0xfffff5ff, 32},
    {"prmt.b32 %x9, %x0, %x1, 0x7531;", {0x33221100, 0x77665544}, 0x77553311, 32},
    {"prmt.b32 %x9, %x0, %x1, 0x000b;", {0x80000000, 0}, 0xff, 8},
    {"popc.b32 %x9, %x0;", {0xf0f0}, 8, 32},
    {"popc.b64 %x9, %x0;", {minus_one}, 64, 32},
    {"clz.b32 %x9, %x0;", {1}, 31, 32},
    {"clz.b64 %x9, %x0;", {0}, 64, 32},
    {"brev.b32 %x9, %x0;", {1}, 0x80000000, 32},
    {"bfind.u32 %x9, %x0;", {0x100}, 8, 32},
    {"bfind.s32 %x9, %x0;", {minus_one}, 0xffffffff, 32},
    {"bfind.shiftamt.u32 %x9, %x0;", {0x100}, 23, 32},

    /* comparisons */
    {"setp.lt.s32 %p0, %x0, %x1; selp.b32 %x9, 1, 2, %p0;", {negative(-1), 0}, 1, 32},
    {"setp.lt.u32 %p0, %x0, %x1; selp.b32 %x9, 1, 2, %p0;", {negative(-1), 0}, 2, 32},
    {"setp.hi.u32 %p0|%p1, %x0, %x1; selp.b32 %x9, 1, 2, %p1;", {3, 2}, 2, 32},
    {"setp.eq.f32 %p0, %x0, %x0; selp.b32 %x9, 1, 2, %p0;", {not_a_number}, 2, 32},
    {"setp.neu.f32 %p0, %x0, %x0; selp.b32 %x9, 1, 2, %p0;", {not_a_number}, 1, 32},
    {"setp.ne.f32 %p0, %x0, %x0; selp.b32 %x9, 1, 2, %p0;", {not_a_number}, 2, 32},
    {"setp.leu.f32 %p0, %x0, %x1; selp.b32 %x9, 1, 2, %p0;", {not_a_number, 0}, 1, 32},
    {"setp.ge.f32 %p0, %x0, %x1; selp.b32 %x9, 1, 2, %p0;", {f(1), f(1)}, 1, 32},
    {"setp.nan.f64 %p0, %x0, %x1; selp.b32 %x9, 1, 2, %p0;", {d(NAN), d(1)}, 1, 32},
    {"setp.gt.ftz.f32 %p0, %x0, 0f00000000; selp.b32 %x9, 1, 2, %p0;", {tiny}, 2, 32},
    {"setp.lt.bf16 %p0, %x0, %x1; selp.b32 %x9, 1, 2, %p0;", {0xbf80, 0x3f80}, 1, 32},
    {"setp.eq.s32 %p0, 1, 1; setp.eq.and.s32 %p1, %x0, 1, !%p0; selp.b32 %x9, 1, 2, %p1;",
     {1},
     2,
     32},
    {"setp.eq.s32 %p0, 1, 2; setp.eq.or.s32 %p1, %x0, 1, %p0; selp.b32 %x9, 1, 2, %p1;",
     {1},
     1,
     32},
    {"setp.eq.s32 %p0, 1, 1; not.pred %p1, %p0; or.pred %p2, %p0, %p1; selp.b32 %x9, 1, 2, %p2;",
     {0},
     1,
     32},
    {"set.lt.f32.f32 %x9, %x0, %x1;", {f(1), f(2)}, f(1), 32},
    {"set.lt.u32.s32 %x9, %x0, %x1;", {negative(-1), 2}, 0xffffffff, 32},
    {"slct.f32.s32 %x9, %x0, %x1, %x2;", {f(1), f(2), negative(-1)}, f(2), 32},

    /* conversions */
    {"cvt.s64.s32 %x9, %x0;", {0xffffffff}, minus_one, 64},
    {"cvt.u64.u32 %x9, %x0;", {minus_one}, 0xffffffff, 64},
    {"cvt.s32.s8 %x9, %x0;", {0x80}, 0xffffff80, 32},
    {"cvt.u32.u8 %x9, %x0;", {0x180}, 0x80, 32},
    {"cvt.rn.f32.s32 %x9, %x0;", {negative(-16777217)}, f(-16777216), 32},
    {"cvt.rn.f32.u64 %x9, %x0;", {minus_one}, f(0x1p64f), 32},
    {"cvt.rn.f64.s32 %x9, %x0;", {negative(-3)}, d(-3), 64},
    {"cvt.rni.s32.f32 %x9, %x0;", {f(2.5f)}, 2, 32},
    {"cvt.rzi.s32.f32 %x9, %x0;", {f(-2.9f)}, 0xfffffffe, 32},
    {"cvt.rmi.s32.f32 %x9, %x0;", {f(-2.1f)}, 0xfffffffd, 32},
    {"cvt.rpi.s64.f64 %x9, %x0;", {d(2.1)}, 3, 64},
    {"cvt.rzi.u32.f32 %x9, %x0;", {f(-1)}, 0, 32},
    {"cvt.rzi.s32.f32 %x9, %x0;", {f(3e9f)}, 0x7fffffff, 32},
    {"cvt.rzi.s32.f32 %x9, %x0;", {not_a_number}, 0, 32},
    {"cvt.rzi.s64.f32 %x9, %x0;", {not_a_number}, uint64_t{1} << 63, 64},
    {"cvt.rzi.u64.f32 %x9, %x0;", {f(0x1p70f)}, minus_one, 64},
    {"cvt.rni.f32.f32 %x9, %x0;", {f(3.5f)}, f(4), 32},
    {"cvt.rmi.f32.f32 %x9, %x0;", {f(-0.5f)}, f(-1), 32},
    {"cvt.sat.f32.f32 %x9, %x0;", {f(1.5f)}, f(1), 32},
    {"cvt.sat.f32.f32 %x9, %x0;", {not_a_number}, 0, 32},
    {"cvt.f64.f32 %x9, %x0;", {f(0.1f)}, d(static_cast<double>(0.1f)), 64},
    {"cvt.rn.f32.f64 %x9, %x0;", {d(0.1)}, f(0.1f), 32},
    {"cvt.rn.bf16.f32 %x9, %x0;", {f(1 + 0x1p-8f)}, 0x3f80, 16},
    {"cvt.rn.bf16.f32 %x9, %x0;", {f(1 + 0x3p-8f)}, 0x3f82, 16},
    {"cvt.rn.bf16.f32 %x9, %x0;", {0x7f7fffff}, 0x7f80, 16},
    {"cvt.rz.bf16.f32 %x9, %x0;", {0x7f7fffff}, 0x7f7f, 16},
    {"cvt.rn.bf16x2.f32 %x9, %x0, %x1;", {f(1), f(3)}, 0x3f804040, 32},
    {"cvt.f32.bf16 %x9, %x0;", {0x4040}, f(3), 32},

    /* control */
    {"mov.u32 %x9, 0; $again: add.u32 %x9, %x9, 2; setp.lt.u32 %p0, %x9, %x0; @%p0 bra $again;",
     {9},
     10,
     32},
    {"mov.u32 %x9, 5; setp.eq.s32 %p0, %x0, 1; @!%p0 mov.u32 %x9, 6;", {1}, 5, 32},
    {"mov.u32 %x9, 5; bra.uni $over; mov.u32 %x9, 6; $over:", {0}, 5, 32},
    {"membar.gl; fence.acq_rel.gpu; bar.sync 0; mov.u32 %x9, %ntid.x;", {0}, 32, 32},

    /* memory */
    {"st.shared.v2.b32 [table+8], {%x0, %x1}; ld.shared.b64 %x9, [table+8];",
     {0x11111111, 0x22222222},
     0x2222222211111111,
     64},
    {"st.shared.u16 [table], %x0; ld.shared.s8 %x9, [table+1];", {0x8000}, 0xffffff80, 32},
    {"cvta.shared.u64 %x3, table; st.u32 [%x3+4], %x0; mov.u64 %x4, table; "
     "ld.volatile.shared.u32 %x9, [%x4+4];",
     {99},
     99,
     32},
    {"mov.u64 %x3, table; cvta.shared.u64 %x4, %x3; cvta.to.shared.u64 %x5, %x4; "
     "sub.s64 %x9, %x5, %x3;",
     {0},
     0,
     64},
    {"mov.b64 %x3, out; ld.param.u64 %x4, [%x3]; ld.param.u64 %x5, [out]; sub.s64 %x9, %x4, %x5;",
     {0},
     0,
     64},
    {"st.shared.u32 [table], %x0; atom.shared.add.u32 %x9, [table], %x1; "
     "ld.shared.u32 %x3, [table]; sub.u32 %x9, %x3, %x9;",
     {5, 6},
     6,
     32},
    {"st.shared.u32 [table], %x0; red.shared.max.s32 [table], %x1; ld.shared.u32 %x9, [table];",
     {negative(-5), negative(-4)},
     0xfffffffc,
     32},
    {"st.shared.u32 [table], %x0; atom.shared.cas.b32 %x3, [table], %x0, %x1; "
     "ld.shared.u32 %x9, [table];",
     {5, 6},
     6,
     32},
    {"st.shared.u32 [table], %x0; atom.shared.inc.u32 %x3, [table], 5; "
     "ld.shared.u32 %x9, [table];",
     {5},
     0,
     32},
};
