#include "model/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/model.h"

static int64_t columns_of(const Program *program, const Parameter *parameter) {
    return program->weights[parameter->weight].columns;
}

/* Elements from the start of the flat buffers. */
static int64_t parameter_offset(const Program *program, const Parameter *parameter) {
    return program->weights[parameter->weight].offset +
           parameter->first_row * columns_of(program, parameter);
}

/* Gives a parameter its fp32 values: to the masters, and rounded to the working copy. `scratch` has room
 * for as many bf16 values. */
static void set_parameter(const Backend *backend, Executor *executor, const Program *program,
                          const Parameter *parameter, const float *values, bf16 *scratch) {
    int64_t offset = parameter_offset(program, parameter);
    int64_t count = parameter->rows * columns_of(program, parameter);
    if (program->master >= 0)
        backend->upload(executor, program->master, offset * 4, values, count * 4);
    if (program->working == program->master) return;
    if (program->storage == DTYPE_F32) {
        backend->upload(executor, program->working, offset * 4, values, count * 4);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) scratch[i] = bf16_from_float(values[i]);
    backend->upload(executor, program->working, offset * 2, scratch, count * 2);
}

static int64_t largest_parameter(const Program *program) {
    int64_t largest = 0;
    for (int i = 0; i < program->parameter_count; i++) {
        const Parameter *parameter = &program->parameters[i];
        int64_t count = parameter->rows * columns_of(program, parameter);
        if (count > largest) largest = count;
    }
    return largest;
}

/* Room for the fp32 values and the bf16 copy of the largest parameter; NULL with an error. */
static float *make_scratch(const Program *program, bf16 **rounded, Error *error) {
    size_t count = (size_t)largest_parameter(program);
    float *values = allocate(count, sizeof(float) + sizeof(bf16), error);
    if (values) *rounded = (bf16 *)(void *)(values + count);
    return values;
}

bool model_fill_tables(const Backend *backend, Executor *executor, const Program *program,
                       const ModelConfig *config, Error *error) {
    int64_t elements = program->buffers[program->cos_sin].elements;
    float *table = allocate((size_t)elements, sizeof *table, error);
    if (!table) return false;
    model_rope_table(table, elements / config->head_dim, config->head_dim, config->rope_theta);
    backend->upload(executor, program->cos_sin, 0, table, elements * 4);
    free(table);
    return true;
}

bool parameters_initialise(const Backend *backend, Executor *executor, const Program *program,
                           uint64_t seed, Error *error) {
    bf16 *rounded;
    float *values = make_scratch(program, &rounded, error);
    if (!values) return false;
    for (int i = 0; i < program->parameter_count; i++) {
        model_initialise(program, i, seed, values);
        set_parameter(backend, executor, program, &program->parameters[i], values, rounded);
    }
    free(values);
    return true;
}

/* IEEE binary16 to fp32; subnormals are exact. */
static float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u,
             mantissa = half & 0x3ffu;
    float value;
    if (exponent == 0) {
        value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | mantissa << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads element by element through memcpy: a file's data need not be aligned. */
static bool read_tensor(const Tensor *tensor, int64_t count, float *values) {
    const uint8_t *data = tensor->data;
    if (tensor->type == TENSOR_F32) {
        memcpy(values, data, (size_t)count * 4);
        return true;
    }
    if (tensor->type != TENSOR_BF16 && tensor->type != TENSOR_F16) return false;
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, data + 2 * i, 2);
        values[i] = tensor->type == TENSOR_BF16 ? bf16_to_float(bits) : half_to_float(bits);
    }
    return true;
}

static bool check_shape(const Program *program, const Parameter *parameter, const Tensor *tensor,
                        const char *path, Error *error) {
    int64_t columns = columns_of(program, parameter);
    bool vector = !program->weights[parameter->weight].is_matrix;
    bool same = vector ? tensor->rank == 1 && tensor->shape[0] == columns
                       : tensor->rank == 2 && tensor->shape[0] == parameter->rows &&
                             tensor->shape[1] == columns;
    if (same) return true;
    char shape[128] = "";
    for (int i = 0; i < tensor->rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i ? ", " : "",
                 (long long)tensor->shape[i]);
    if (vector)
        return fail(error, "%s: %s has shape [%s]; the model needs [%lld]", path, tensor->name,
                    shape, (long long)columns);
    return fail(error, "%s: %s has shape [%s]; the model needs [%lld, %lld]", path, tensor->name,
                shape, (long long)parameter->rows, (long long)columns);
}

