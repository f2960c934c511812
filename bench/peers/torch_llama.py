"""The llama model in PyTorch, written for speed: what hearth's model computes, in bf16 autocast."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def rope_tables(seq_len, head_dim, theta=10000.0):
    frequencies = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(seq_len).float(), frequencies)
    return angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)


def rotate(x, cos, sin):
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


class Layer(nn.Module):
    def __init__(self, dim, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.RMSNorm(dim, eps=1e-5)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.norm2 = nn.RMSNorm(dim, eps=1e-5)
        self.gate_up = nn.Linear(dim, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, dim, bias=False)

    def forward(self, x, cos, sin):
        rows, seq_len, dim = x.shape
        qkv = self.qkv(norm(self.norm1, x)).view(rows, seq_len, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(
            rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True
        )
        x = x + self.out(attended.transpose(1, 2).reshape(rows, seq_len, dim))
        gate, up = self.gate_up(norm(self.norm2, x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


def norm(module, x):
    return F.rms_norm(x, module.normalized_shape, module.weight.to(x.dtype), module.eps)


class Llama(nn.Module):
    """Activations are of `dtype` between the layers too, as hearth's are; parameters are fp32."""

    def __init__(self, layers, dim, heads, ffn, vocab, seq_len, dtype):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)  # and the head: they are tied
        self.layers = nn.ModuleList(Layer(dim, heads, ffn) for _ in range(layers))
        self.norm = nn.RMSNorm(dim, eps=1e-5)
        self.dtype = dtype
        cos, sin = rope_tables(seq_len, dim // heads)
        self.register_buffer("cos", cos.to(dtype), persistent=False)
        self.register_buffer("sin", sin.to(dtype), persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (math.sqrt(2 * layers) if residual else 1))

    def forward(self, tokens, targets):
        x = self.embedding(tokens).to(self.dtype)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        x = norm(self.norm, x).flatten(0, 1)
        weight = self.embedding.weight.to(self.dtype)
        return F.cross_entropy(F.linear(x, weight).float(), targets.flatten())
