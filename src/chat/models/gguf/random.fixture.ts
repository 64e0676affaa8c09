import { writeFile } from 'node:fs/promises'
import { diceOf } from '../../constrain/gbnf/dice.fixture.ts'
import { type Fact, ggufBytes, type Tensor } from './gguf-file.fixture.ts'

export interface RandomModel {
  readonly seed?: number
  /** How the model wants conversations to be written, in Jinja. */
  readonly template?: string
  /** How many tokens it says it has learnt to see. */
  readonly contextLength?: number
}

const width = 32
const layers = 1
const heads = 2
const inner = 64

/** Pieces of JSON and of words that are one token in real vocabularies, across the borders that a grammar has. */
const pieces = [
  ...[
    '{"',
    '"}',
    '":',
    '",',
    ',"',
    '":"',
    '","',
    '"]',
    '["',
    '[]',
    '{}',
    '}}',
    '}]',
    ']}',
    '"}]',
    '\\"',
    '\\n',
    '\\\\',
  ],
  ...[': ', ', ', ': "', ', "', ': {', ': [', 'true', 'false', 'null', '0.', '10', '100', '-1', '00', '\\u', '...'],
  ...['<think>', '</think>'],
  ...[' the', ' a', ' to', 'ing', 'er', 'name', 'type', 'id', 'path', 'content', 'value', 'http', '://', '.com', '/'],
]

/** Bytes as GPT-2 writes them in its vocabulary: what cannot be printed is moved out of the way. */
function byteTokens(): readonly { readonly text: string; readonly printable: boolean }[] {
  let moved = 0
  return Array.from({ length: 256 }, (_, byte) => {
    const stays = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad)
    return {
      text: String.fromCodePoint(stays ? byte : 0x100 + moved++),
      // A single byte does not show whether it is part of a character.
      printable: (byte >= 0x20 && byte < 0x7f) || byte === 0x0a,
    }
  })
}

const normal = 1
const control = 3

/**
 * A language model that has learnt nothing: the architecture of Llama, one small layer, weights by chance. The same
 * seed makes the same file. Only a constraint limits its output.
 */
export function randomModel({ seed = 1, template, contextLength = 32_768 }: RandomModel = {}): Buffer<ArrayBuffer> {
  const bytes = byteTokens()
  const spelled = (piece: string) => [...Buffer.from(piece)].map((byte) => bytes[byte]?.text).join('')
  const single = new Set(bytes.map(({ text }) => text))
  const several = pieces.map(spelled).filter((text) => !single.has(text))
  const tokens = [...bytes.map(({ text }) => text), ...several, '<s>', '</s>']
  const kinds = [...bytes.map(({ printable }) => (printable ? normal : control)), ...several.map(() => normal)]
  const facts: Record<string, Fact> = {
    'general.architecture': { kind: 'string', value: 'llama' },
    'general.name': { kind: 'string', value: 'random' },
    'llama.context_length': { kind: 'uint32', value: contextLength },
    'llama.embedding_length': { kind: 'uint32', value: width },
    'llama.block_count': { kind: 'uint32', value: layers },
    'llama.feed_forward_length': { kind: 'uint32', value: inner },
    'llama.attention.head_count': { kind: 'uint32', value: heads },
    'llama.attention.layer_norm_rms_epsilon': { kind: 'float32', value: 1e-5 },
    'llama.rope.dimension_count': { kind: 'uint32', value: width / heads },
    'tokenizer.ggml.model': { kind: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { kind: 'string', value: 'default' },
    'tokenizer.ggml.tokens': { kind: 'strings', value: tokens },
    'tokenizer.ggml.token_type': { kind: 'int32s', value: [...kinds, control, control] },
    'tokenizer.ggml.merges': { kind: 'strings', value: [] },
    'tokenizer.ggml.bos_token_id': { kind: 'uint32', value: tokens.length - 2 },
    'tokenizer.ggml.eos_token_id': { kind: 'uint32', value: tokens.length - 1 },
    ...(template !== undefined && { 'tokenizer.chat_template': { kind: 'string', value: template } }),
  }
  return ggufBytes(facts, weights(diceOf(seed), tokens.length))
}

function weights(roll: () => number, vocabulary: number): Readonly<Record<string, Tensor>> {
  const matrix = (columns: number, rows: number): Tensor => ({
    shape: [columns, rows],
    values: Float32Array.from({ length: columns * rows }, () => (2 * roll() - 1) * Math.sqrt(3 / columns)),
  })
  const ones = (): Tensor => ({ shape: [width], values: new Float32Array(width).fill(1) })
  const tensors: Record<string, Tensor> = {
    'token_embd.weight': matrix(width, vocabulary),
    'output_norm.weight': ones(),
    'output.weight': matrix(width, vocabulary),
  }
  for (let layer = 0; layer < layers; layer++) {
    Object.assign(tensors, {
      [`blk.${layer}.attn_norm.weight`]: ones(),
      [`blk.${layer}.attn_q.weight`]: matrix(width, width),
      [`blk.${layer}.attn_k.weight`]: matrix(width, width),
      [`blk.${layer}.attn_v.weight`]: matrix(width, width),
      [`blk.${layer}.attn_output.weight`]: matrix(width, width),
      [`blk.${layer}.ffn_norm.weight`]: ones(),
      [`blk.${layer}.ffn_gate.weight`]: matrix(width, inner),
      [`blk.${layer}.ffn_up.weight`]: matrix(width, inner),
      [`blk.${layer}.ffn_down.weight`]: matrix(inner, width),
    })
  }
  return tensors
}

/** Writes such a model into a file. */
export async function writeRandomModel(path: string, options: RandomModel = {}): Promise<void> {
  await writeFile(path, randomModel(options))
}