bool parameters_load(const Backend *backend, Executor *executor, const Program *program,
                     const Safetensors *file, const char *path, Error *error) {
    bf16 *rounded;
    float *values = make_scratch(program, &rounded, error);
    if (!values) return false;
    bool done = true;
    int found = 0;
    for (int i = 0; done && i < program->parameter_count; i++) {
        const Parameter *parameter = &program->parameters[i];
        const Tensor *tensor = safetensors_find(file, parameter->name);
        if (!tensor) {
            done = fail(error, "%s has no tensor %s, which the model needs", path, parameter->name);
            break;
        }
        found++;
        done = check_shape(program, parameter, tensor, path, error);
        if (done && !read_tensor(tensor, parameter->rows * columns_of(program, parameter), values))
            done = fail(error, "%s: %s is of type %s; fp32, bf16 and fp16 can be read", path,
                        parameter->name, tensor_type_name(tensor->type));
        if (done) set_parameter(backend, executor, program, parameter, values, rounded);
    }
    if (done && found < file->count)
        done = fail(error,
                    "%s holds %d tensors where the model has %d parameters: is it another model?",
                    path, file->count, program->parameter_count);
    free(values);
    return done;
}

bool parameters_tensors(const Backend *backend, Executor *executor, const Program *program,
                        bool working, Tensor *tensors, Error *error) {
    int buffer = working ? program->working : program->master;
    const uint8_t *data = backend->view(executor, buffer);
    if (!data)
        return fail(error, "the parameters cannot be read from the %s backend", backend->name);
    Dtype dtype = program->buffers[buffer].dtype;
    for (int i = 0; i < program->parameter_count; i++) {
        Parameter *parameter = &program->parameters[i];
        int64_t columns = columns_of(program, parameter), count = parameter->rows * columns;
        bool matrix = program->weights[parameter->weight].is_matrix;
        tensors[i] =
            (Tensor){.name = parameter->name,
                     .type = dtype == DTYPE_BF16 ? TENSOR_BF16 : TENSOR_F32,
                     .rank = matrix ? 2 : 1,
                     .shape = {matrix ? parameter->rows : columns, columns},
                     .data = data + parameter_offset(program, parameter) * dtype_size(dtype),
                     .bytes = (size_t)(count * dtype_size(dtype))};
    }
    return true;
}

/* One of the up to four moment buffers: its tensors have `per` weights' elements to one of its own. */
typedef struct MomentBuffer {
    int buffer;
    const char *suffix;
    int64_t per;
} MomentBuffer;

static int moment_buffers(const Program *program, MomentBuffer out[4]) {
    MomentBuffer all[] = {{program->moment1, "moment1", 1},
                          {program->moment2, "moment2", 1},
                          {program->absmax1, "absmax1", STATE_BLOCK},
                          {program->absmax2, "absmax2", STATE_BLOCK}};
    int count = 0;
    for (int i = 0; i < 4; i++)
        if (all[i].buffer >= 0) out[count++] = all[i];
    return count;
}

int optimizer_tensors(const Backend *backend, Executor *executor, const Program *program,
                      Tensor *tensors, Error *error) {
    static const TensorType types[DTYPES] = {TENSOR_F32, TENSOR_BF16, TENSOR_I32, TENSOR_U8};
    MomentBuffer buffers[4];
    int count = 0, kinds = moment_buffers(program, buffers);
    for (int w = 0; w < program->weight_count; w++)
        for (int k = 0; k < kinds; k++) {
            const Weight *weight = &program->weights[w];
            Dtype dtype = program->buffers[buffers[k].buffer].dtype;
            int64_t elements =
                (weight->rows * weight->columns + buffers[k].per - 1) / buffers[k].per;
            const uint8_t *data = backend->view(executor, buffers[k].buffer);
            char *name = allocate(sizeof weight->name + 16, 1, error);
            if (!name || !data) {
                if (name)
                    fail(error, "the optimizer state cannot be read from the %s backend",
                         backend->name);
                free(name);
                optimizer_tensors_free(tensors, count);
                return -1;
            }
            snprintf(name, sizeof weight->name + 16, "%s.%s", weight->name, buffers[k].suffix);
            tensors[count++] =
                (Tensor){.name = name,
                         .type = types[dtype],
                         .rank = 1,
                         .shape = {elements},
                         .data = data + weight->offset / buffers[k].per * dtype_size(dtype),
                         .bytes = (size_t)(elements * dtype_size(dtype))};
        }
    return count;
}

void optimizer_tensors_free(Tensor *tensors, int count) {
    for (int i = 0; i < count; i++) free(tensors[i].name);
}

bool optimizer_load(const Backend *backend, Executor *executor, const Program *program,
                    const Safetensors *file, const char *path, Error *error) {
    Tensor *wanted = allocate((size_t)program->weight_count * 4, sizeof *wanted, error);
    int count = wanted ? optimizer_tensors(backend, executor, program, wanted, error) : -1;
    bool done = count >= 0;
    for (int i = 0; done && i < count; i++) {
        const Tensor *tensor = safetensors_find(file, wanted[i].name);
        if (!tensor || tensor->type != wanted[i].type || tensor->bytes != wanted[i].bytes)
            done = fail(error,
                        "%s: %s is missing or of another format; resume with the same "
                        "--optimizer-state that the checkpoint was written with",
                        path, wanted[i].name);
        else
            memcpy((void *)(uintptr_t)wanted[i].data, tensor->data, tensor->bytes);
    }
    if (count >= 0) optimizer_tensors_free(wanted, count);
    free(wanted);
    return done;
}
