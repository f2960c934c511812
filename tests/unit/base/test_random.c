/* Philox4x32-10 against the known answers published with Random123 (tests/kat_vectors), and what
 * is made from it. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

static uint64_t join(uint32_t low, uint32_t high) {
    return (uint64_t)high << 32 | low;
}

static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        const uint32_t *counter = vectors[i].counter, *key = vectors[i].key;
        const PhiloxWords words = philox(join(key[0], key[1]), join(counter[2], counter[3]),
                                         join(counter[0], counter[1]));
        assert_memory_equal(words.word, vectors[i].out, sizeof words);
    }
}

/* Which word of which block an index is: runs that are resumed depend on it. */
static void test_layout(void **state) {
    (void)state;
    const uint64_t seed = 0x299f31d0a4093822u, stream = 0x0370734413198a2eu,
                   block = 0x05a308d3243f6a88u;
    const PhiloxWords words = philox(seed, stream, block);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(random_u32(seed, stream, 4 * block + i), words.word[i]);
}

static void test_uniform(void **state) {
    (void)state;
    double sum = 0, squares = 0;
    const int count = 100000;
    for (int i = 0; i < count; i++) {
        float x = random_uniform(1, 2, (uint64_t)i);
        assert_true(x >= 0 && x < 1);
        sum += (double)x;
        squares += (double)x * (double)x;
    }
    assert_true(fabs(sum / count - 0.5) < 0.005);
    assert_true(fabs(squares / count - 1.0 / 3) < 0.005);
}

/* Against libm, from the words that a normal is made from. */
static void test_normals_are_box_muller(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 200000; i += 2) {
        const double u = (random_u32(3, 4, i) + 1.0) * 0x1p-32,
                     turn = random_u32(3, 4, i + 1) * 0x1p-32;
        const double radius = sqrt(-2 * log(u)), angle = 2 * 3.14159265358979323846 * turn;
        float values[2];
        random_normals(3, 4, i, 2, values);
        assert_true(fabs((double)values[0] - radius * cos(angle)) < 1e-7 * radius);
        assert_true(fabs((double)values[1] - radius * sin(angle)) < 1e-7 * radius);
    }
}

/* Many at once are the same as one by one, from any place. */
static void test_normals(void **state) {
    (void)state;
    float values[150];
    for (uint64_t first = 4; first < 70; first++) {
        random_normals(1, 2, first, 150, values);
        for (uint64_t i = 0; i < 150; i++) assert_true(values[i] == random_normal(1, 2, first + i));
        assert_true(values[0] != values[1]);
    }
}

/* Weights start from these: another platform or compiler must draw the same. */
static void test_normals_stay(void **state) {
    (void)state;
    static float values[4096];
    uint64_t hash = 0xcbf29ce484222325u;
    random_normals(1, random_stream(RANDOM_INIT, 7), 1000003, 4096, values);
    for (int i = 0; i < 4096; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    assert_true(hash == 0x6e9ff7a0afcfc923u);
}

static void test_normal(void **state) {
    (void)state;
    double moments[5] = {0};
    const int count = 100000;
    for (int i = 0; i < count; i++)
        for (int power = 1; power <= 4; power++)
            moments[power] += pow((double)random_normal(1, 2, (uint64_t)i), power) / count;
    assert_true(fabs(moments[1]) < 0.02);
    assert_true(fabs(moments[2] - 1) < 0.02);
    assert_true(fabs(moments[3]) < 0.06);
    assert_true(fabs(moments[4] - 3) < 0.15);
}

static void test_below(void **state) {
    (void)state;
    int counts[7] = {0};
    for (uint64_t i = 0; i < 70000; i++) counts[random_below(1, 2, i, 7)]++;
    for (int i = 0; i < 7; i++) assert_in_range(counts[i], 9600, 10400);
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(random_below(1, 2, i, 1) == 0);
        assert_true(random_below(1, 2, i, 1ull << 63) < 1ull << 63);
    }
}

static void test_streams_differ(void **state) {
    (void)state;
    assert_true(random_stream(RANDOM_INIT, 5) != random_stream(RANDOM_SHUFFLE, 5));
    assert_true(random_stream(RANDOM_INIT, 5) != random_stream(RANDOM_INIT, 6));
    int equal = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        equal += random_u32(1, random_stream(RANDOM_INIT, 5), i) ==
                 random_u32(1, random_stream(RANDOM_INIT, 6), i);
        equal += random_u32(1, 0, i) == random_u32(2, 0, i);
    }
    assert_int_equal(equal, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),  cmocka_unit_test(test_layout),
        cmocka_unit_test(test_uniform),        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_normals),        cmocka_unit_test(test_normals_are_box_muller),
        cmocka_unit_test(test_normals_stay),   cmocka_unit_test(test_below),
        cmocka_unit_test(test_streams_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
