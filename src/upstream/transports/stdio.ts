import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { toOneLine } from '../../wire/bytes.ts'
import { createLineReader } from '../../wire/line-reader.ts'
import { maxMessage } from '../../wire/message.ts'
import { type ServerProcessHandle, type ServerProcessOptions, startServerProcess } from './child-process.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { createByteTail, createProcessOutput, maxStderr, type RedactLine } from './stderr.ts'
import { type OutgoingMessage, settles, type Transport, type TransportReceiver } from './transport.ts'
import { brokenConnectionCode, closedByUs, mayHaveRun } from './transport-errors.ts'

export interface StdioTransportOptions extends ServerProcessOptions {
  readonly log: Log
  /** Redacts output besides the protocol before it reaches an error or the log. */
  readonly redact?: RedactLine | undefined
  /** Receives the redacted lines of stderr. */
  readonly wrote?: ((line: string) => void) | undefined
}

export interface StdioTransport extends Transport {
  readonly pid: number | undefined
  /** The last bytes that the process wrote to stderr. */
  stderrTail(): string
}

/** How long the exit of a process and the end of its output may be apart. */
const graceMs = 250

/** A server as a child process with newline-delimited messages on stdin and stdout. */
export function stdioTransport(options: StdioTransportOptions): StdioTransport {
  const { name, redact, wrote, clock, log } = options
  const chatter = createProcessOutput({ server: name, secrets: Object.values(options.env), redact, wrote, clock, log })
  const tail = createByteTail(maxStderr)
  let starting: Promise<ServerProcessHandle> | undefined
  let child: ServerProcessHandle | undefined
  let outbox: Outbox | undefined
  let receiver: TransportReceiver | undefined
  let established = false
  let disposing: Promise<void> | undefined
  /** Why nothing can be sent any more. */
  let over: ToolwayError | undefined = unavailable('has not been started yet')

  return {
    kind: 'stdio',
    get usable() {
      return over === undefined
    },
    get pid() {
      return child?.pid
    },
    stderrTail: tail.text,
    open,
    send,
    established() {
      established = true
    },
    [Symbol.asyncDispose]() {
      disposing ??= dispose()
      return disposing
    },
  }

  async function open(given: TransportReceiver, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    starting = startServerProcess(options)
    child = await starting
    if (!signal.aborted && !disposing) {
      receiver = given
      over = undefined
      listen(child)
      return
    }
    await child.close()
    throw signal.reason ?? closedByUs(name)
  }

  function listen({ streams, ended, drained }: ServerProcessHandle): void {
    const { stdin, stdout, stderr } = streams
    const lines = createLineReader({
      maxLength: maxMessage,
      skipsEmpty: true,
      line: (bytes) => {
        if (looksLikeMessage(bytes)) receiver?.message(bytes)
        else chatter.line('stdout', bytes)
      },
      // We cannot know which request it was the response to.
      tooLong: () => giveUp(`sent a line longer than ${maxMessage / 1024 / 1024} MiB and was stopped`),
    })
    const written = createLineReader({
      maxLength: maxStderr,
      skipsEmpty: true,
      line: (bytes) => chatter.line('stderr', bytes),
      tooLong: () => {},
    })
    stdout.on('data', lines.push)
    stderr.on('data', (chunk: Buffer) => {
      tail.push(chunk)
      written.push(chunk)
    })
    for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {})
    outbox = createOutbox(stdin, refuse)

    // A server that closed stdin or stdout cannot serve any more, even if its process lives on.
    const half = async (which: string): Promise<void> => {
      if (!(await settles(ended, graceMs, clock)) && !disposing) giveUp(`closed its ${which} and was stopped`)
    }
    stdin.once('close', () => void half('input'))
    stdout.once('end', () => void half('output'))

    ended.then(async (how) => {
      // Node has destroyed stdin by now, which settles pending writes.
      stop(`ended (${how})`)
      await settles(drained, graceMs, clock)
      lines.end()
      written.end()
      stdout.destroy()
      stderr.destroy()
      report(`ended (${how})`)
    })
  }

  function send({ body, signal }: OutgoingMessage): Promise<void> {
    if (over) return Promise.reject(over)
    const { waiting, send } = outbox as Outbox
    if (waiting > maxMessage) return Promise.reject(unavailable('does not read its input'))
    return send(toOneLine(body), signal)
  }

  /** Often the first sign that the process has died: the next call needs another one. */
  function refuse(reject: (reason: unknown) => void): void {
    over ??= unavailable('stopped reading')
    const refusal = over
    // During the handshake, the exit status and stderr, which follow soon, say more.
    if (established) reject(refusal)
    else clock.after(2 * graceMs, () => reject(refusal))
  }

  function stop(what: string): void {
    over ??= unavailable(what)
    outbox?.close()
  }

  function giveUp(what: string): void {
    stop(what)
    child?.kill()
    child?.streams.stdin.destroy()
    report(what)
  }

  /** Notifies the receiver once, after unwritten messages were rejected. */
  function report(what: string): void {
    const told = receiver
    receiver = undefined
    if (!told || disposing) return
    const lastWords = chatter.last === '' ? '' : ` It last wrote: "${chatter.last}".`
    const advice = established ? mayHaveRun : 'Run its command by hand to see why.'
    const error = new ToolwayError(brokenConnectionCode(established), `${name} ${what}.${lastWords} ${advice}`, {
      server: name,
    })
    setImmediate(() => {
      if (!disposing) told.closed(error)
    })
  }

  async function dispose(): Promise<void> {
    over = closedByUs(name)
    receiver = undefined
    outbox?.close()
    const child = await starting?.catch(() => undefined)
    if (!child) return
    await child.close()
    child.streams.stdin.destroy()
    child.streams.stdout.destroy()
    child.streams.stderr.destroy()
  }

  function unavailable(what: string): ToolwayError {
    return new ToolwayError('SERVER_UNAVAILABLE', `${name} ${what}; call again.`, { server: name, unsent: true })
  }
}

/** Messages are objects; anything else on stdout is ordinary output. */
function looksLikeMessage(line: Buffer): boolean {
  const from = line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0
  for (let at = from; at < line.length; at++) {
    const byte = line[at]
    if (byte !== 0x20 && byte !== 0x09) return byte === 0x7b
  }
  return false
}
