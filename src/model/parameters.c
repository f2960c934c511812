#include "model/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
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

enum { BLOCK = 1 << 18 }; /* elements set at a time, so that a large parameter takes no memory */

typedef struct Scratch {
    float values[BLOCK];
    bf16 rounded[BLOCK];
} Scratch;

/* Gives elements first..first + count - 1 of a parameter their fp32 values, which are in the scratch: to
 * the masters, and rounded to the working copy. */
static void set_block(const Backend *backend, Executor *executor, const Program *program,
                      const Parameter *parameter, int64_t first, int64_t count, Scratch *scratch) {
    int64_t offset = parameter_offset(program, parameter) + first;
    if (program->master >= 0)
        backend->upload(executor, program->master, offset * 4, scratch->values, count * 4);
    if (program->precise_offset && offset >= program->precise_offset)
        backend->upload(executor, program->precise, (offset - program->precise_offset) * 4,
                        scratch->values, count * 4);
    if (program->working == program->master) return;
    if (program->storage == DTYPE_F32) {
        backend->upload(executor, program->working, offset * 4, scratch->values, count * 4);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) scratch->rounded[i] = bf16_from_float(scratch->values[i]);
    backend->upload(executor, program->working, offset * 2, scratch->rounded, count * 2);
}

static int64_t elements_of(const Program *program, const Parameter *parameter) {
    return parameter->rows * columns_of(program, parameter);
}

static int64_t block_end(int64_t first, int64_t elements) {
    return elements - first < BLOCK ? elements : first + BLOCK;
}

bool model_fill_tables(const Backend *backend, Executor *executor, const Program *program,
                       const ModelConfig *config, Error *error) {
    int64_t elements = program->buffers[program->cos_sin].elements;
    float *table = allocate((size_t)elements, sizeof *table, error);
    if (!table) return false;
    model_rope_table(table, elements / config->head_dim, config->head_dim, config->rope_theta);
    if (model_is_nanochat(config) && program->storage == DTYPE_BF16) /* as nanochat has it */
        for (int64_t i = 0; i < elements; i++) table[i] = bf16_to_float(bf16_from_float(table[i]));
    backend->upload(executor, program->cos_sin, 0, table, elements * 4);
    free(table);
    return true;
}

