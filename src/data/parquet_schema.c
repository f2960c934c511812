#include "data/parquet_schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { REQUIRED, OPTIONAL, REPEATED };
enum { GROUP = -1, BYTE_ARRAY = 6, FIXED_LEN_BYTE_ARRAY = 7 };
enum { DEPTH_LIMIT = 64, LISTED_BYTES = 600, LISTED_NAME_BYTES = 60 };

static const char *const types[] = {"BOOLEAN", "INT32",  "INT64",      "INT96",
                                    "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
enum { TYPES = sizeof types / sizeof *types };

/* Annotations of byte arrays that hold something else than text, by their number as a "logical" and as
 * a "converted" type. */
static const struct {
    const char *name;
    int logical, converted;
} not_text[] = {{"DECIMAL", 5, 5},    {"INTERVAL", -1, 21}, {"UUID", 14, -1},
                {"FLOAT16", 15, -1},  {"VARIANT", 16, -1},  {"GEOMETRY", 17, -1},
                {"GEOGRAPHY", 18, -1}};

/* The logical type, on any physical one, of a column that was written without a single value. */
enum { LOGICAL_NULL = 11 };

/* The schema is a tree, written parents first. */
typedef struct Node {
    ThriftText name;
    int type; /* GROUP, or a leaf's */
    int repetition;
    int32_t length, children;
    const char *annotation; /* when it is not text */
    size_t parent;          /* the root's is itself */
    unsigned depth, levels;
    bool repeated; /* it or something above it */
    bool nulls_only;
} Node;

typedef struct Schema {
    Node *nodes;
    size_t count, capacity;
} Schema;

static void annotate(Node *node, int logical, int converted) {
    for (size_t i = 0; i < sizeof not_text / sizeof *not_text; i++)
        if ((logical >= 0 && not_text[i].logical == logical) ||
            (converted >= 0 && not_text[i].converted == converted))
            node->annotation = not_text[i].name;
}

static void read_logical_type(Thrift *thrift, Node *node) {
    ThriftField field = {0};
    while (thrift_next_field(thrift, &field)) { /* a union: one field, by its number */
        annotate(node, field.id, -1);
        node->nulls_only |= field.id == LOGICAL_NULL;
        thrift_skip(thrift, &field);
    }
}

static void read_node(Thrift *thrift, Node *node) {
    *node = (Node){.type = GROUP};
    ThriftField field = {0};
    while (thrift_next_field(thrift, &field)) {
        switch (field.id) {
        case 1:
            node->type = thrift_int32(thrift, &field);
            break;
        case 2:
            node->length = thrift_int32(thrift, &field);
            break;
        case 3:
            node->repetition = thrift_int32(thrift, &field);
            break;
        case 4:
            node->name = thrift_text(thrift, &field);
            break;
        case 5:
            node->children = thrift_int32(thrift, &field);
            break;
        case 6:
            annotate(node, -1, thrift_int32(thrift, &field));
            break;
        case 10:
            if (thrift_struct(thrift, &field)) read_logical_type(thrift, node);
            break;
        default:
            thrift_skip(thrift, &field);
        }
    }
}

static bool read_nodes(Thrift thrift, Schema *schema, Error *error) {
    ThriftField field = {0};
    while (thrift_next_field(&thrift, &field)) {
        uint64_t count = field.id == 2 ? thrift_structs(&thrift, &field) : 0;
        if (field.id != 2) thrift_skip(&thrift, &field);
        for (uint64_t i = 0; i < count && !thrift.damaged; i++) {
            if (!reserve(&schema->nodes, &schema->capacity, schema->count + 1,
                         sizeof *schema->nodes, error))
                return false;
            read_node(&thrift, &schema->nodes[schema->count++]);
        }
    }
    return !thrift.damaged || fail(error, "damaged: its metadata cannot be read");
}

/* Fills in what a node gets from those above it. `children` counts down as they are met. */
static bool link_nodes(Schema *schema) {
    Node *nodes = schema->nodes;
    if (!schema->count || nodes[0].type != GROUP) return false;
    size_t parent = 0;
    for (size_t i = 1; i < schema->count; i++) {
        Node *node = &nodes[i];
        while (parent && !nodes[parent].children) parent = nodes[parent].parent;
        if (nodes[parent].children-- <= 0) return false;
        node->parent = parent;
        node->depth = nodes[parent].depth + 1;
        node->levels = nodes[parent].levels + (node->repetition != REQUIRED);
        node->repeated = nodes[parent].repeated || node->repetition == REPEATED;
        bool known = node->type >= GROUP && node->type < TYPES && node->repetition >= REQUIRED &&
                     node->repetition <= REPEATED && node->depth <= DEPTH_LIMIT;
        if (!known || (node->type != GROUP && node->children) || node->children < 0) return false;
        if (node->type == GROUP) parent = i;
    }
    while (parent && !nodes[parent].children) parent = nodes[parent].parent;
    return parent == 0 && !nodes[0].children;
}

/* Whether the names from the root to a node, joined by dots, are this path; compared from its end. */
static bool has_path(const Schema *schema, size_t node, const char *path) {
    size_t left = strlen(path);
    for (;;) {
        ThriftText name = schema->nodes[node].name;
        if (name.size > left) return false;
        left -= name.size;
        if (name.size && memcmp(path + left, name.data, name.size)) return false;
        node = schema->nodes[node].parent;
        if (!node) return left == 0;
        if (!left || path[--left] != '.') return false;
    }
}

static bool append_path(const Schema *schema, size_t node, Bytes *out, Error *error) {
    size_t parent = schema->nodes[node].parent;
    ThriftText name = schema->nodes[node].name;
    int size = (int)(name.size < LISTED_NAME_BYTES ? name.size : LISTED_NAME_BYTES);
    return (!parent ||
            (append_path(schema, parent, out, error) && bytes_append(out, ".", 1, error))) &&
           bytes_append(out, name.data, (size_t)size, error);
}

static bool fail_unknown(const Schema *schema, const char *name, Error *error) {
    Bytes list = {0};
    bool done = true;
    for (size_t i = 1; done && i < schema->count; i++) {
        if (schema->nodes[i].type == GROUP) continue;
        if (list.size) done = bytes_append(&list, ", ", 2, error);
        if (list.size > LISTED_BYTES) {
            done = done && bytes_append(&list, "...", 3, error);
            break;
        }
        done = done && append_path(schema, i, &list, error);
    }
    if (done)
        fail(error, "no column \"%s\"; --field chooses from %.*s", name, (int)list.size,
             list.size ? (const char *)list.data : "");
    bytes_free(&list);
    return false;
}

static bool check_column(const Node *node, const char *name, Error *error) {
    if (node->repeated)
        return fail(error,
                    "column \"%s\" is a list or part of one; choose one that has a string a row",
                    name);
    if (node->nulls_only)
        return fail(error, "column \"%s\" holds nothing but nulls; choose another with --field",
                    name);
    if (node->type != BYTE_ARRAY && node->type != FIXED_LEN_BYTE_ARRAY)
        return fail(error, "column \"%s\" holds %s, not strings; choose another with --field", name,
                    types[node->type]);
    if (node->annotation)
        return fail(error, "column \"%s\" holds %s, not strings; choose another with --field", name,
                    node->annotation);
    return node->type == BYTE_ARRAY || node->length > 0 ||
           fail(error, "damaged: the values of column \"%s\" are %d bytes long", name,
                node->length);
}

static bool find(const Schema *schema, const char *name, ParquetColumn *column, Error *error) {
    const Node *found = NULL;
    *column = (ParquetColumn){.name = name};
    for (size_t i = 1; i < schema->count; i++) {
        const Node *node = &schema->nodes[i];
        if (node->type == GROUP) continue;
        if (has_path(schema, i, name)) {
            if (found)
                return fail(error, "more than one column is called \"%s\"; rename all but one",
                            name);
            found = node;
            column->index = column->columns;
        }
        column->columns++;
    }
    if (!found) return fail_unknown(schema, name, error);
    column->type = found->type;
    column->length = found->type == FIXED_LEN_BYTE_ARRAY ? (size_t)found->length : 0;
    column->levels = found->levels;
    return check_column(found, name, error);
}

bool parquet_schema_find(Thrift metadata, const char *name, ParquetColumn *column, Error *error) {
    Schema schema = {0};
    bool done = read_nodes(metadata, &schema, error) &&
                (link_nodes(&schema) ||
                 fail(error, "damaged: the schema in its metadata makes no sense")) &&
                find(&schema, name, column, error);
    free(schema.nodes);
    return done;
}
