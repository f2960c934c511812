#include "files/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { LENGTH_BYTES = 8, HEADER_BYTES_MAX = 100000000 };

static const char metadata_key[] = "__metadata__";

static const struct {
    const char *name;
    size_t size;
} types[TENSOR_TYPES] = {
    [TENSOR_BOOL] = {"BOOL", 1},       [TENSOR_U8] = {"U8", 1},
    [TENSOR_I8] = {"I8", 1},           [TENSOR_F8_E5M2] = {"F8_E5M2", 1},
    [TENSOR_F8_E4M3] = {"F8_E4M3", 1}, [TENSOR_I16] = {"I16", 2},
    [TENSOR_U16] = {"U16", 2},         [TENSOR_F16] = {"F16", 2},
    [TENSOR_BF16] = {"BF16", 2},       [TENSOR_I32] = {"I32", 4},
    [TENSOR_U32] = {"U32", 4},         [TENSOR_F32] = {"F32", 4},
    [TENSOR_F64] = {"F64", 8},         [TENSOR_I64] = {"I64", 8},
    [TENSOR_U64] = {"U64", 8},
};

size_t tensor_type_size(TensorType type) {
    return types[type].size;
}

const char *tensor_type_name(TensorType type) {
    return types[type].name;
}

/* Whether `bytes` is what the type and the shape take; false also when that overflows. */
static bool size_matches(const Tensor *tensor) {
    size_t bytes = types[tensor->type].size;
    bool overflow = false, empty = false;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < 0) return false;
        if (tensor->shape[i] == 0)
            empty = true;
        else
            overflow |= __builtin_mul_overflow(bytes, (size_t)tensor->shape[i], &bytes);
    }
    return empty ? tensor->bytes == 0 : !overflow && tensor->bytes == bytes;
}

/* ---- Reading ---- */

static bool read_type(TensorType *type, const json_t *entry, Error *error) {
    const char *name = json_get_string(entry, "dtype", error);
    if (!name) return false;
    for (int i = 0; i < TENSOR_TYPES; i++) {
        if (strcmp(name, types[i].name) != 0) continue;
        *type = (TensorType)i;
        return true;
    }
    return fail(error, "dtype \"%.20s\" is not known", name);
}

static bool read_shape(Tensor *tensor, const json_t *entry, Error *error) {
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) return fail(error, "\"shape\" is missing or not an array");
    size_t rank = json_array_size(shape);
    if (rank > TENSOR_RANK_MAX)
        return fail(error, "%zu dimensions; at most %d are supported", rank, TENSOR_RANK_MAX);
    tensor->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dimension = json_array_get(shape, i);
        tensor->shape[i] = json_integer_value(dimension);
        if (!json_is_integer(dimension) || tensor->shape[i] < 0)
            return fail(error, "dimension %zu of the shape is not a whole number >= 0", i);
    }
    return true;
}

static bool read_offsets(Tensor *tensor, const json_t *entry, const uint8_t *data,
                         size_t data_bytes, Error *error) {
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return fail(error, "\"data_offsets\" is not an array of two whole numbers");
    int64_t first = json_integer_value(begin), last = json_integer_value(end);
    if (first < 0 || last < first || (uint64_t)last > data_bytes)
        return fail(error, "data_offsets [%lld, %lld] do not lie in the %zu bytes of data",
                    (long long)first, (long long)last, data_bytes);
    tensor->data = data + first;
    tensor->bytes = (size_t)(last - first);
    if (!size_matches(tensor))
        return fail(error, "%zu bytes of data do not match the dtype and shape", tensor->bytes);
    return true;
}

