#include "step/offload.h"

#include <stdlib.h>

#include "base/integer.h"
#include "base/memory.h"

const char *offload_name(Offload offload) {
    static const char *const names[OFFLOADS] = {"none", "state", "activations", "all"};
    return names[offload];
}

/* A copy to be put in: started before operation `start` of the list as it was, and waited for before
 * operation `wait`. Either may be the end of the section. */
typedef struct Copy {
    Operand to, from;
    int64_t n;
    SectionKind section;
    int start, wait;
    int id;
} Copy;

/* A copy's start or wait: what is put in before an operation of the list as it was. */
typedef struct Event {
    SectionKind section;
    int before;
    bool start;
    int copy; /* its number */
} Event;

typedef struct Rewrite {
    Program *program;
    Operation *source; /* the operations before the rewrite */
    Copy *copies;
    int copy_count;
    size_t copy_capacity;
    Event *events; /* those not yet put in; behind the last, one that stands before nothing */
    bool under_way[COPIES_AT_ONCE]; /* ids in use */
    bool crowded;                   /* there were not enough */
} Rewrite;

static void plan_copy(Rewrite *rewrite, Copy copy) {
    Error error;
    if (!reserve(&rewrite->copies, &rewrite->copy_capacity, (size_t)rewrite->copy_count + 1,
                 sizeof copy, &error))
        rewrite->program->failed = true;
    else
        rewrite->copies[rewrite->copy_count++] = copy;
}

/* ---- Activations ---- */

/* Where a buffer is used in the micro-batch: its last operation of the forward pass, its first of the
 * backward pass; -1 for none. */
typedef struct Span {
    int forward, backward;
} Span;

static void note_use(Span *spans, Operand operand, int when, int backward_begin) {
    if (operand.buffer < 0) return;
    Span *span = &spans[operand.buffer];
    if (when < backward_begin)
        span->forward = when;
    else if (span->backward < 0)
        span->backward = when;
}

static void find_spans(const Rewrite *rewrite, Span *spans, int buffers) {
    const Program *program = rewrite->program;
    for (int b = 0; b < buffers; b++) spans[b] = (Span){-1, -1};
    for (int o = 0; o < program->sections[SECTION_MICRO_BATCH].count; o++) {
        const Operation *operation = &rewrite->source[o];
        for (int i = 0; i < OPERATION_INPUTS; i++)
            note_use(spans, operation->inputs[i], o, program->backward_begin);
        for (int i = 0; i < OPERATION_OUTPUTS; i++)
            note_use(spans, operation->outputs[i], o, program->backward_begin);
    }
}

/* Layers, and how many operations one has in each pass. */
typedef struct Layers {
    int count, forward, backward;
} Layers;

static Layers measure_layers(const Rewrite *rewrite) {
    const Program *program = rewrite->program;
    Layers layers = {0};
    for (int o = 0; o < program->sections[SECTION_MICRO_BATCH].count; o++) {
        int layer = rewrite->source[o].layer;
        if (layer < 0) continue;
        if (layer >= layers.count) layers.count = layer + 1;
        *(o < program->backward_begin ? &layers.forward : &layers.backward) += 1;
    }
    if (layers.count) layers.forward /= layers.count, layers.backward /= layers.count;
    return layers;
}

/* Kept for the backward of a layer, long enough for both copies; but not of the last layer, which the
 * backward pass begins with. */
static bool is_kept(const Rewrite *rewrite, int buffer, Span span, const Layers *layers) {
    if (rewrite->program->buffers[buffer].kind != BUFFER_ACTIVATION) return false;
    if (span.forward < 0 || span.backward < 0) return false;
    int layer = rewrite->source[span.backward].layer;
    if (layer < 0 || layer == layers->count - 1) return false;
    return span.backward - span.forward > layers->forward + layers->backward;
}

static int add_like(Program *program, int index, MemorySpace space, const char *suffix) {
    Buffer original = program->buffers[index];
    int copy = program_buffer(program, original.kind, original.dtype, original.elements, "%.22s%s",
                              original.name, suffix);
    if (copy >= 0) program->buffers[copy].space = space;
    return copy;
}

/* Stores a buffer behind its last use in the forward pass and fetches it before its first in the backward
 * pass; each copy has about a layer's work to hide behind. Returns the buffer it is fetched into. */
static int offload_activation(Rewrite *rewrite, int buffer, Span span, const Layers *layers) {
    Program *program = rewrite->program;
    int64_t n = program->buffers[buffer].elements;
    int host = add_like(program, buffer, SPACE_HOST, " on host"),
        fetched = add_like(program, buffer, SPACE_DEVICE, " fetched");
    plan_copy(rewrite, (Copy){.to = whole(host),
                              .from = whole(buffer),
                              .n = n,
                              .section = SECTION_MICRO_BATCH,
                              .start = span.forward + 1,
                              .wait = span.forward + 1 + layers->forward});
    plan_copy(rewrite, (Copy){.to = whole(fetched),
                              .from = whole(host),
                              .n = n,
                              .section = SECTION_MICRO_BATCH,
                              .start = span.backward - layers->backward,
                              .wait = span.backward});
    return fetched;
}

