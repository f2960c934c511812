#include "cuda/matmul_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

enum { ALGORITHM_TEXT = 2 * sizeof(cublasLtMatmulAlgo_t) + 1, CACHE_MOST = 16 << 20 };

/* An algorithm is 64 opaque bytes that the same version of cuBLASLt takes back. */
static void to_text(const cublasLtMatmulAlgo_t *algorithm, char text[ALGORITHM_TEXT]) {
    const uint8_t *bytes = (const uint8_t *)algorithm;
    for (size_t i = 0; i < sizeof *algorithm; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static bool from_text(cublasLtMatmulAlgo_t *algorithm, const char *text) {
    uint8_t *bytes = (uint8_t *)algorithm;
    if (strlen(text) != ALGORITHM_TEXT - 1) return false;
    for (size_t i = 0; i < sizeof *algorithm; i++) {
        unsigned value;
        if (sscanf(text + 2 * i, "%2x", &value) != 1) return false;
        bytes[i] = (uint8_t)value;
    }
    return true;
}

/* $XDG_CACHE_HOME/hearth or ~/.cache/hearth, made if need be. */
static char *cache_directory(Error *error) {
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool given = base && *base;
    if (!given && !(home && *home)) {
        fail(error, "neither XDG_CACHE_HOME nor HOME is set");
        return NULL;
    }
    char *directory = path_join(given ? base : home, given ? "hearth" : ".cache/hearth", error);
    if (directory && !directory_create(directory, error)) {
        free(directory);
        return NULL;
    }
    return directory;
}

static char *cache_path(const char *gpu, int driver_version, size_t cublaslt, Error *error) {
    char name[160];
    snprintf(name, sizeof name, "matmuls-%.90s-driver-%d-cublaslt-%zu.json", gpu, driver_version,
             cublaslt);
    for (char *c = name; *c; c++)
        if (*c == ' ' || *c == '/') *c = '-';
    char *directory = cache_directory(error);
    char *path = directory ? path_join(directory, name, error) : NULL;
    free(directory);
    return path;
}

void matmul_cache_open(MatmulCache *cache, const char *gpu, int driver_version, size_t cublaslt) {
    Error error;
    *cache = (MatmulCache){0};
    cache->path = cache_path(gpu, driver_version, cublaslt, &cache->no_place);
    if (cache->path && path_exists(cache->path))
        cache->products = json_read_file(cache->path, CACHE_MOST, &error);
    if (!cache->products) cache->products = json_object();
}

void matmul_cache_close(MatmulCache *cache) {
    Error error = cache->no_place;
    if (cache->changed && (!cache->path || !json_write_file(cache->path, cache->products, &error)))
        log_warning("the choice of matmul algorithms is not kept: %s. It is made again at the next "
                    "start, perhaps otherwise, and a resumed run may then differ in its last bits",
                    error.message);
    json_decref(cache->products);
    free(cache->path);
    *cache = (MatmulCache){0};
}

bool matmul_cache_find(const MatmulCache *cache, const char *product,
                       cublasLtMatmulAlgo_t *algorithm) {
    const char *text =
        json_string_value(json_object_get(json_object_get(cache->products, product), "algorithm"));
    return text && from_text(algorithm, text);
}

static json_t *entry_of(MatmulCache *cache, const char *product) {
    json_t *entry = json_object_get(cache->products, product);
    if (json_is_object(entry)) return entry;
    entry = json_object();
    json_object_set_new(cache->products, product, entry);
    return entry;
}

void matmul_cache_set(MatmulCache *cache, const char *product,
                      const cublasLtMatmulAlgo_t *algorithm) {
    char text[ALGORITHM_TEXT];
    to_text(algorithm, text);
    json_object_set_new(entry_of(cache, product), "algorithm", json_string(text));
    cache->changed = true;
}

bool matmul_cache_failed(const MatmulCache *cache, const char *product,
                         const cublasLtMatmulAlgo_t *algorithm) {
    char text[ALGORITHM_TEXT];
    to_text(algorithm, text);
    const json_t *failed = json_object_get(json_object_get(cache->products, product), "failed");
    for (size_t i = 0; i < json_array_size(failed); i++) {
        const char *other = json_string_value(json_array_get(failed, i));
        if (other && !strcmp(other, text)) return true;
    }
    return false;
}

void matmul_cache_set_failed(MatmulCache *cache, const char *product,
                             const cublasLtMatmulAlgo_t *algorithm) {
    char text[ALGORITHM_TEXT];
    to_text(algorithm, text);
    json_t *entry = entry_of(cache, product), *failed = json_object_get(entry, "failed");
    if (!json_is_array(failed)) {
        failed = json_array();
        json_object_set_new(entry, "failed", failed);
    }
    json_array_append_new(failed, json_string(text));
    cache->changed = true;
}
