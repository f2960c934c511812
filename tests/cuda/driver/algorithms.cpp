/* The algorithms there are, and how fast they pretend to be: fixed for a shape, and not in the order of the
 * heuristic, so that measuring pays. */
#include <algorithm>
#include <cstdint>

#include "chips.h"
#include "matmul.h"

namespace driver {

struct Shape {
    int parts;
    int64_t alignment;
    uint32_t reduction;
};

constexpr uint32_t ordered = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
constexpr uint32_t in_place = CUBLASLT_REDUCTION_SCHEME_INPLACE; /* in the order they are done */

/* By number. The first two take matrices of any alignment. */
static const Shape shapes[] = {{1, 1, 0},        {2, 1, ordered},  {1, 16, 0},       {1, 16, 0},
                               {2, 16, ordered}, {4, 16, ordered}, {4, 16, in_place}};

/* Between 0 and 1, the same for the same arguments. */
static double fraction(uint64_t m, uint64_t n, uint64_t k, uint64_t number) {
    uint64_t x =
        ((m * 0x9e3779b97f4a7c15u + n) * 0xbf58476d1ce4e5b9u + k) * 0x94d049bb133111ebu + number;
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    return static_cast<double>(x >> 40) / static_cast<double>(1 << 24);
}

static double time_of(const Product &product, int number) {
    uint64_t m = static_cast<uint64_t>(product.m()), n = static_cast<uint64_t>(product.n());
    uint64_t k = static_cast<uint64_t>(product.k());
    double aligned = shapes[number].alignment > 1 ? 0.6 : 0.3;
    double efficiency = aligned + 0.3 * fraction(m, n, k, static_cast<uint64_t>(number));
    double operations = 2.0 * static_cast<double>(product.results()) * static_cast<double>(k);
    return 3000 + operations / (chip().teraflops * 1e3 * efficiency);
}

std::vector<Algorithm> algorithms_for(const Product &product, const int64_t (&alignments)[4]) {
    int64_t least = *std::min_element(alignments, alignments + 4);
    std::vector<Algorithm> found;
    for (int number = static_cast<int>(std::size(shapes)) - 1; number >= 0; number--) {
        const Shape &shape = shapes[number];
        if (least < shape.alignment || product.k() < shape.parts) continue;
        int64_t sums = shape.parts > 1 ? shape.parts * product.results() * 4 : 0;
        found.push_back({number, shape.parts, shape.reduction, shape.alignment,
                         (sums + 255) / 256 * 256, time_of(product, number)});
    }
    return found;
}

} // namespace driver