/* Operands of the backward pass that name an offloaded buffer name the fetched one. */
static void rename_backward(Rewrite *rewrite, const int *fetched) {
    const Program *program = rewrite->program;
    for (int o = program->backward_begin; o < program->sections[SECTION_MICRO_BATCH].count; o++) {
        Operation *operation = &rewrite->source[o];
        for (int i = 0; i < OPERATION_INPUTS; i++)
            if (operation->inputs[i].buffer >= 0)
                operation->inputs[i].buffer = fetched[operation->inputs[i].buffer];
        for (int i = 0; i < OPERATION_OUTPUTS; i++)
            if (operation->outputs[i].buffer >= 0)
                operation->outputs[i].buffer = fetched[operation->outputs[i].buffer];
    }
}

/* Small buffers (statistics) stay: they would save nothing and each costs two copies. */
static bool offload_activations(Rewrite *rewrite, Error *error) {
    enum { SMALL_SHARE = 16 }; /* of the largest */
    int buffers = rewrite->program->buffer_count;
    int64_t largest = 0;
    Span *spans = allocate((size_t)buffers, sizeof *spans, error);
    int *fetched = spans ? allocate((size_t)buffers, sizeof *fetched, error) : NULL;
    if (fetched) {
        Layers layers = measure_layers(rewrite);
        find_spans(rewrite, spans, buffers);
        for (int b = 0; b < buffers; b++) {
            int64_t bytes = buffer_bytes(&rewrite->program->buffers[b]);
            if (is_kept(rewrite, b, spans[b], &layers) && bytes > largest) largest = bytes;
        }
        for (int b = 0; b < buffers; b++) {
            bool large = buffer_bytes(&rewrite->program->buffers[b]) > largest / SMALL_SHARE;
            fetched[b] = b;
            if (large && is_kept(rewrite, b, spans[b], &layers))
                fetched[b] = offload_activation(rewrite, b, spans[b], &layers);
        }
        rename_backward(rewrite, fetched);
    }
    free(spans);
    bool done = fetched != NULL;
    free(fetched);
    return done;
}

/* ---- Optimizer state ---- */

/* The update that operation `o` belongs to begins with this one, or at the latest one further back. */
static int update_begin(const Rewrite *rewrite, int o) {
    int first = rewrite->program->sections[SECTION_UPDATE].first;
    while (o > first && rewrite->source[o].kind != OP_ADAMW &&
           rewrite->source[o].kind != OP_MUON_BEGIN)
        o--;
    return o;
}

/* Where the next update begins, or the section ends. */
static int update_end(const Rewrite *rewrite, int o) {
    Section section = rewrite->program->sections[SECTION_UPDATE];
    int end = section.first + section.count;
    do o++;
    while (o < end && update_begin(rewrite, o) != o);
    return (int)smaller(o, end);
}

/* Puts a slice of n elements on the device in the place of an operand of operation `o`. It is fetched while
 * the update before runs, and stored while the one behind does. */
static void offload_slice(Rewrite *rewrite, int o, Operand *operand, int64_t n) {
    Program *program = rewrite->program;
    Section section = program->sections[SECTION_UPDATE];
    int begin = update_begin(rewrite, o);
    Buffer state = program->buffers[operand->buffer];
    Operand host = *operand;
    Operand slice = whole(
        program_buffer(program, BUFFER_WORKSPACE, state.dtype, n, "%.16s of %d", state.name, o));
    program->buffers[host.buffer].space = SPACE_HOST;
    plan_copy(rewrite, (Copy){.to = slice,
                              .from = host,
                              .n = n,
                              .section = SECTION_UPDATE,
                              .start = begin > section.first ? update_begin(rewrite, begin - 1) : o,
                              .wait = o});
    plan_copy(rewrite, (Copy){.to = host,
                              .from = slice,
                              .n = n,
                              .section = SECTION_UPDATE,
                              .start = o + 1,
                              .wait = update_end(rewrite, update_end(rewrite, o))});
    *operand = slice;
}

/* Moments of n parameters; absmax has an element for each block. */
static void offload_moments(Rewrite *rewrite, int o) {
    Operation *operation = &rewrite->source[o];
    int64_t n = operation->adamw.n, blocks = divide_up(n, STATE_BLOCK);
    for (int i = 2; i <= 5; i++)
        if (operation->outputs[i].buffer >= 0)
            offload_slice(rewrite, o, &operation->outputs[i], i < 4 ? n : blocks);
}

