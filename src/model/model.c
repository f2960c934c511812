#include "model/model.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "model/llama.h"
#include "model/nanochat.h"

const Model *model_find(const ModelConfig *config, Error *error) {
    static const Model *const models[] = {&model_llama, &model_nanochat};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!strcmp(models[i]->architecture, config->architecture)) return models[i];
    fail(error, "architecture '%s' is not known; hearth trains llama and nanochat",
         config->architecture);
    return NULL;
}

void model_make_inputs(Program *program, const ModelConfig *config, int64_t B, int64_t positions) {
    program->B = B;
    program->T = config->sequence_length;
    int64_t N = B * program->T;
    if (N > 0) {
        program->tokens = program_buffer(program, BUFFER_INPUT, DTYPE_I32, N, "tokens");
        program->targets = program_buffer(program, BUFFER_INPUT, DTYPE_I32, N, "targets");
        program->document_start =
            program_buffer(program, BUFFER_INPUT, DTYPE_I32, N, "document start");
        program->losses = program_buffer(program, BUFFER_OUTPUT, DTYPE_F32, N, "losses");
    }
    program->cos_sin = program_buffer(program, BUFFER_INPUT, DTYPE_F32,
                                      positions * config->head_dim, "rotary table");
}

void model_rope_table(float *cos_sin, int64_t positions, int64_t D, double theta) {
    for (int64_t t = 0; t < positions; t++)
        for (int64_t i = 0; i < D / 2; i++) {
            float frequency = (float)(1.0 / pow(theta, 2.0 * (double)i / (double)D));
            float angle = (float)t * frequency;
            cos_sin[t * D + 2 * i] = (float)cos((double)angle);
            cos_sin[t * D + 2 * i + 1] = (float)sin((double)angle);
        }
}

/* Element i of a vector that runs in a straight line. */
static float on_line(const Parameter *what, int64_t columns, int64_t i) {
    double share = columns > 1 ? (double)i / (double)(columns - 1) : 0;
    return (float)((double)what->init_a + ((double)what->init_b - (double)what->init_a) * share);
}

static void initialise_part(const Parameter *what, int64_t columns, uint64_t seed, uint64_t stream,
                            int64_t first, int64_t count, float *values) {
    if (what->initialisation == INIT_NORMAL)
        random_normals(seed, stream, (uint64_t)first, (size_t)count, values);
    for (int64_t i = 0; i < count; i++) switch (what->initialisation) {
        case INIT_NORMAL:
            values[i] *= what->init_a;
            break;
        case INIT_UNIFORM:
            values[i] = what->init_a + (what->init_b - what->init_a) *
                                           random_uniform(seed, stream, (uint64_t)(first + i));
            break;
        case INIT_CONSTANT:
            values[i] = what->init_a;
            break;
        case INIT_LINE:
            values[i] = on_line(what, columns, first + i);
            break;
        }
}

void model_initialise(const Program *program, int parameter, uint64_t seed, int64_t first,
                      int64_t count, float *values) {
    const Parameter *what = &program->parameters[parameter];
    int64_t columns = program->weights[what->weight].columns;
    uint64_t stream = random_stream(RANDOM_INIT, (uint32_t)parameter);
    enum { PART = 1 << 12 };
#pragma omp parallel for schedule(static)
    for (int64_t part = 0; part < count; part += PART) {
        int64_t size = count - part < PART ? count - part : PART;
        initialise_part(what, columns, seed, stream, first + part, size, values + part);
    }
}
