/* The interpreter by itself: instructions with known results, what it must refuse, and texts that are no PTX. */
#include <cstdarg>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "cases.h"
#include "host/runtime.h"
#include "ptx/decode.h"
#include "ptx/ptx.h"

static const std::string module_head = ".version 9.0\n.target sm_120f\n.address_size 64\n";

/* A kernel (out, in) that writes %x9 of each lane of a warp. */
static std::string kernel_text(const std::string &name, const std::string &body) {
    return module_head + ".extern .shared .align 128 .b8 dynamic[];\n.visible .entry " + name +
           "(.param .u64 out, .param .u64 .ptr .align 1 in)\n.maxntid 32, 1, 1\n{\n"
           ".reg .pred %p<10>;\n.reg .b64 %x<10>;\n.shared .align 16 .b8 table[64];\n"
           "ld.param.u64 %x8, [in];\n"
           "ld.global.nc.L1::no_allocate.v2.u64 {%x0, %x1}, [%x8];\n"
           "ld.global.u64 %x2, [%x8+16];\n" +
           body +
           "\n{ .reg .b64 %at; mul.wide.u32 %at, %laneid, 8; ld.param.u64 %x8, [out];\n"
           "add.u64 %x8, %x8, %at; }\nst.global.u64 [%x8], %x9;\nret;\n}\n";
}

struct Results {
    uint64_t lane[host::warp_size];
};

static Results run_kernel(const std::string &body, const uint64_t *in, size_t dynamic_bytes = 0) {
    static int count;
    const std::string name = "kernel" + std::to_string(count++);
    alignas(16) uint64_t input[3] = {in[0], in[1], in[2]};
    std::string error;
    if (!ptx::load_text("test.ptx", kernel_text(name, body), error)) fail_msg("%s", error.c_str());
    Results results;
    uint64_t *out = results.lane, *from = input;
    void *parameters[] = {&out, &from};
    host::launch(*ptx::find(name), dim3(1), dim3(host::warp_size), dynamic_bytes, parameters);
    return results;
}

static void computes_what_the_manual_says(void **) {
    for (const Case &known : cases) {
        const uint64_t mask = ~uint64_t{0} >> (64 - known.bits);
        const Results results = run_kernel(known.text, known.in);
        for (uint64_t got : results.lane)
            if ((got ^ known.expected) & mask)
                fail_msg("%s gives %#lx, not %#lx", known.text, got & mask, known.expected & mask);
    }
}

/* ---- warps: each lane begins with its number in %x3 ---- */

static void check_lanes(const char *text, uint64_t (*expected)(uint64_t lane)) {
    const uint64_t in[3] = {};
    const Results results = run_kernel(std::string("mov.u32 %x3, %laneid;\n") + text, in);
    for (uint64_t lane = 0; lane < host::warp_size; lane++)
        if (static_cast<uint32_t>(results.lane[lane]) != expected(lane))
            fail_msg("%s gives lane %lu %lu, not %lu", text, lane, results.lane[lane],
                     expected(lane));
}

static void exchanges_registers_between_lanes(void **) {
    check_lanes("shfl.sync.bfly.b32 %x9, %x3, 1, 31, -1;", [](uint64_t i) { return i ^ 1; });
    check_lanes("shfl.sync.idx.b32 %x9, %x3, 5, 31, -1;", [](uint64_t) { return uint64_t{5}; });
    check_lanes("shfl.sync.idx.b32 %x9, %x3, 1, 6175, -1;", /* segments of 8 */
                [](uint64_t i) { return i / 8 * 8 + 1; });
    check_lanes("shfl.sync.up.b32 %x9|%p0, %x3, 3, 0, -1; @!%p0 mov.u32 %x9, 77;",
                [](uint64_t i) { return i < 3 ? 77 : i - 3; });
    check_lanes("shfl.sync.down.b32 %x9, %x3, 16, 31, -1;",
                [](uint64_t i) { return i < 16 ? i + 16 : i; });
    check_lanes("setp.lt.u32 %p0, %x3, 4; vote.sync.ballot.b32 %x9, %p0, -1;",
                [](uint64_t) { return uint64_t{15}; });
    check_lanes(
        "setp.eq.u32 %p0, %x3, 4; vote.sync.any.pred %p1, %p0, -1; selp.b32 %x9, 1, 0, %p1;",
        [](uint64_t) { return uint64_t{1}; });
    check_lanes(
        "setp.ne.u32 %p0, %x3, 4; vote.sync.all.pred %p1, %p0, -1; selp.b32 %x9, 1, 0, %p1;",
        [](uint64_t) { return uint64_t{0}; });
    check_lanes("redux.sync.add.s32 %x9, %x3, -1;", [](uint64_t) { return uint64_t{496}; });
    check_lanes("redux.sync.max.u32 %x9, %x3, -1; bar.warp.sync -1;",
                [](uint64_t) { return uint64_t{31}; });
}

