import { badRequest } from './errors.ts'

interface Unsupported {
  /** Values that ask for nothing that we do not do anyway. */
  harmless(value: unknown): boolean
  /** What to do instead, to end a sentence with. */
  readonly instead: string
}

const never = () => false

/**
 * What would change the answer, and cannot be had here. To pass over it would be to promise it; all the rest that we do
 * not know (seed, top_p, user, metadata …) is passed over, as other servers of this interface do.
 */
const members: Readonly<Record<string, Unsupported>> = {
  n: { harmless: (value) => value === 1, instead: 'one answer is given: leave it out, and ask again for another' },
  logprobs: { harmless: (value) => value === false, instead: 'tokens are not told: leave it out' },
  top_logprobs: { harmless: (value) => value === 0, instead: 'tokens are not told: leave it out' },
  stop: {
    harmless: (value) => Array.isArray(value) && value.length === 0,
    instead: 'leave it out, and cut the answer where you need it',
  },
  response_format: {
    harmless: (value) => (value as { type?: unknown }).type === 'text',
    instead:
      'answers are text ({"type": "text"}): describe the form you want in a message, or give a tool whose parameters have it',
  },
  functions: { harmless: never, instead: 'use tools' },
  function_call: { harmless: never, instead: 'use tool_choice' },
  modalities: {
    harmless: (value) => Array.isArray(value) && value.every((one) => one === 'text'),
    instead: 'answers are text',
  },
  audio: { harmless: never, instead: 'answers are text' },
  web_search_options: { harmless: never, instead: 'connect a server that searches, and its tools are used' },
}

/** Refuses a request that asks for what cannot be had. */
export function refuseUnsupported(body: Readonly<Record<string, unknown>>): void {
  for (const [name, { harmless, instead }] of Object.entries(members)) {
    const value = body[name]
    if (value === undefined || value === null || harmless(value)) continue
    throw badRequest(`"${name}" is not supported here in this form: ${instead}.`, {
      param: name,
      code: 'unsupported_parameter',
    })
  }
}
