#include "data/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/shard.h"

static const char FORMAT[] = "hearth dataset";

const char *split_name(Split split) {
    return split == SPLIT_TRAIN ? "train" : "val";
}

void manifest_free(Manifest *manifest) {
    for (int s = 0; s < 2; s++) {
        ManifestSplit *split = &manifest->splits[s];
        for (size_t i = 0; i < split->shard_count; i++) free(split->shards[i].name);
        free(split->shards);
        free(split->starts.name);
    }
    *manifest = (Manifest){0};
}

ManifestFile *manifest_add_shard(ManifestSplit *split, const char *name, Error *error) {
    if (!reserve(&split->shards, &split->shard_capacity, split->shard_count + 1,
                 sizeof *split->shards, error))
        return NULL;
    ManifestFile *shard = &split->shards[split->shard_count];
    *shard = (ManifestFile){.name = copy_string(name, error)};
    if (!shard->name) return NULL;
    split->shard_count++;
    return shard;
}

bool manifest_fingerprint(const Manifest *manifest, char out[SHA256_TEXT], Error *error) {
    Bytes all = {0};
    bool done = true;
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; done && i < manifest->splits[s].shard_count; i++)
            done = bytes_append(&all, manifest->splits[s].shards[i].sha256, SHA256_TEXT - 1, error);
    if (done) sha256_bytes(all.data, all.size, out);
    bytes_free(&all);
    return done;
}

/* Reading: every member is checked, since the file may come from anywhere. */

static bool read_hash(const json_t *object, const char *key, char out[SHA256_TEXT], Error *error) {
    const char *text = json_get_string(object, key, error);
    if (!text) return false;
    if (strlen(text) != SHA256_TEXT - 1 || strspn(text, "0123456789abcdef") != SHA256_TEXT - 1)
        return fail(error, "\"%s\" is not a SHA-256 of 64 hexadecimal digits", key);
    memcpy(out, text, SHA256_TEXT);
    return true;
}

/* A name must stay inside the directory. */
static const char *read_name(const json_t *object, Error *error) {
    const char *name = json_get_string(object, "file", error);
    if (!name) return NULL;
    if (*name && *name != '.' && !strchr(name, '/')) return name;
    fail(error, "\"file\" is \"%.64s\", which is not the plain name of a file", name);
    return NULL;
}

static bool read_shard(ManifestSplit *split, const json_t *object, Error *error) {
    const char *name = read_name(object, error);
    ManifestFile *shard = name ? manifest_add_shard(split, name, error) : NULL;
    return shard && read_hash(object, "sha256", shard->sha256, error) &&
           json_get_integer(object, "tokens", 0, SHARD_TOKENS_MAX, &shard->tokens, error) &&
           json_get_integer(object, "documents", 0, shard->tokens, &shard->documents, error);
}

static bool read_shards(ManifestSplit *split, const json_t *array, Error *error) {
    if (!json_is_array(array)) return fail(error, "\"shards\" is not a list");
    int64_t tokens = 0, documents = 0;
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!read_shard(split, json_array_get(array, i), error))
            return fail_within(error, "shard %zu", i);
        tokens += split->shards[i].tokens;
        documents += split->shards[i].documents;
    }
    if (tokens != split->tokens || documents != split->documents)
        return fail(error, "its shards hold %lld tokens and %lld documents, not %lld and %lld",
                    (long long)tokens, (long long)documents, (long long)split->tokens,
                    (long long)split->documents);
    return true;
}

static bool read_split(ManifestSplit *split, const json_t *object, Error *error) {
    const json_t *starts = json_object_get(object, "document_starts");
    if (!json_get_integer(object, "tokens", 0, INT64_MAX / 16, &split->tokens, error) ||
        !json_get_integer(object, "documents", 0, split->tokens, &split->documents, error) ||
        !json_get_integer(object, "bytes", 0, INT64_MAX, &split->bytes, error))
        return false;
    if (split->tokens && !split->documents) return fail(error, "it has tokens but no document");
    const char *name = read_name(starts, error);
    split->starts.name = name ? copy_string(name, error) : NULL;
    if (!split->starts.name || !read_hash(starts, "sha256", split->starts.sha256, error))
        return fail_within(error, "\"document_starts\"");
    return read_shards(split, json_object_get(object, "shards"), error);
}

