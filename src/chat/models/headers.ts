import { ToolwayError } from '../../core/errors.ts'
import { basicAuthOf, urlSecrets } from '../../lib/basic-auth.ts'

/** What is sent with every request, and what of it must never be shown. */
export interface ModelHeaders {
  readonly headers: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
}

/** Parameters of an address whose values are keys, as some servers want them. */
const isSecret = /key|token|secret|sig|auth|pass/i

/** The headers of requests to a model server. A key of `none` is none; one in the address becomes a header. */
export function modelHeaders(name: string, url: URL, apiKey: string | undefined): ModelHeaders {
  const common = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const asked = [...url.searchParams].filter(([name]) => isSecret.test(name)).map(([, value]) => value)
  const authorization = basicAuthOf(url)
  if (authorization !== undefined)
    return { headers: { ...common, authorization }, secrets: [...urlSecrets(url), ...asked] }
  if (apiKey === undefined || apiKey === 'none') return { headers: common, secrets: asked }
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new ToolwayError(
      'INVALID_ARGUMENTS',
      `The key of the model ${name} cannot be sent. Check models.${name}.apiKey for spaces and line breaks.`,
    )
  }
  return { headers: { ...common, authorization: `Bearer ${apiKey}` }, secrets: [apiKey, ...asked] }
}

/** Where completions are asked for. */
export const modelPath = (url: URL): string => `${url.pathname.replace(/\/+$/, '')}/chat/completions${url.search}`