/* The parsed header; *start is where the data begins. NULL with an error. */
static json_t *read_header(const FileMap *map, size_t *start, Error *error) {
    uint64_t length = 0;
    if (map->size < LENGTH_BYTES) {
        fail(error, "%zu bytes are too few for a header", map->size);
        return NULL;
    }
    for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)map->data[i] << (8 * i);
    if (length > HEADER_BYTES_MAX || length > map->size - LENGTH_BYTES) {
        fail(error, "a header of %llu bytes exceeds the file or the limit of 100 MB",
             (unsigned long long)length);
        return NULL;
    }
    if (length == 0 || map->data[LENGTH_BYTES] != '{') {
        fail(error, "the header does not begin with '{'");
        return NULL;
    }
    *start = LENGTH_BYTES + (size_t)length;
    return json_read_bytes("the header", map->data + LENGTH_BYTES, (size_t)length, error);
}

static bool check_metadata(json_t *metadata, Error *error) {
    if (!json_is_object(metadata)) return fail(error, "%s is not an object", metadata_key);
    const char *key;
    json_t *value;
    json_object_foreach (metadata, key, value) {
        if (!json_is_string(value))
            return fail(error, "%s: \"%.100s\" is not a string", metadata_key, key);
    }
    return true;
}

static bool read_tensors(Safetensors *file, json_t *header, size_t start, Error *error) {
    file->tensors = allocate(json_object_size(header), sizeof *file->tensors, error);
    if (!file->tensors) return false;
    const char *key;
    json_t *entry;
    json_object_foreach (header, key, entry) {
        if (strcmp(key, metadata_key) == 0) {
            if (!check_metadata(entry, error)) return false;
            continue;
        }
        Tensor *tensor = &file->tensors[file->count];
        tensor->name = copy_string(key, error);
        if (!tensor->name) return false;
        file->count++;
        if (!read_type(&tensor->type, entry, error) || !read_shape(tensor, entry, error) ||
            !read_offsets(tensor, entry, file->map.data + start, file->map.size - start, error))
            return fail_within(error, "tensor \"%.100s\"", key);
    }
    return true;
}

/* By place; an empty tensor before the one that begins where it stands. */
static int compare_tensors(const void *a, const void *b) {
    const Tensor *left = a, *right = b;
    if (left->data != right->data)
        return (const uint8_t *)left->data < (const uint8_t *)right->data ? -1 : 1;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Every byte of data must belong to exactly one tensor. */
static bool sort_and_check_packed(Safetensors *file, size_t start, Error *error) {
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, compare_tensors);
    const uint8_t *expected = file->map.data + start;
    for (int i = 0; i < file->count; i++) {
        const Tensor *tensor = &file->tensors[i];
        if (tensor->data != expected)
            return fail(error, "tensor \"%.100s\" overlaps another or leaves a hole before it",
                        tensor->name);
        expected += tensor->bytes;
    }
    if (expected != file->map.data + file->map.size)
        return fail(error, "%td bytes at the end belong to no tensor",
                    file->map.data + file->map.size - expected);
    return true;
}

bool safetensors_open(Safetensors *file, const char *path, Error *error) {
    *file = (Safetensors){0};
    if (!file_map(&file->map, path, error)) return false;
    size_t start;
    json_t *header = read_header(&file->map, &start, error);
    bool done = header && read_tensors(file, header, start, error) &&
                sort_and_check_packed(file, start, error);
    json_decref(header);
    if (done) return true;
    safetensors_close(file);
    return fail_within(error, "cannot read %s as safetensors", path);
}

void safetensors_close(Safetensors *file) {
    for (int i = 0; i < file->count; i++) free(file->tensors[i].name);
    free(file->tensors);
    file_unmap(&file->map);
    *file = (Safetensors){0};
}

const Tensor *safetensors_find(const Safetensors *file, const char *name) {
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
    return NULL;
}

/* ---- Writing ---- */

static bool add_metadata(json_t *header, const char *const *metadata, Error *error) {
    json_t *pairs = json_object();
    bool done = pairs != NULL;
    for (; done && metadata && *metadata; metadata += 2)
        done = json_object_set_new(pairs, metadata[0], json_string(metadata[1])) == 0;
    if (done && json_object_size(pairs) > 0)
        done = json_object_set(header, metadata_key, pairs) == 0;
    json_decref(pairs);
    return done || fail(error, "the metadata is not UTF-8 or memory is exhausted");
}

