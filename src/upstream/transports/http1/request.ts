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
  const head =
    body === undefined && method !== 'POST' ? `${known.text}\r\n` : `${known.text}content-length: ${length}\r\n\r\n`
  if (body === undefined || length > small) {
    const bytes = Buffer.from(head, 'latin1')
    return body === undefined ? [bytes] : [bytes, body]
  }
  const whole = Buffer.allocUnsafe(head.length + length)
  whole.write(head, 'latin1')
  whole.set(body, head.length)
  return [whole]
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
