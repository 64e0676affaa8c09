import type { WebProxy } from '../../../outbound/proxy.ts'
import type { HttpRequest } from '../channel.ts'

/** Headers are prepared once per line, and so is their text. */
const prepared = new WeakMap<Readonly<Record<string, string>>, { readonly to: string; readonly text: string }>()

/** Smaller bodies are copied behind their heads, so that both leave in one write. */
const small = 64 * 1024

/** A request as it is sent: in one piece, or the head and a large body. Throws where a header could be read as two. */
export function requestPieces(host: string, { method, path, headers, body }: HttpRequest): readonly Buffer[] {
  const to = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  let known = prepared.get(headers)
  if (known?.to !== to) {
    known = { to, text: to + headerLines(headers) }
    prepared.set(headers, known)
  }
  const length = body?.length ?? 0
  // In capitals, since there are proxies that add a second one where they do not know it by its small letters.
  const head =
    body === undefined && method !== 'POST' ? `${known.text}\r\n` : `${known.text}Content-Length: ${length}\r\n\r\n`
  if (body === undefined || length > small) {
    const bytes = Buffer.from(head, 'latin1')
    return body === undefined ? [bytes] : [bytes, body]
  }
  const whole = Buffer.allocUnsafe(head.length + length)
  whole.write(head, 'latin1')
  whole.set(body, head.length)
  return [whole]
}

/** A request as a proxy wants it that passes it on: with the whole address, and the credential for the proxy. */
export function proxied(request: HttpRequest, { origin }: URL, { authorization }: WebProxy): HttpRequest {
  const headers = authorization ? { ...request.headers, 'proxy-authorization': authorization } : request.headers
  return { ...request, path: origin + request.path, headers }
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  let text = ''
  for (const name of Object.keys(headers)) {
    const value = headers[name] as string
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new TypeError(`The header ${JSON.stringify(name)} cannot be sent: take out line breaks and odd characters.`)
    }
    text += `${name}: ${value}\r\n`
  }
  return text
}