bool parameters_initialise(const Backend *backend, Executor *executor, const Program *program,
                           uint64_t seed, Error *error) {
    Scratch *scratch = allocate(1, sizeof *scratch, error);
    if (!scratch) return false;
    for (int i = 0; i < program->parameter_count; i++) {
        const Parameter *parameter = &program->parameters[i];
        int64_t elements = elements_of(program, parameter);
        for (int64_t first = 0; first < elements; first += BLOCK) {
            int64_t count = block_end(first, elements) - first;
            model_initialise(program, i, seed, first, count, scratch->values);
            set_block(backend, executor, program, parameter, first, count, scratch);
        }
    }
    free(scratch);
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

static bool can_read(TensorType type) {
    return type == TENSOR_F32 || type == TENSOR_BF16 || type == TENSOR_F16;
}

/* Elements first..first + count - 1, one by one through memcpy: a file's data need not be aligned. */
static void read_block(const Tensor *tensor, int64_t first, int64_t count, float *values) {
    const uint8_t *data =
        (const uint8_t *)tensor->data + (size_t)first * tensor_type_size(tensor->type);
    if (tensor->type == TENSOR_F32) memcpy(values, data, (size_t)count * 4);
    for (int64_t i = 0; tensor->type != TENSOR_F32 && i < count; i++) {
        uint16_t bits;
        memcpy(&bits, data + 2 * i, 2);
        values[i] = tensor->type == TENSOR_BF16 ? bf16_to_float(bits) : half_to_float(bits);
    }
}

/* The pages read so far would count as the process's; the kernel maps more of them than were touched. */
static void release(const Safetensors *file) {
    file_map_release(file->map.data, file->map.size);
}

static bool check_shape(const Program *program, const Parameter *parameter, const Tensor *tensor,
                        const char *path, Error *error) {
    int64_t columns = columns_of(program, parameter);
    bool vector = !role_is_matrix(program->weights[parameter->weight].role);
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

/* The file's tensor for a parameter, of its shape and of a type that can be read, or NULL. */
static const Tensor *find_tensor(const Program *program, const Parameter *parameter,
                                 const Safetensors *file, const char *path, Error *error) {
    const Tensor *tensor = safetensors_find(file, parameter->name);
    if (!tensor) {
        fail(error, "%s has no tensor %s, which the model needs", path, parameter->name);
    } else if (check_shape(program, parameter, tensor, path, error)) {
        if (can_read(tensor->type)) return tensor;
        fail(error, "%s: %s is of type %s; fp32, bf16 and fp16 can be read", path, parameter->name,
             tensor_type_name(tensor->type));
    }
    return NULL;
}

static bool refuse_unknown(const Program *program, const Safetensors *file, const char *path,
                           Error *error) {
    for (int t = 0; t < file->count; t++) {
        bool known = false;
        for (int i = 0; i < program->parameter_count && !known; i++)
            known = !strcmp(file->tensors[t].name, program->parameters[i].name);
        if (!known)
            return fail(error,
                        "%s holds a tensor %.100s that the model does not have: is it another "
                        "model?",
                        path, file->tensors[t].name);
    }
    return true;
}

bool parameters_load(const Backend *backend, Executor *executor, const Program *program,
                     const Safetensors *file, const char *path, Error *error) {
    if (!refuse_unknown(program, file, path, error)) return false;
    Scratch *scratch = allocate(1, sizeof *scratch, error);
    bool done = scratch != NULL;
    for (int i = 0; done && i < program->parameter_count; i++) {
        const Parameter *parameter = &program->parameters[i];
        const Tensor *tensor = find_tensor(program, parameter, file, path, error);
        int64_t elements = elements_of(program, parameter);
        done = tensor != NULL;
        for (int64_t first = 0; done && first < elements; first += BLOCK) {
            int64_t count = block_end(first, elements) - first;
            read_block(tensor, first, count, scratch->values);
            release(file);
            set_block(backend, executor, program, parameter, first, count, scratch);
        }
    }
    free(scratch);
    return done;
}

/* Where a tensor lies: its read() copies it from there. */
struct TensorPlace {
    const Backend *backend;
    Executor *executor;
    int buffer;
    int64_t offset; /* bytes */
};

static bool read_tensor(const Tensor *tensor, size_t offset, void *out, size_t bytes,
                        Error *error) {
    const TensorPlace *place = tensor->source;
    return place->backend->download(place->executor, place->buffer, place->offset + (int64_t)offset,
                                    out, (int64_t)bytes, error);
}

static bool make_room(ProgramTensors *tensors, int count, Error *error) {
    *tensors = (ProgramTensors){0};
    tensors->tensors = allocate((size_t)count, sizeof *tensors->tensors, error);
    tensors->places = allocate((size_t)count, sizeof *tensors->places, error);
    return tensors->tensors && tensors->places;
}

/* Adds a tensor of what begins `first` elements into a buffer; `shape` says how much that is. */
static bool add_tensor(ProgramTensors *tensors, TensorPlace place, const Buffer *buffer,
                       int64_t first, Tensor shape, const char *name, Error *error) {
    static const TensorType types[DTYPES] = {TENSOR_F32, TENSOR_BF16, TENSOR_I32, TENSOR_U8,
                                             TENSOR_F64};
    Tensor *tensor = &tensors->tensors[tensors->count];
    int64_t element = dtype_size(buffer->dtype);
    *tensor = shape;
    tensor->type = types[buffer->dtype];
    tensor->bytes = (size_t)element;
    for (int i = 0; i < shape.rank; i++) tensor->bytes *= (size_t)shape.shape[i];
    tensor->read = read_tensor;
    tensor->source = &tensors->places[tensors->count];
    place.offset = first * element;
    tensors->places[tensors->count] = place;
    tensor->name = copy_string(name, error);
    if (!tensor->name) return false;
    tensors->count++;
    return true;
}

void program_tensors_free(ProgramTensors *tensors) {
    for (int i = 0; i < tensors->count; i++) free(tensors->tensors[i].name);
    free(tensors->tensors);
    free(tensors->places);
    *tensors = (ProgramTensors){0};
}

bool parameters_tensors(ProgramTensors *tensors, const Backend *backend, Executor *executor,
                        const Program *program, Error *error) {
    TensorPlace place = {backend, executor, program->master, 0};
    bool done = make_room(tensors, program->parameter_count, error);
    for (int i = 0; done && i < program->parameter_count; i++) {
        const Parameter *parameter = &program->parameters[i];
        int64_t columns = columns_of(program, parameter);
        Tensor shape = {.rank = 1, .shape = {columns}};
        if (role_is_matrix(program->weights[parameter->weight].role))
            shape = (Tensor){.rank = 2, .shape = {parameter->rows, columns}};
        done = add_tensor(tensors, place, &program->buffers[place.buffer],
                          parameter_offset(program, parameter), shape, parameter->name, error);
    }
    if (!done) program_tensors_free(tensors);
    return done;
}

/* A list in the making of tensors that lie in the program's buffers. */
typedef struct StateList {
    ProgramTensors *tensors;
    const Program *program;
    TensorPlace place;
} StateList;

/* Elements of a buffer of the state, unless the program has no such buffer: as "NAME.SUFFIX". */
static bool add_state(StateList *list, int buffer, int64_t first, int64_t elements,
                      const char *name, const char *suffix, Error *error) {
    if (buffer < 0) return true;
    char full[sizeof list->program->parameters->name + 16];
    snprintf(full, sizeof full, "%s.%s", name, suffix);
    list->place.buffer = buffer;
    Tensor shape = {.rank = 1, .shape = {elements}};
    return add_tensor(list->tensors, list->place, &list->program->buffers[buffer], first, shape,
                      full, error);
}

/* AdamW's state of a weight. */
static bool add_moments(StateList *list, const Weight *weight, Error *error) {
    const Program *program = list->program;
    int64_t first = weight->state_offset, n = weight->rows * weight->columns,
            block = first / STATE_BLOCK, blocks = divide_up(n, STATE_BLOCK);
    return add_state(list, program->moment1, first, n, weight->name, "moment1", error) &&
           add_state(list, program->moment2, first, n, weight->name, "moment2", error) &&
           add_state(list, program->absmax1, block, blocks, weight->name, "absmax1", error) &&
           add_state(list, program->absmax2, block, blocks, weight->name, "absmax2", error);
}

/* Muon's state of a parameter. */
static bool add_momentum(StateList *list, const Parameter *parameter, Error *error) {
    const Program *program = list->program;
    return add_state(list, program->momentum, parameter->momentum_offset,
                     elements_of(program, parameter), parameter->name, "momentum", error) &&
           add_state(list, program->variance, parameter->variance_offset,
                     larger(parameter->rows, columns_of(program, parameter)), parameter->name,
                     "variance", error);
}

bool optimizer_tensors(ProgramTensors *tensors, const Backend *backend, Executor *executor,
                       const Program *program, Error *error) {
    StateList list = {tensors, program, {backend, executor, -1, 0}};
    bool done = make_room(tensors, 4 * program->weight_count + 2 * program->parameter_count, error);
    for (int i = 0; done && i < program->weight_count; i++)
        if (program->weights[i].state_offset >= 0)
            done = add_moments(&list, &program->weights[i], error);
    for (int i = 0; done && i < program->parameter_count; i++)
        if (program->parameters[i].momentum_offset >= 0)
            done = add_momentum(&list, &program->parameters[i], error);
    if (!done) program_tensors_free(tensors);
    return done;
}

static void upload_tensor(const TensorPlace *place, const Tensor *tensor, const Safetensors *file) {
    const uint8_t *data = tensor->data;
    for (size_t first = 0; first < tensor->bytes; first += BLOCK) {
        size_t size = tensor->bytes - first < BLOCK ? tensor->bytes - first : BLOCK;
        place->backend->upload(place->executor, place->buffer, place->offset + (int64_t)first,
                               data + first, (int64_t)size);
        release(file);
    }
}

bool optimizer_load(const Backend *backend, Executor *executor, const Program *program,
                    const Safetensors *file, const char *path, Error *error) {
    ProgramTensors wanted;
    bool done = optimizer_tensors(&wanted, backend, executor, program, error);
    for (int i = 0; done && i < wanted.count; i++) {
        const Tensor *want = &wanted.tensors[i], *tensor = safetensors_find(file, want->name);
        if (!tensor || tensor->type != want->type || tensor->bytes != want->bytes)
            done = fail(error,
                        "%s: %s is missing or of another format; resume with the same "
                        "--optimizer and --optimizer-state that the checkpoint was written with",
                        path, want->name);
        else
            upload_tensor(&wanted.places[i], tensor, file);
    }
    program_tensors_free(&wanted);
    return done;
}
