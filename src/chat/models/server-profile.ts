import { type ConstraintForm, constraintForms } from './model.ts'

/** Fields of a request that some servers refuse and that nobody needs. */
export const optionalFields = ['stream_options', 'temperature', 'max_tokens', 'parallel_tool_calls'] as const

export type OptionalField = (typeof optionalFields)[number]

/** What is known of one model at one address: first by its kind, then by what it has refused and taken. */
export interface Profile {
  readonly kind: ServerKind
  readonly capabilities: ServerCapabilities
  readonly unsupportedFields: ReadonlySet<OptionalField>
  /** The forms to try for a schema, by the hash of its content. */
  formsFor(content: string): readonly ConstraintForm[]
  toolForms(content: string): readonly ToolForm[]
  recognise(kind: ServerKind): void
  markUnsupported(field: OptionalField): void
  /** A form was taken, after others had been refused. */
  learn(taken: SentRequest, refused: readonly SentRequest[]): void
}

/** Something sent in a form; without one where there was nothing to choose. */
export interface SentRequest {
  readonly form?: RequestForm
  readonly content: string
}

/** A way of sending: of a constraint, or of tools. */
export type RequestForm = { readonly constraint: ConstraintForm } | { readonly tools: ToolForm }

/** Schemas that a server refused in a form that it takes otherwise. */
const maxContents = 1_000

export function createProfile(baseUrl: string, preference: Preference): Profile {
  let kind = kindOfAddress(new URL(baseUrl))
  const unsupportedFields = new Set<OptionalField>()
  /** Forms that have been taken at least once: when one is refused after that, the schema was to blame. */
  const proven = new Set<string>()
  const refusedAlways = new Set<string>()
  const refusedFor = new Set<string>()

  const isOpen = (content: string) => (form: string, place: number, all: readonly unknown[]) =>
    // The last resort stays.
    place === all.length - 1 || !(refusedAlways.has(form) || refusedFor.has(`${content} ${form}`))

  const wanted = (): readonly ConstraintForm[] => {
    const { forms } = capabilities[kind]
    if (preference === 'auto') return forms
    const first = preferred[preference]
    const lower = constraintForms.slice(constraintForms.indexOf(first) + 1).filter((form) => forms.includes(form))
    return preference === 'json_schema'
      ? ['strict', 'schema', ...lower.filter((form) => form !== 'schema')]
      : [first, ...lower]
  }

  return {
    get kind() {
      return kind
    },
    get capabilities() {
      return capabilities[kind]
    },
    unsupportedFields,
    formsFor: (content) => wanted().filter((form, place, all) => isOpen(content)(`constraint ${form}`, place, all)),
    toolForms: (content) =>
      capabilities[kind].tools.filter((form, place, all) => isOpen(content)(`tools ${form}`, place, all)),
    recognise(found) {
      if (kind === 'unknown') kind = found
    },
    markUnsupported: (field) => void unsupportedFields.add(field),
    learn(taken, refused) {
      for (const { form, content } of refused) {
        if (!form) continue
        const name = nameOf(form)
        if (!proven.has(name)) refusedAlways.add(name)
        else if (refusedFor.size < maxContents) refusedFor.add(`${content} ${name}`)
      }
      if (taken.form) proven.add(nameOf(taken.form))
    },
  }
}

const nameOf = (form: RequestForm): string =>
  'constraint' in form ? `constraint ${form.constraint}` : `tools ${form.tools}`

/** How the configuration wants constraints to be sent. */
export type Preference = 'auto' | 'json_schema' | 'grammar' | 'json_object' | 'none'

const preferred: Readonly<Record<Exclude<Preference, 'auto'>, ConstraintForm>> = {
  json_schema: 'strict',
  grammar: 'grammar',
  json_object: 'json_object',
  none: 'prompt',
}

/** Profiles of all models, which outlive the models themselves: a changed configuration need not learn anew. */
export function createProfiles(): (baseUrl: string, model: string, preference: Preference) => Profile {
  const profiles = new Map<string, Profile>()
  return (baseUrl, model, preference) => {
    const key = JSON.stringify([baseUrl, model, preference])
    const profile = profiles.get(key) ?? createProfile(baseUrl, preference)
    profiles.set(key, profile)
    return profile
  }
}

type ServerKind = 'openai' | 'vllm' | 'llama.cpp' | 'ollama' | 'mistral.rs' | 'embedded' | 'unknown'

/** Ways to offer tools, the strongest first; `schema` asks for calls under a constraint, without offering any. */
type ToolForm = 'strict' | 'plain' | 'schema'

/** What is known of a kind of server before the first request. */
interface ServerCapabilities {
  readonly forms: readonly ConstraintForm[]
  readonly tools: readonly ToolForm[]
  /** What a grammar is sent as. */
  grammar(gbnf: string): object
}

const topLevel = (gbnf: string) => ({ grammar: gbnf })

export const capabilities: Readonly<Record<ServerKind, ServerCapabilities>> = {
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