/* Adds the tensor's entry and moves *offset past its data. */
static bool add_entry(json_t *header, const Tensor *tensor, size_t *offset, Error *error) {
    if (tensor->rank < 0 || tensor->rank > TENSOR_RANK_MAX || !size_matches(tensor))
        return fail(error, "%zu bytes of data do not match the dtype and shape", tensor->bytes);
    if (json_object_get(header, tensor->name) || strcmp(tensor->name, metadata_key) == 0)
        return fail(error, "the name is taken already");
    json_t *shape = json_array();
    for (int i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer(tensor->shape[i]));
    size_t begin = *offset;
    *offset += tensor->bytes;
    bool whole = json_array_size(shape) == (size_t)tensor->rank; /* less when memory ran out */
    json_t *entry =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensor_type_name(tensor->type), "shape", shape,
                  "data_offsets", (json_int_t)begin, (json_int_t)*offset);
    bool done = json_object_set_new(header, tensor->name, entry) == 0 && whole;
    return done || fail(error, "the name is not UTF-8 or memory is exhausted");
}

static bool header_text(Bytes *text, const Tensor *tensors, int count, const char *const *metadata,
                        Error *error) {
    json_t *header = json_object();
    size_t offset = 0;
    bool done = header ? add_metadata(header, metadata, error) : fail(error, "out of memory");
    for (int i = 0; done && i < count; i++) {
        done = add_entry(header, &tensors[i], &offset, error);
        if (!done) fail_within(error, "tensor \"%.100s\"", tensors[i].name);
    }
    done = done && json_to_text(text, header, JSON_COMPACT, error);
    json_decref(header);
    size_t padding = (8 - text->size % 8) % 8; /* the length before it is 8 bytes */
    done = done && bytes_append(text, "       ", padding, error);
    if (done && text->size > HEADER_BYTES_MAX)
        done = fail(error, "a header of %zu bytes exceeds the limit of 100 MB", text->size);
    return done;
}

static bool write_header(FileWriter *writer, const Bytes *text, Error *error) {
    uint8_t length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++) length[i] = (uint8_t)((uint64_t)text->size >> (8 * i));
    return file_writer_write(writer, length, sizeof length, error) &&
           file_writer_write(writer, text->data, text->size, error);
}

/* Piece by piece: only these are in memory twice. */
static bool write_from_source(FileWriter *writer, const Tensor *tensor, Error *error) {
    enum { PIECE = 4 << 20 };
    uint8_t *piece = allocate(PIECE, 1, error);
    bool done = piece != NULL;
    for (size_t offset = 0; done && offset < tensor->bytes; offset += PIECE) {
        size_t size = tensor->bytes - offset < PIECE ? tensor->bytes - offset : PIECE;
        done = tensor->read(tensor, offset, piece, size, error) &&
               file_writer_write(writer, piece, size, error);
    }
    free(piece);
    return done;
}

static bool write_data(FileWriter *writer, const Tensor *tensor, Error *error) {
    return tensor->read ? write_from_source(writer, tensor, error)
                        : file_writer_write(writer, tensor->data, tensor->bytes, error);
}

bool safetensors_write(const char *path, const Tensor *tensors, int count,
                       const char *const *metadata, char sha256[SHA256_TEXT], Error *error) {
    Bytes text = {0};
    FileWriter *writer = NULL;
    bool done = header_text(&text, tensors, count, metadata, error) ||
                fail_within(error, "cannot write %s", path);
    done = done && (writer = file_writer_open(path, error)) && write_header(writer, &text, error);
    bytes_free(&text);
    for (int i = 0; done && i < count; i++) done = write_data(writer, &tensors[i], error);
    if (done) return file_writer_commit(writer, sha256, error);
    file_writer_discard(writer);
    return false;
}
