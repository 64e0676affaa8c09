import { type Capabilities, type LogLevel, logLevels, tasksExtension } from '../../core/call.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Json } from '../../json/json.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { modernErrors } from '../../wire/revisions.ts'
import { HttpError } from '../errors.ts'

/** The client capabilities that a request requires; undefined for requests that are never sent to clients. */
export function requiredCapabilities(method: string, params: unknown): Capabilities | undefined {
  const asked = isRecord(params) ? params : {}
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

export function missingCapabilities(declared: Capabilities, required: Capabilities): Capabilities | undefined {
  const missing: Record<string, unknown> = {}
  for (const [name, needed] of Object.entries(required)) {
    const own = declared[name]
    if (!isRecord(own)) {
      missing[name] = needed
      continue
    }
    const further = Object.keys(needed as object).filter((key) => own[key] === undefined && !isImplied(name, key, own))
    if (further.length > 0) missing[name] = Object.fromEntries(further.map((key) => [key, {}]))
  }
  return Object.keys(missing).length === 0 ? undefined : missing
}

export const missingCapabilityError = (missing: Capabilities): HttpError => {
  const names = Object.entries(missing).flatMap(([name, needed]) => {
    const further = Object.keys(needed as object).map((key) => `${name}.${key}`)
    return further.length > 0 ? further : name
  })
  const sentence = `This call needs client capabilities that were not declared: ${names.join(', ')}.`
  return new HttpError(400, modernErrors.missingCapability, sentence, { data: { requiredCapabilities: missing } })
}

/** Whether a capability is implied: a client that declares elicitation without naming a mode supports forms. */
const isImplied = (name: string, key: string, own: Readonly<Record<string, unknown>>): boolean =>
  name === 'elicitation' && key === 'form' && own.url === undefined

/** The gateway's own capabilities, regardless of its servers. */
export const gatewayCapabilities = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
}

/** Capabilities for sessions: they have tasks as revision 2025-11-25 defines them, not as the extension does. */
export function withoutTasksExtension(capabilities: Capabilities): Capabilities {
  const { [tasksExtension]: tasks, ...extensions } = asRecord(capabilities.extensions)
  return tasks === undefined ? capabilities : { ...capabilities, extensions }
}

/** Sessions store a client's capabilities; clients need only a few hundred characters. */
const maxDeclared = fixedLimits.capabilityCharacters.value

export const capabilitiesFault = (declared: Capabilities): string | undefined =>
  JSON.stringify(declared).length > maxDeclared ? `must not have more than ${maxDeclared} characters` : undefined

export const isLogLevel = (value: unknown): value is LogLevel => (logLevels as readonly unknown[]).includes(value)

/** Whether to send a log message to a client that set the level `from`. Messages with an unknown level are sent. */
export function meetsLogLevel(from: LogLevel | undefined, message: Json): boolean {
  if (from === undefined) return false
  if (from === logLevels[0]) return true
  const { level } = message.value as { readonly level?: unknown }
  return !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(from)
}
