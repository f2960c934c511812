/* nanochat's recipe: what its own base_train.py computes for some depths, in double precision. */
#include <math.h>

#include "optim/recipe.h"
#include "support.h"

typedef struct Row {
    int64_t parameters, dim;
    double ratio;
    int64_t given_batch, batch, steps;
    double matrix, unembedding, embedding, weight_decay;
} Row;

enum { D12_PARAMETERS = 110100912 }; /* with a vocabulary of 32768 */

static const Row rows[] = {
    {11534384, 256, 12, 0, 262144, 528, 0.014142135623731, 0.00979795897113271, 0.367423461417477,
     1.88990312939178},
    {41943232, 512, 12, 0, 262144, 1920, 0.014142135623731, 0.00692820323027551, 0.259807621135332,
     0.519723144301482},
    {110100912, 768, 12, 0, 524288, 2520, 0.02, 0.008, 0.3, 0.28},
    {234881792, 1024, 12, 0, 524288, 5376, 0.02, 0.00692820323027551, 0.259807621135332,
     0.131250085830408},
    {435160240, 1280, 12, 0, 1048576, 4980, 0.0282842712474619, 0.00876356092008266,
     0.3286335345031, 0.10018777642556},
    {729810624, 1536, 8, 0, 1048576, 5568, 0.0282842712474619, 0.008, 0.3, 0.0597384244634031},
    {729810624, 1536, 12, 0, 1048576, 8352, 0.0282842712474619, 0.008, 0.3, 0.0597384244634031},
    {918423532, 1664, 8, 0, 1048576, 7007, 0.0282842712474619, 0.00768615138264418,
     0.288230676849157, 0.0474701870274085},
    {2003176844, 2176, 20, 0, 2097152, 19103, 0.04, 0.00950541641257607, 0.356453115471603,
     0.0307793647399011},
    {23199852, 384, 12, 16384, 16384, 16992, 0.00353553390593274, 0.002, 0.075, 0.234903097843108},
};

static Recipe recipe_of(const Row *row) {
    return recipe_derive(&(RecipeInput){.parameters = row->parameters,
                                        .reference_parameters = D12_PARAMETERS,
                                        .dim = row->dim,
                                        .ratio = row->ratio,
                                        .batch_tokens = row->given_batch,
                                        .matrix_rate = 0.02,
                                        .embedding_rate = 0.3,
                                        .unembedding_rate = 0.008,
                                        .scalar_rate = 0.5,
                                        .weight_decay = 0.28});
}

static void assert_same(const char *name, double value, double expected) {
    if (fabs(value - expected) > 1e-14 * fabs(expected) * 10)
        fail_msg("%s: %.17g, not %.17g", name, value, expected);
}

static void test_depths(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Row *row = &rows[i];
        Recipe recipe = recipe_of(row);
        assert_int_equal(recipe.batch_tokens, row->batch);
        assert_int_equal(recipe.target_tokens / recipe.batch_tokens, row->steps);
        assert_same("matrix", recipe.matrix_rate, row->matrix);
        assert_same("head", recipe.unembedding_rate, row->unembedding);
        assert_same("embedding", recipe.embedding_rate, row->embedding);
        assert_same("value embedding", recipe.value_embedding_rate, row->embedding / 2);
        assert_same("decay", recipe.weight_decay, row->weight_decay);
        double batch = sqrt((double)row->batch / (1 << 19));
        assert_same("residual", recipe.residual_rate, 0.005 * batch);
        assert_same("input", recipe.input_rate, 0.5 * batch);
        assert_same("smear", recipe.smear_rate, 0.2);
    }
}

/* Rates are relative to the schedule's peak, so that their products are the recipe's. */
static void test_groups(void **state) {
    (void)state;
    Recipe recipe = recipe_of(&rows[1]);
    OptimizerSettings settings = recipe_optimizer(&recipe);
    const OptimizerGroup *head = &settings.groups[WEIGHT_HEAD],
                         *matrix = &settings.groups[WEIGHT_MATRIX],
                         *scalar = &settings.groups[WEIGHT_SCALAR];
    assert_true(fabs((double)head->rate * recipe.matrix_rate / recipe.unembedding_rate - 1) < 1e-6);
    assert_true(fabs((double)scalar->rate * recipe.matrix_rate / 0.2 - 1) < 1e-6);
    assert_true(matrix->muon && !head->muon && !scalar->muon);
    assert_true(matrix->rate == 1 && matrix->weight_decay == (float)recipe.weight_decay);
    assert_true(head->epsilon == 1e-10f && head->beta2 == 0.96f);
    assert_true(settings.clip_norm == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_depths),
                                       cmocka_unit_test(test_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
