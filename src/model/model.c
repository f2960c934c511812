#include "model/model.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "model/llama.h"

const Model *model_find(const ModelConfig *config, Error *error) {
    static const Model *const models[] = {&model_llama};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!strcmp(models[i]->architecture, config->architecture)) return models[i];
    fail(error, "architecture '%s' is not known; hearth trains llama", config->architecture);
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

void model_initialise(const Program *program, int parameter, uint64_t seed, int64_t first,
                      int64_t count, float *values) {
    const Parameter *what = &program->parameters[parameter];
    uint64_t stream = random_stream(RANDOM_INIT, (uint32_t)parameter);
    enum { PART = 1 << 12 };
#pragma omp parallel for schedule(static)
    for (int64_t part = 0; part < count; part += PART) {
        int64_t end = count - part < PART ? count : part + PART;
        if (what->initialisation == INIT_NORMAL)
            random_normals(seed, stream, (uint64_t)(first + part), (size_t)(end - part),
                           values + part);
        for (int64_t i = part; i < end; i++) switch (what->initialisation) {
            case INIT_NORMAL:
                values[i] *= what->init_std;
                break;
            case INIT_ONES:
                values[i] = 1;
                break;
            case INIT_ZEROS:
                values[i] = 0;
                break;
            }
    }
}
