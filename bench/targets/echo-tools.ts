/** What both echo servers offer and answer, prepared once. */

const schema = {
  type: 'object',
  properties: {
    message: { type: 'string', minLength: 1, maxLength: 10_000, description: 'What to say again.' },
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 10, description: 'How many matches to give.' },
    order: { type: 'string', enum: ['newest', 'oldest'], default: 'newest' },
  },
  required: ['message'],
  additionalProperties: false,
}

const named = (name: string, description: string) => ({ name, description, inputSchema: schema })

const common = [
  named('echo', 'Says a hundred bytes.'),
  named('large', 'Says a mebibyte.'),
  named('slow', 'Says a hundred bytes after ten milliseconds.'),
  named('hang', 'Never says anything.'),
]

/** The four tools and as many more of ordinary size as it takes to be `count`. */
const tools = (count: number) => [
  ...common,
  ...Array.from({ length: Math.max(0, count - common.length) }, (_, number) =>
    named(`lookup_${number}`, `Looks up record ${number} and says what it found. Give it the key of the record.`),
  ),
]

const text = (size: number) => {
  const empty = JSON.stringify({ content: [{ type: 'text', text: '' }] })
  return JSON.stringify({ content: [{ type: 'text', text: `Echo: ${'x'.repeat(size - empty.length - 6)}` }] })
}

export const largeBytes = 1024 * 1024

const slowMs = 10

/** Answers with the id put in front of prepared bytes. */
export interface EchoAnswers {
  /** `answer` hears nothing where nothing is to be said; undefined stands for a notification. */
  answer(message: Buffer, answer: (bytes: readonly Buffer[] | undefined) => void): void
  /** How many calls have arrived. */
  readonly calls: number
}

export function echoAnswers(name: string, count: number): EchoAnswers {
  const result = (body: string) => Buffer.from(`,"result":${body}}`)
  const head = Buffer.from('{"jsonrpc":"2.0","id":')
  const small = result(text(100))
  const large = result(text(largeBytes))
  const list = result(JSON.stringify({ tools: tools(count) }))
  // The revision that is asked for is the one that is spoken: what is answered is the same in all of them.
  const welcome = (protocolVersion: string) =>
    result(
      JSON.stringify({
        protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name, version: '1.0.0' },
      }),
    )
  const pong = result('{}')
  const unknown = Buffer.from(',"error":{"code":-32601,"message":"Method not found"}}')
  const isCall = Buffer.from('"method":"tools/call"')
  const isEcho = Buffer.from('"name":"echo"')
  const idKey = Buffer.from('"id":')
  let calls = 0

  /** The id as it was written: a number or a short string, the way every client here sends it. */
  const idOf = (message: Buffer): Buffer | undefined => {
    const at = message.indexOf(idKey)
    if (at < 0) return undefined
    const start = at + idKey.length
    let end = start
    for (let byte = message[end]; byte !== 44 && byte !== 125 && byte !== undefined; byte = message[end]) end++
    return message.subarray(start, end)
  }

  const other = (message: Buffer): Buffer => {
    const { method, params } = JSON.parse(message.toString())
    switch (method) {
      case 'initialize':
        return welcome(params.protocolVersion)
      case 'tools/list':
        return list
      case 'ping':
        return pong
      default:
        return unknown
    }
  }

  return {
    answer(message, answer) {
      const id = idOf(message)
      if (id === undefined) return answer(undefined)
      if (!message.includes(isCall)) return answer([head, id, other(message)])
      calls += 1
      if (message.includes(isEcho)) return answer([head, id, small])
      if (message.includes('"name":"hang"')) return
      if (message.includes('"name":"large"')) return answer([head, id, large])
      const kept = Buffer.from(id)
      if (message.includes('"name":"slow"')) setTimeout(() => answer([head, kept, small]), slowMs)
      else answer([head, id, small])
    },
    get calls() {
      return calls
    },
  }
}