/* ---- shared memory, asynchronous copies and matrices ---- */

static void copies_to_shared_memory(void **) {
    const uint64_t in[3] = {7, 8, 9};
    const char *copy = "mov.u32 %x4, 128; ld.param.u64 %x8, [in];\n"
                       "cp.async.cg.shared.global [%x4], [%x8], 16, %x3;\n"
                       "cp.async.commit_group; cp.async.wait_group 0;\n"
                       "ld.shared.u64 %x9, [dynamic+8];";
    /* `table` takes 64 bytes, so dynamic memory begins at 128 */
    assert_int_equal(run_kernel(std::string("mov.u32 %x3, 16;\n") + copy, in, 16).lane[0], 8);
    assert_int_equal(run_kernel(std::string("mov.u32 %x3, 0;\n") + copy, in, 16).lane[0], 0);
}

/* The identity, loaded as a and b of a product with itself. */
static void multiplies_matrices(void **) {
    const uint64_t in[3] = {};
    const char *text =
        "mov.u32 %x3, %laneid; mul.wide.u32 %x4, %x3, 16;\n" /* lane's row of an 8x8 matrix */
        "add.u32 %x4, %x4, dynamic; mov.u64 %x5, 0;\n"
        "st.shared.v2.u64 [%x4], {%x5, %x5};\n"
        "and.b32 %x6, %x3, 7; mul.wide.u32 %x7, %x6, 2; add.u32 %x7, %x7, %x4;\n"
        "shr.u32 %x6, %x3, 3; setp.eq.u32 %p0, %x6, 0; setp.eq.u32 %p1, %x6, 3;\n"
        "or.pred %p0, %p0, %p1; @%p0 st.shared.u16 [%x7], 0x3f80; bar.sync 0;\n"
        "{ .reg .b32 %a<4>, %d<4>;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%x4];\n"
        "mov.f32 %d0, 0f3F000000;\n"
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%d0, %d1, %d2, %d3},\n"
        "{%a0, %a1, %a2, %a3}, {%a0, %a2}, {%d0, %d0, %d0, %d0};\n"
        "mov.b64 %x9, {%d0, %d1}; }";
    const Results results = run_kernel(text, in, 512);
    for (unsigned lane = 0; lane < host::warp_size; lane++) {
        float d[2];
        memcpy(d, &results.lane[lane], sizeof d);
        for (unsigned k = 0; k < 2; k++) /* diagonal and rest */
            assert_true(d[k] == (lane / 4 == lane % 4 * 2 + k ? 1.5f : 0.5f));
    }
}

/* ---- what it refuses ---- */

static void refuses_what_it_does_not_know(void **) {
    static const char *const unknown[] = {
        "frobnicate.b32 %x9, %x0;",
        "add.rz.f32 %x9, %x0, %x1;",
        "add.s32.magic %x9, %x0, %x1;",
        "add.q32 %x9, %x0, %x1;",
        "add.s32 %x9, %x0;",
        "add.s32 %x9, %x0, [%x1];",
        "add.s32 %x9, %x0, %undeclared;",
        "ld.const.u32 %x9, [%x0];",
        "ld.param.u32 %x9, [out+8];",
        "ld.global.v4.u64 {%x0, %x1, %x2, %x3}, [%x8];",
        "st.global.v2.u32 [%x8], %x0;",
        "cvt.f32.s32 %x9, %x0;",
        "cvt.rn.f16.f32 %x9, %x0;",
        "atom.global.add.f32 %x9, [%x8], %x0;",
        "bra $nowhere;",
        "bar.sync 1;",
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%x0, %x1, %x2, %x3},"
        " {%x0, %x1, %x2, %x3}, {%x0, %x1}, {%x0, %x1, %x2, %x3};",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%x0, %x1}, [%x8];",
        "cp.async.ca.shared.global [%x0], [%x8], 4, 4;",
        "call.uni helper, ();",
        ".local .b8 depot[16];",
        "mov.u64 %x9, 0x1ffffffffffffffff;",
    };
    for (const char *text : unknown) {
        std::string error;
        if (ptx::load_text("file.ptx", kernel_text("refused", text), error))
            fail_msg("accepted: %s", text);
        const std::string first(text, strcspn(text, " ;"));
        if (error.find("file.ptx:") != 0 || error.find(first) == std::string::npos)
            fail_msg("the message does not name the instruction: %s", error.c_str());
    }
}