static bool read_root(Manifest *manifest, const json_t *root, Error *error) {
    int64_t version, vocab, separator;
    const char *format = json_get_string(root, "format", error);
    if (!format) return false;
    if (strcmp(format, FORMAT)) return fail(error, "\"format\" is not \"%s\"", FORMAT);
    if (!json_get_integer(root, "version", 0, INT64_MAX, &version, error)) return false;
    if (version != DATASET_VERSION)
        return fail(error, "it is of version %lld; this hearth reads version %d: build it again",
                    (long long)version, DATASET_VERSION);
    if (!read_hash(root, "tokenizer_hash", manifest->tokenizer_hash, error) ||
        !json_get_integer(root, "vocab_size", 1, INT32_MAX, &vocab, error) ||
        !json_get_integer(root, "separator", 0, vocab - 1, &separator, error))
        return false;
    manifest->vocab_size = (uint32_t)vocab;
    manifest->separator = (uint32_t)separator;
    const json_t *splits = json_object_get(root, "splits");
    for (int s = 0; s < 2; s++)
        if (!read_split(&manifest->splits[s], json_object_get(splits, split_name((Split)s)), error))
            return fail_within(error, "split \"%s\"", split_name((Split)s));
    return true;
}

bool manifest_read(Manifest *manifest, const char *directory, Error *error) {
    *manifest = (Manifest){0};
    char *path = path_join(directory, "dataset.json", error);
    if (!path) return false;
    json_t *root = json_read_file(path, 64u << 20, error);
    bool done = root != NULL;
    if (done && !read_root(manifest, root, error)) done = fail_within(error, "%s", path);
    if (!done) manifest_free(manifest);
    json_decref(root);
    free(path);
    return done;
}

/* Writing. json_pack() yields NULL when memory runs out, and so does all that is built on it. */

static json_t *shard_json(const ManifestFile *shard) {
    return json_pack("{s:s, s:I, s:I, s:s}", "file", shard->name, "tokens",
                     (json_int_t)shard->tokens, "documents", (json_int_t)shard->documents, "sha256",
                     shard->sha256);
}

static json_t *split_json(const ManifestSplit *split) {
    json_t *shards = json_array();
    bool done = shards != NULL;
    for (size_t i = 0; done && i < split->shard_count; i++)
        done = json_array_append_new(shards, shard_json(&split->shards[i])) == 0;
    if (!done) {
        json_decref(shards);
        return NULL;
    }
    return json_pack("{s:I, s:I, s:I, s:{s:s, s:s}, s:o}", "tokens", (json_int_t)split->tokens,
                     "documents", (json_int_t)split->documents, "bytes", (json_int_t)split->bytes,
                     "document_starts", "file", split->starts.name, "sha256", split->starts.sha256,
                     "shards", shards);
}

bool manifest_write(const Manifest *manifest, const char *directory, Error *error) {
    char *path = path_join(directory, "dataset.json", error);
    if (!path) return false;
    json_t *train = split_json(&manifest->splits[SPLIT_TRAIN]);
    json_t *validation = split_json(&manifest->splits[SPLIT_VALIDATION]);
    json_t *root = json_pack(
        "{s:s, s:i, s:s, s:I, s:I, s:{s:o, s:o}}", "format", FORMAT, "version", DATASET_VERSION,
        "tokenizer_hash", manifest->tokenizer_hash, "vocab_size", (json_int_t)manifest->vocab_size,
        "separator", (json_int_t)manifest->separator, "splits", "train", train, "val", validation);
    bool done =
        root ? json_write_file(path, root, error) : fail(error, "out of memory writing %s", path);
    json_decref(root);
    free(path);
    return done;
}