static void offload_state(Rewrite *rewrite) {
    Section section = rewrite->program->sections[SECTION_UPDATE];
    for (int o = section.first; o < section.first + section.count; o++) {
        Operation *operation = &rewrite->source[o];
        int64_t rows = operation->muon.rows, columns = operation->muon.columns;
        if (operation->kind == OP_ADAMW)
            offload_moments(rewrite, o);
        else if (operation->kind == OP_MUON_BEGIN)
            offload_slice(rewrite, o, &operation->outputs[1], rows * columns);
        else if (operation->kind == OP_MUON_END)
            offload_slice(rewrite, o, &operation->outputs[2], larger(rows, columns));
    }
}

/* ---- Writing the list anew ---- */

static int take_id(Rewrite *rewrite) {
    int id = 0;
    while (id < COPIES_AT_ONCE - 1 && rewrite->under_way[id]) id++;
    rewrite->crowded |= rewrite->under_way[id];
    rewrite->under_way[id] = true;
    return id;
}

static void put_copy(Rewrite *rewrite, const Copy *copy, OperationKind kind) {
    Operation *operation = program_add(rewrite->program, kind, -1);
    operation->outputs[0] = copy->to;
    operation->inputs[0] = copy->from;
    operation->copy = (CopyShape){.n = copy->n, .id = copy->id};
}

static void put_start(Rewrite *rewrite, Copy *copy) {
    copy->id = take_id(rewrite);
    put_copy(rewrite, copy, OP_COPY_START);
}

static void put_wait(Rewrite *rewrite, const Copy *copy) {
    put_copy(rewrite, copy, OP_COPY_WAIT);
    rewrite->under_way[copy->id] = false;
}

/* At one place the waits come first, so that what starts may take over memory that they leave. */
static int by_place(const void *a, const void *b) {
    const Event *left = a, *right = b;
    if (left->section != right->section) return (int)left->section - (int)right->section;
    if (left->before != right->before) return left->before - right->before;
    if (left->start != right->start) return left->start ? 1 : -1;
    return left->copy - right->copy;
}

/* Starts and waits in the order in which they are put in; NULL with an error. */
static Event *list_events(const Rewrite *rewrite, Error *error) {
    Event *events = allocate(2 * (size_t)rewrite->copy_count + 1, sizeof *events, error);
    size_t count = 0;
    if (!events) return NULL;
    for (int c = 0; c < rewrite->copy_count; c++) {
        const Copy *copy = &rewrite->copies[c];
        events[count++] = (Event){copy->section, copy->start, true, c};
        if (copy->wait > copy->start)
            events[count++] = (Event){copy->section, copy->wait, false, c};
    }
    qsort(events, count, sizeof *events, by_place);
    events[count] = (Event){.section = SECTIONS};
    return events;
}

/* What stands before operation `o`. At the end of a section a copy may have to be waited for at once. */
static void put_copies(Rewrite *rewrite, SectionKind section, int o) {
    for (; rewrite->events->section == section && rewrite->events->before == o; rewrite->events++) {
        Copy *copy = &rewrite->copies[rewrite->events->copy];
        if (rewrite->events->start) put_start(rewrite, copy);
        if (copy->wait == o) put_wait(rewrite, copy);
    }
}

static void put_section(Rewrite *rewrite, SectionKind kind, int backward_begin) {
    Program *program = rewrite->program;
    Section old = program->sections[kind];
    if (!old.count) return;
    program_begin_section(program, kind);
    for (int o = old.first; o < old.first + old.count; o++) {
        const Operation *operation = &rewrite->source[o];
        put_copies(rewrite, kind, o);
        if (o == backward_begin) program->backward_begin = program->operation_count;
        *program_add(program, operation->kind, operation->layer) = *operation;
    }
    put_copies(rewrite, kind, old.first + old.count);
}

static bool rewrite_program(Rewrite *rewrite, Error *error) {
    Program *program = rewrite->program;
    int backward_begin = program->backward_begin;
    Event *events = rewrite->events = list_events(rewrite, error);
    if (!events) return false;
    program->operations = NULL;
    program->operation_count = 0, program->operation_capacity = 0;
    for (int s = 0; s < SECTIONS; s++) put_section(rewrite, (SectionKind)s, backward_begin);
    free(rewrite->source);
    free(events);
    return true;
}

bool offload_apply(Program *program, Offload offload, Error *error) {
    Rewrite rewrite = {.program = program, .source = program->operations};
    bool done = true;
    if ((offload & OFFLOAD_ACTIVATIONS) && program->backward_begin)
        done = offload_activations(&rewrite, error);
    if (done && (offload & OFFLOAD_STATE)) offload_state(&rewrite);
    if (done && rewrite.copy_count) done = rewrite_program(&rewrite, error);
    free(rewrite.copies);
    if (done && rewrite.crowded)
        done =
            fail(error, "offload would have more than %d copies under way at once", COPIES_AT_ONCE);
    return done && program_finish(program, error);
}
