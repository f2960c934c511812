/* Models by name: llamas of some sizes, and nanochat's d4 to d34. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "model/config.h"

typedef struct LlamaPreset {
    const char *name;
    int64_t layers, dim, heads, ffn, vocab, sequence_length;
} LlamaPreset;

static const LlamaPreset llamas[] = {
    {"llama-15m", 6, 288, 6, 768, 32000, 256},
    {"llama-42m", 8, 512, 8, 1376, 32000, 1024},
    {"llama-110m", 12, 768, 12, 2048, 32000, 1024},
    {"llama-300m", 24, 960, 15, 2560, 32768, 2048},
    {"llama-600m", 28, 1280, 20, 3456, 32768, 2048},
    {"llama-977m", 24, 1792, 16, 4736, 32000, 2048},
};
enum { LLAMAS = sizeof llamas / sizeof *llamas };

enum { DEPTH_LEAST = 4, DEPTH_MOST = 34, DEPTHS = DEPTH_MOST - DEPTH_LEAST + 1 };
enum { NANOCHAT_HEAD_DIM = 128, NANOCHAT_VOCAB = 32768 };

static const LlamaPreset *find_llama(const char *name) {
    for (int i = 0; i < LLAMAS; i++)
        if (strcmp(llamas[i].name, name) == 0) return &llamas[i];
    return NULL;
}

/* The depth that a name like "d12" says, or 0. */
static int find_depth(const char *name) {
    for (int depth = DEPTH_LEAST; depth <= DEPTH_MOST; depth++) {
        char candidate[8];
        snprintf(candidate, sizeof candidate, "d%d", depth);
        if (strcmp(candidate, name) == 0) return depth;
    }
    return 0;
}

const char *const *model_preset_names(void) {
    static char depths[DEPTHS][4];
    static const char *names[LLAMAS + DEPTHS + 1];
    for (int i = 0; i < LLAMAS; i++) names[i] = llamas[i].name;
    for (int i = 0; i < DEPTHS; i++) {
        snprintf(depths[i], sizeof depths[i], "d%d", (DEPTH_LEAST + i) % 100);
        names[LLAMAS + i] = depths[i];
    }
    return names;
}

int64_t model_preset_vocab(const char *name) {
    const LlamaPreset *llama = find_llama(name);
    if (llama) return llama->vocab;
    return find_depth(name) ? NANOCHAT_VOCAB : 0;
}

static ModelConfig llama_config(const LlamaPreset *preset) {
    return (ModelConfig){
        .architecture = "llama",
        .layers = preset->layers,
        .dim = preset->dim,
        .heads = preset->heads,
        .kv_heads = preset->heads,
        .head_dim = preset->dim / preset->heads,
        .ffn = preset->ffn,
        .sequence_length = preset->sequence_length,
        .tied = true,
        .rope_theta = 10000,
        .norm_eps = 1e-5,
        .init_std = 0.02,
        .window_pattern = "L",
        .bos_id = -1,
        .eos_id = -1,
    };
}

ModelConfig model_config_nanochat(int64_t depth, int64_t head_dim) {
    int64_t heads = divide_up(64 * depth, head_dim), dim = heads * head_dim;
    return (ModelConfig){
        .architecture = "nanochat",
        .layers = depth,
        .dim = dim,
        .heads = heads,
        .kv_heads = heads,
        .head_dim = head_dim,
        .ffn = 4 * dim,
        .sequence_length = 2048,
        .rope_theta = 100000,
        .norm_eps = FLT_EPSILON, /* what torch's rms_norm takes, for bf16 too */
        .window_pattern = "SSSL",
        .bos_id = -1,
        .eos_id = -1,
    };
}

bool model_preset(ModelConfig *config, const char *name) {
    const LlamaPreset *llama = find_llama(name);
    int depth = find_depth(name);
    if (llama) *config = llama_config(llama);
    if (depth) *config = model_config_nanochat(depth, NANOCHAT_HEAD_DIM);
    return llama || depth;
}
