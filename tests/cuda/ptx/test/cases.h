/* Instructions with known results. */
#ifndef TEST_CUDA_PTX_CASES_H
#define TEST_CUDA_PTX_CASES_H

#include <cstdint>
#include <vector>

/* `text` computes %x9 from %x0, %x1 and %x2, which hold `in`; its low `bits` are compared. %p0 to %p9 are
 * predicates, %x3 to %x8 free. */
struct Case {
    const char *text;
    uint64_t in[3];
    uint64_t expected;
    unsigned bits;
};

extern const std::vector<Case> cases;

#endif
