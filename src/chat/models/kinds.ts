import type { ConstraintForm } from './model.ts'

export type ServerKind = 'openai' | 'vllm' | 'llama.cpp' | 'ollama' | 'mistral.rs' | 'embedded' | 'unknown'

/** Ways to offer tools, the strongest first; `schema` asks for calls under a constraint, without offering any. */
export type ToolForm = 'strict' | 'plain' | 'schema'

/** What is known of a kind of server before the first request. */
export interface Abilities {
  readonly forms: readonly ConstraintForm[]
  readonly tools: readonly ToolForm[]
  /** What a grammar is sent as. */
  grammar(gbnf: string): object
}

const topLevel = (gbnf: string) => ({ grammar: gbnf })

export const abilities: Readonly<Record<ServerKind, Abilities>> = {
  openai: {
    forms: ['strict', 'schema', 'json_object', 'prompt'],
    tools: ['strict', 'plain', 'schema'],
    grammar: topLevel,
  },
  vllm: {
    forms: ['schema', 'grammar', 'json_object', 'prompt'],
    // Its automatic choice is constrained only if some tool is strict.
    tools: ['strict', 'plain', 'schema'],
    grammar: (gbnf) => ({ structured_outputs: { grammar: gbnf } }),
  },
  // Of a schema it leaves out what it does not know, without a word; our grammar leaves out nothing.
  'llama.cpp': { forms: ['grammar', 'schema', 'json_object', 'prompt'], tools: ['plain', 'schema'], grammar: topLevel },
  // It knows no tool_choice.
  ollama: { forms: ['schema', 'json_object', 'prompt'], tools: ['schema'], grammar: topLevel },
  // It refuses json_object.
  'mistral.rs': { forms: ['schema', 'prompt'], tools: ['strict', 'plain', 'schema'], grammar: topLevel },
  // No server at all, but a model in this process, which takes whatever grammar it is given.
  embedded: { forms: ['grammar', 'prompt'], tools: ['schema'], grammar: (gbnf) => ({ gbnf }) },
  unknown: {
    forms: ['strict', 'schema', 'grammar', 'json_object', 'prompt'],
    tools: ['plain', 'schema'],
    grammar: topLevel,
  },
}

/** What kind of server an address belongs to, as far as it shows. */
export function kindOfAddress({ hostname, port }: URL): ServerKind {
  if (hostname === 'api.openai.com' || hostname.endsWith('.openai.azure.com')) return 'openai'
  return port === '11434' ? 'ollama' : 'unknown'
}

/** What kind of server gave an answer, as far as its headers and its first object show. */
export function kindOfAnswer(header: (name: string) => string | undefined, first: unknown): ServerKind {
  if (header('openai-version') !== undefined || header('openai-processing-ms') !== undefined) return 'openai'
  if (/^llama\.cpp/i.test(header('server') ?? '')) return 'llama.cpp'
  if (typeof first !== 'object' || first === null) return 'unknown'
  const { system_fingerprint: fingerprint, timings, choices } = first as Readonly<Record<string, unknown>>
  if (fingerprint === 'fp_ollama') return 'ollama'
  if (fingerprint === 'local') return 'mistral.rs'
  if (typeof timings === 'object' || (typeof fingerprint === 'string' && /^b\d+-[\da-f]+$/.test(fingerprint)))
    return 'llama.cpp'
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
  return typeof choice === 'object' && choice !== null && 'stop_reason' in choice ? 'vllm' : 'unknown'
}
