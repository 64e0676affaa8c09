import { createHash } from 'node:crypto'
import { rawRequest } from '../../fixtures/raw-http.ts'

/** An API key, and how a configuration knows it. */
export const keyFor = (id: string, agents: readonly string[]) => {
  const key = `twk_${id.padEnd(40, 'x')}`
  return { key, configured: { id, agents, hash: `sha256:${createHash('sha256').update(key).digest('hex')}` } }
}

interface Asked {
  readonly body?: object
  readonly method?: string
}

/** Asks the admin API as the holder of a credential. */
export const asking =
  (origin: string, token: string) =>
  async (path: string, { body, method = body ? 'POST' : 'GET' }: Asked = {}) => {
    const { status, text } = await rawRequest(origin, {
      path: `/admin/api/${path}`,
      method,
      headers: {
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status, text, json: text === '' ? undefined : JSON.parse(text) }
  }

/** Where a gateway listens. */
export const originOf = ({ url }: { readonly url: string }): string => new URL(url).origin
