import { once } from 'node:events'
import { connect } from 'node:net'

/** One answer as it came. */
export interface Told {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A client that sends given bytes and reads responses one by one, or not at all. */
export async function openClient(port: number) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let unread = ''
  let heard = () => {}
  socket.setEncoding('latin1')
  socket.on('error', () => {})
  socket.on('close', () => heard())
  socket.on('data', (text: string) => {
    unread += text
    heard()
  })

  return {
    socket,
    /** What has come and was not taken by `answer`. */
    get unread() {
      return unread
    },
    send(text: string): void {
      socket.write(text, 'latin1')
    },
    /** The next answer; rejects where the connection is closed before there is one. */
    async answer(): Promise<Told> {
      for (let wanted = 1; ; ) {
        const found = unread.length < wanted ? wanted : readAnswer(unread)
        if (typeof found === 'object') {
          unread = unread.slice(found.length)
          return found.told
        }
        wanted = found
        if (socket.closed) throw new Error(`closed with ${JSON.stringify(unread)} unread`)
        await new Promise<void>((resolve) => {
          heard = resolve
        })
      }
    },
    async ask(text: string): Promise<Told> {
      this.send(text)
      return this.answer()
    },
    /** Settles when the connection is closed, with what was not read. */
    async closed(): Promise<string> {
      if (!socket.closed) await once(socket, 'close')
      return unread
    },
    [Symbol.asyncDispose]: async () => void socket.destroy(),
  }
}

export type Client = Awaited<ReturnType<typeof openClient>>

/** The answer that the text begins with, or how much of it there must be before another look. */
function readAnswer(text: string): { told: Told; length: number } | number {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return text.length + 1
  const [line = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = Object.fromEntries(lines.map((line) => /^(.*?): (.*)$/.exec(line)?.slice(1) ?? []))
  const status = Number(line.split(' ')[1])
  const from = end + 4
  if (headers['Transfer-Encoding'] === 'chunked') {
    const read = readChunks(text, from)
    return read ? { told: { status, headers, body: read.body }, length: read.end } : text.length + 1
  }
  const length = from + Number(headers['Content-Length'] ?? 0)
  return length > text.length ? length : { told: { status, headers, body: text.slice(from, length) }, length }
}

function readChunks(text: string, from: number): { body: string; end: number } | undefined {
  let body = ''
  for (let at = from; ; ) {
    const line = text.indexOf('\r\n', at) + 2
    const size = Number.parseInt(text.slice(at, line), 16)
    const end = line + size + 2
    // Also true if the size has not arrived yet.
    if (!(line >= 2 && end <= text.length)) return undefined
    body += text.slice(line, end - 2)
    if (size === 0) return { body, end }
    at = end
  }
}
