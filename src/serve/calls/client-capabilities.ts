import { type Capabilities, type LogLevel, logLevels, profileOf } from '../../core/call.ts'
import type { Json } from '../../core/json.ts'
import { modernErrors } from '../../wire/revisions.ts'
import { HttpError } from '../errors.ts'
import { isObject } from '../inbound-message.ts'

/** What a client must have declared before it may be asked; `undefined` for what no client is ever asked in mid-call. */
export function requiredCapabilities(method: string, params: unknown): Capabilities | undefined {
  const asked = isObject(params) ? params : {}
  switch (method) {
    case 'elicitation/create':
      return { elicitation: asked.mode === 'url' ? { url: {} } : { form: {} } }
    case 'sampling/createMessage':
      return { sampling: asked.tools === undefined && asked.toolChoice === undefined ? {} : { tools: {} } }
    case 'roots/list':
      return { roots: {} }
    default:
      return undefined
  }
}

/** The part of the required capabilities that a client did not declare, if there is one. */
export function missingCapabilities(declared: Capabilities, required: Capabilities): Capabilities | undefined {
  const missing: Record<string, unknown> = {}
  for (const [name, needed] of Object.entries(required)) {
    const own = declared[name]
    if (!isObject(own)) {
      missing[name] = needed
      continue
    }
    const further = Object.keys(needed as object).filter((key) => own[key] === undefined && !isImplied(name, key, own))
    if (further.length > 0) missing[name] = Object.fromEntries(further.map((key) => [key, {}]))
  }
  return Object.keys(missing).length === 0 ? undefined : missing
}

/** The answer to a call that cannot do without them. */
export const missingCapabilityError = (missing: Capabilities): HttpError => {
  const names = Object.keys(missing).join(', ')
  const sentence = `This call needs something of its client that it did not declare for it: ${names}.`
  return new HttpError(400, modernErrors.missingCapability, sentence, { data: { requiredCapabilities: missing } })
}

/** Elicitation without a word about its modes has always meant forms. */
const isImplied = (name: string, key: string, own: Readonly<Record<string, unknown>>): boolean =>
  name === 'elicitation' && key === 'form' && own.url === undefined

/** What we do ourselves, in every era, whatever the servers behind us can. */
export const gatewayCapabilities = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
}

/** In characters. Clients need a few hundred; they are kept for each session, and for each kind of client. */
const maxDeclared = 4_096

/** What is wrong with the capabilities that a client declares, if they are more than anybody will keep for it. */
export const capabilitiesFault = (declared: Capabilities): string | undefined =>
  profileOf(declared).length > maxDeclared ? `must not have more than ${maxDeclared} characters` : undefined

export const isLogLevel = (value: unknown): value is LogLevel => (logLevels as readonly unknown[]).includes(value)

/** Whether a log message is grave enough for whoever asked for this level; one of an unknown gravity always is. */
export function meetsLogLevel(from: LogLevel | undefined, message: Json): boolean {
  if (from === undefined) return false
  if (from === logLevels[0]) return true
  const { level } = message.value as { readonly level?: unknown }
  return !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(from)
}
