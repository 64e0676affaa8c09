import { request } from 'node:http'

export interface Said {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

interface Asked {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly method?: string
}

/** One request outside the measurement, on a connection of its own. */
export function ask(
  url: string,
  { headers = {}, body, method = body === undefined ? 'GET' : 'POST' }: Asked,
): Promise<Said> {
  const { promise, resolve, reject } = Promise.withResolvers<Said>()
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const outgoing = request(
    url,
    { method, headers: { ...headers, ...length }, agent: false, timeout: 120_000 },
    (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks).toString() }),
      )
      answer.on('error', reject)
    },
  )
  outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer from ${url} within two minutes`)))
  outgoing.on('error', reject)
  outgoing.end(body)
  return promise
}