/* Runs in a process of its own, which has to abort with a report that says `why`. */
static void check_fault(const char *text, const char *why) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        const uint64_t in[3] = {};
        run_kernel(text, in, 32);
        _exit(0);
    }
    close(ends[1]);
    std::string report;
    char part[512];
    for (ssize_t count; (count = read(ends[0], part, sizeof part)) > 0;)
        report.append(part, static_cast<size_t>(count));
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || report.find(why) == std::string::npos)
        fail_msg("%s: expected \"%s\", got \"%s\"", text, why, report.c_str());
}

static void stops_at_faults(void **) {
    check_fault("ld.shared.u32 %x9, [table+2];", "misaligned");
    check_fault("ld.shared.v2.u32 {%x9, %x3}, [table+4];", "misaligned");
    check_fault("ld.shared.u32 %x9, [dynamic+32];", "beyond the block's shared memory");
    check_fault("mov.u32 %x3, -4; st.shared.u32 [%x3], %x0;", "beyond the block's shared memory");
    check_fault("ld.param.u64 %x8, [in]; ld.global.u32 %x9, [%x8+1];", "misaligned");
    check_fault("mov.u64 %x3, 0; ld.global.u32 %x9, [%x3];", "null");
    check_fault("mov.b64 %x3, out; ld.param.u64 %x9, [%x3+16];", "beyond the parameters");
    check_fault("cvta.to.shared.u64 %x9, %x8;", "not an address of shared memory");
    check_fault("div.s32 %x9, 1, 0;", "a division by zero");
    check_fault("trap;", "trap");
    check_fault("mov.u32 %x3, %laneid; setp.eq.u32 %p0, %x3, 3; @%p0 ret; bar.sync 0;", "barrier");
    check_fault("shfl.sync.idx.b32 %x9, %x0, 9, 31, 0xff;", "mask");
}

/* ---- texts that are no PTX: an error, or by chance a kernel, but nothing else ---- */

static std::string large_text() {
    std::string body;
    for (const Case &known : cases)
        if (!strchr(known.text, '$')) body += std::string(known.text) + "\n";
    return kernel_text("large", body);
}

static void decode_or_refuse(const std::string &text) {
    try {
        for (const ptx::ParsedKernel &kernel : ptx::parse(text)) ptx::decode(kernel);
    } catch (const ptx::Refusal &refusal) {
        assert_true(refusal.line >= 1);
    }
}

static void survives_broken_texts(void **) {
    const std::string whole = large_text();
    std::mt19937 random(1);
    const auto below = [&](size_t limit) { return random() % limit; };
    for (size_t size = 0; size < whole.size(); size += 1 + below(20))
        decode_or_refuse(whole.substr(0, size));
    for (int round = 0; round < 1000; round++) {
        std::string broken = whole;
        for (size_t changes = 1 + below(3); changes > 0; changes--) {
            const size_t at = below(broken.size());
            switch (below(3)) {
            case 0:
                broken[at] = static_cast<char>(below(256));
                break;
            case 1:
                broken.erase(at, 1 + below(30));
                break;
            default:
                broken.insert(at, whole.substr(below(whole.size()), 1 + below(30)));
            }
        }
        decode_or_refuse(broken);
    }
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(computes_what_the_manual_says),
        cmocka_unit_test(exchanges_registers_between_lanes),
        cmocka_unit_test(copies_to_shared_memory),
        cmocka_unit_test(multiplies_matrices),
        cmocka_unit_test(refuses_what_it_does_not_know),
        cmocka_unit_test(stops_at_faults),
        cmocka_unit_test(survives_broken_texts),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
