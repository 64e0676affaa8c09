import { type ConstraintForm, constraintForms } from './model.ts'

/** Request fields that some servers refuse and that can be omitted. */
export const optionalFields = ['stream_options', 'temperature', 'max_tokens', 'parallel_tool_calls'] as const

export type OptionalField = (typeof optionalFields)[number]

/** A request as it was sent. `form` is undefined if there was only one way to send it. */
export interface SentRequest {
  readonly form?: RequestForm
  readonly content: string
}

export interface RefusedRequest extends SentRequest {
  /** Set if the content of this request may be the reason, so that the refusal says nothing about others. */
  readonly onlyContent?: boolean
}

export type RequestForm = { readonly constraint: ConstraintForm } | { readonly tools: ToolForm }

/** Maximum number of remembered refusals that apply to one schema only. */
const maxContents = 1_000

/** What is known about a model on a server: first from the kind of server, then from what it refused and accepted. */
export class ServerProfile {
  readonly unsupportedFields = new Set<OptionalField>()
  /** Whether the server refuses calls and results in requests without tools. */
  toolsRequired = false
  /** Whether the server refuses the reasoning in earlier messages. */
  reasoningRefused = false
  #kind: ServerKind
  readonly #preference: Preference
  /** Forms that were accepted at least once. If such a form is refused later, the schema was the reason. */
  readonly #proven = new Set<string>()
  readonly #refusedAlways = new Set<string>()
  readonly #refusedFor = new Set<string>()

  constructor(baseUrl: string, preference: Preference) {
    this.#kind = kindOfAddress(new URL(baseUrl))
    this.#preference = preference
  }

  get kind(): ServerKind {
    return this.#kind
  }

  get capabilities(): ServerCapabilities {
    return serverCapabilities[this.#kind]
  }

  /** The forms to try for a schema, identified by its content hash. */
  formsFor(content: string): readonly ConstraintForm[] {
    return this.#open(this.#wanted(), content, (constraint) => ({ constraint }))
  }

  toolForms(content: string): readonly ToolForm[] {
    return this.#open(this.capabilities.tools, content, (tools) => ({ tools }))
  }

  recognise(kind: ServerKind): void {
    if (this.#kind === 'unknown') this.#kind = kind
  }

  /** Records which form the server accepted, and which forms it had refused before. */
  learn(taken: SentRequest, refused: readonly RefusedRequest[]): void {
    for (const { form, content, onlyContent } of refused) {
      if (!form) continue
      const name = JSON.stringify(form)
      if (!onlyContent && !this.#proven.has(name)) this.#refusedAlways.add(name)
      else if (this.#refusedFor.size < maxContents) this.#refusedFor.add(`${content} ${name}`)
    }
    if (taken.form) this.#proven.add(JSON.stringify(taken.form))
  }

  #open<Form>(forms: readonly Form[], content: string, asSent: (form: Form) => RequestForm): readonly Form[] {
    return forms.filter((form, place) => {
      const name = JSON.stringify(asSent(form))
      // Always keep the last form: there is nothing weaker to fall back to.
      return (
        place === forms.length - 1 || !(this.#refusedAlways.has(name) || this.#refusedFor.has(`${content} ${name}`))
      )
    })
  }

  #wanted(): readonly ConstraintForm[] {
    const { forms } = this.capabilities
    if (this.#preference === 'auto') return forms
    const preferred = preferredForms[this.#preference]
    const weaker = constraintForms.slice(constraintForms.indexOf(preferred.at(-1) as ConstraintForm) + 1)
    return [...preferred, ...weaker.filter((form) => forms.includes(form))]
  }
}

export type Preference = 'auto' | 'json_schema' | 'grammar' | 'json_object' | 'none'

const preferredForms: Readonly<Record<Exclude<Preference, 'auto'>, readonly ConstraintForm[]>> = {
  json_schema: ['strict', 'schema'],
  grammar: ['grammar'],
  json_object: ['json_object'],
  none: ['prompt'],
}

/** Profiles by server and model. They outlive a reload, so that Toolway does not have to learn everything again. */
export function createProfiles(): (baseUrl: string, model: string, preference: Preference) => ServerProfile {
  const profiles = new Map<string, ServerProfile>()
  return (baseUrl, model, preference) => {
    const key = JSON.stringify([baseUrl, model, preference])
    const profile = profiles.get(key) ?? new ServerProfile(baseUrl, preference)
    profiles.set(key, profile)
    return profile
  }
}

type ServerKind = 'openai' | 'vllm' | 'llama.cpp' | 'ollama' | 'mistral.rs' | 'embedded' | 'unknown'

/**
 * Ways to offer tools, strongest first. `flat` is `plain` without alternatives at the root of a tool's schema, which
 * OpenAI and Anthropic refuse. `schema` offers no tools and constrains the answer to calls instead.
 */
type ToolForm = 'strict' | 'plain' | 'flat' | 'schema'

interface ServerCapabilities {
  readonly forms: readonly ConstraintForm[]
  readonly tools: readonly ToolForm[]
  /** The request fields for a grammar. */
  grammar(gbnf: string): object
}

const topLevel = (gbnf: string) => ({ grammar: gbnf })

export const serverCapabilities: Readonly<Record<ServerKind, ServerCapabilities>> = {
  openai: {
    forms: ['strict', 'schema', 'json_object', 'prompt'],
    tools: ['strict', 'plain', 'flat', 'schema'],
    grammar: topLevel,
  },
  vllm: {
    forms: ['schema', 'grammar', 'json_object', 'prompt'],
    // With `tool_choice: auto`, vLLM constrains calls only if a tool is strict.
    tools: ['strict', 'plain', 'flat', 'schema'],
    grammar: (gbnf) => ({ structured_outputs: { grammar: gbnf } }),
  },
  // Prefer our grammar, which enforces schema keywords that llama.cpp silently ignores.
  'llama.cpp': {
    forms: ['grammar', 'schema', 'json_object', 'prompt'],
    tools: ['plain', 'flat', 'schema'],
    grammar: topLevel,
  },
  // Ollama does not support `tool_choice`.
  ollama: { forms: ['schema', 'json_object', 'prompt'], tools: ['schema'], grammar: topLevel },
  // mistral.rs refuses `json_object`.
  'mistral.rs': { forms: ['schema', 'prompt'], tools: ['strict', 'plain', 'flat', 'schema'], grammar: topLevel },
  // A model that runs in this process.
  embedded: { forms: ['grammar', 'prompt'], tools: ['schema'], grammar: (gbnf) => ({ gbnf }) },
  unknown: {
    forms: ['strict', 'schema', 'grammar', 'json_object', 'prompt'],
    tools: ['plain', 'flat', 'schema'],
    grammar: topLevel,
  },
}

/** The kind of server, judging by its address. */
export function kindOfAddress({ hostname, port }: URL): ServerKind {
  if (hostname === 'api.openai.com' || hostname.endsWith('.openai.azure.com')) return 'openai'
  return port === '11434' ? 'ollama' : 'unknown'
}

/** The kind of server, judging by the headers and the first object of a response. */
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
