import type { Writable } from 'node:stream'
import { settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { InFlight } from '../../lib/in-flight.ts'
import { createLineReader, toOneLine } from '../../wire/bytes.ts'
import { maxMessage } from '../../wire/message.ts'
import { ServerProcess, type ServerProcessOptions } from './child-process.ts'
import { maxPerSecond, type ReadBudget, ReadLimit } from './read-limit.ts'
import { maxStderrLine, type OutputLine, ProcessOutput, type RedactLine } from './stderr.ts'
import type { OutgoingMessage, Transport, TransportReceiver } from './transport.ts'
import { brokenConnectionCode, closedByUs, LimitExceeded, StrayOutput, unsentError } from './transport-errors.ts'

export interface StdioTransportOptions extends ServerProcessOptions {
  /** Called if the server exceeds a limit, without a request that fails for it. */
  exceeded?(limit: LimitExceeded): void
  /** What the output of all processes of the server may use together; by default, each stream has a budget of its own. */
  readonly reading?: ReadBudget | undefined
  /** How long a process may take to send its first message after it has written other output to stdout. */
  readonly startTimeout?: number | undefined
  readonly log: Log
  /** Redacts output that is not part of the protocol, before it reaches an error or the log. */
  readonly redact?: RedactLine | undefined
  readonly wrote?: ((line: OutputLine) => void) | undefined
}

/** How long a process that writes other output to stdout before the handshake may take by default to send a message. */
const firstMessageMs = 10_000

/** How long a line that is too long may take to end. */
const lineEndMs = 1_000

/** How much other output a server may write to stdout before the handshake. No start needs so much; a wrong command does. */
const maxEarlyOutput = 4 * 1024 * 1024

/** How long a process's output may take to end after the process has exited. */
const exitGraceMs = 250

/** A transport to a child process, with newline-delimited messages on stdin and stdout. */
export class StdioTransport implements Transport {
  readonly kind = 'stdio'
  usable = false
  readonly #options: StdioTransportOptions
  readonly #output: ProcessOutput
  #starting: Promise<ServerProcess> | undefined
  #process: ServerProcess | undefined
  #outbox: Outbox | undefined
  #receiver: TransportReceiver | undefined
  #isEstablished = false
  #disposing: Promise<void> | undefined
  /** Why nothing can be sent any more; of no meaning while the transport is usable. */
  #over: ToolwayError
  #stdoutLimit: ReadLimit | undefined
  /** How much other output than messages the process wrote to stdout before the handshake. */
  #earlyOutput = 0
  #hasSpoken = false
  #isStrayReported = false
  #firstMessageTimer: Disposable | undefined
  #lineEndTimer: Disposable | undefined

  constructor(options: StdioTransportOptions) {
    const { name: server, env, redact, wrote, clock, log } = options
    this.#options = options
    this.#output = new ProcessOutput({ server, secrets: Object.values(env), redact, wrote, clock, log })
    this.#over = this.#unavailable('has not been started yet')
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  async open(receiver: TransportReceiver, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    this.#starting = ServerProcess.start(this.#options)
    this.#process = await this.#starting
    if (!signal.aborted && !this.#disposing) {
      this.#receiver = receiver
      this.usable = true
      this.#listen(this.#process)
      return
    }
    await this.#process.close()
    throw signal.reason ?? closedByUs(this.#options.name)
  }

  send({ body, signal }: OutgoingMessage): Promise<void> {
    if (!this.usable) return Promise.reject(this.#over)
    const outbox = this.#outbox as Outbox
    if (outbox.waiting > maxMessage) return Promise.reject(this.#unavailable('is not reading its input'))
    return outbox.send(toOneLine(body), signal)
  }

  established(): void {
    this.#isEstablished = true
  }

  explanation(): string {
    const { last, stray } = this.#output
    const line =
      this.#isEstablished || stray === '' ? '' : ` It wrote "${stray}" to stdout, which is only for MCP messages.`
    return last === '' ? line : `${line} It last wrote: "${last}".`
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.#dispose()
    return this.#disposing
  }

  #listen({ stdin, stdout, stderr, ended, drained }: ServerProcess): void {
    const { clock, reading } = this.#options
    const flooded = () => this.#options.exceeded?.(new LimitExceeded('flood', maxPerSecond))
    const stdoutLimit = new ReadLimit(stdout, clock, flooded, reading)
    const stderrLimit = new ReadLimit(stderr, clock, flooded, reading)
    this.#stdoutLimit = stdoutLimit
    const messages = createLineReader({
      maxLength: maxMessage,
      skipsEmpty: true,
      line: this.#onLine,
      skipped: (length) => this.#onSkipped(length),
      // A line that does not end would swallow the responses to other calls.
      tooLong: () => {
        this.#lineEndTimer = clock.after(lineEndMs, () => this.#onEndlessLine())
      },
      dropped: (head, tail, length) => this.#onDropped(head, tail, length),
    })
    const written = createLineReader({
      maxLength: maxStderrLine,
      skipsEmpty: true,
      skipped: (length) => stderrLimit.bytes(length),
      dropping: ({ length }) => stderrLimit.bytes(length),
      line: (bytes) => {
        this.#output.line('stderr', bytes)
        stderrLimit.line(bytes)
      },
    })
    stdout.on('data', messages.push)
    stderr.on('data', written.push)
    for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {})
    this.#outbox = new Outbox(stdin, (reject) => this.#refuse(reject))

    // Stop a server that closed stdin or stdout: it can no longer serve, even if its process is still running.
    const half = async (which: string): Promise<void> => {
      if (!(await settles(ended, exitGraceMs, clock)) && !this.#disposing)
        this.#giveUp(`closed its ${which} and was stopped`)
    }
    stdin.once('close', () => void half('input'))
    stdout.once('end', () => void half('output'))

    ended.then(async (how) => {
      // By now, Node has destroyed stdin, which settles pending writes.
      this.#stop(`ended (${how})`)
      this.#firstMessageTimer?.[Symbol.dispose]()
      stdoutLimit.end()
      stderrLimit.end()
      await settles(drained, exitGraceMs, clock)
      messages.end()
      written.end()
      stdout.destroy()
      stderr.destroy()
      this.#report(`ended (${how})`)
    })
  }

  readonly #onLine = (bytes: Buffer): void => {
    if (bytes[0] === OPEN_BRACE || looksLikeMessage(bytes)) {
      this.#hasSpoken = true
      if (!this.#receiver?.message(bytes)) this.#stdoutLimit?.message(bytes)
    } else this.#onOtherOutput(bytes)
  }

  /** Handles a line of stdout that is not a message. */
  #onOtherOutput(bytes: Buffer): void {
    const { clock, startTimeout = firstMessageMs } = this.#options
    this.#output.line('stdout', bytes)
    if (!this.#isStrayReported && this.#output.stray !== '') {
      this.#isStrayReported = true
      this.#options.exceeded?.(new LimitExceeded('stray-output', 0, JSON.stringify(this.#output.stray)))
    }
    if (!this.#hasSpoken) this.#firstMessageTimer ??= clock.after(startTimeout, () => this.#onSilence(startTimeout))
    if (this.#isEstablished && this.usable) this.#stdoutLimit?.line(bytes)
    else this.#addEarlyOutput(bytes.length)
  }

  #onSkipped(length: number): void {
    if (this.#isEstablished && this.usable) this.#stdoutLimit?.bytes(length)
    else this.#addEarlyOutput(length)
  }

  #addEarlyOutput(length: number): void {
    this.#earlyOutput += length
    if (this.#earlyOutput > maxEarlyOutput && this.usable) this.#giveUp(notProtocol, new StrayOutput())
  }

  #onSilence(ms: number): void {
    if (this.#hasSpoken || !this.usable) return
    const why = `sent no message within ${ms / 1000} s after other output, and was stopped: log to stderr`
    const advice = `or set mcpServers.${this.#options.name}.startTimeout if it starts slowly`
    this.#giveUp(`${why}, ${advice}`, new StrayOutput())
  }

  /** Handles the end of a line that was too long, of which only the first and last bytes are known. */
  #onDropped(head: Buffer, tail: Buffer, length: number): void {
    this.#lineEndTimer?.[Symbol.dispose]()
    const id = responseId(head, tail)
    if (!looksLikeMessage(head)) {
      this.#output.line('stdout', head)
      this.#onSkipped(length)
    } else if (id === undefined) this.#onEndlessLine()
    else this.#receiver?.failed(id, this.#failure(`responded with more than ${maxMegabytes} MiB.`, tooLargeMessage()))
  }

  /** Stops the server if a line does not end, or if we cannot know which request it was the response to. */
  #onEndlessLine(): void {
    if (this.usable) this.#giveUp(`sent a line longer than ${maxMegabytes} MiB and was stopped`, tooLargeMessage())
  }

  /** Rejects a message that was not read. The process may have died, so the next call must use another process. */
  #refuse(reject: (reason: unknown) => void): void {
    this.#end('stopped reading')
    const refusal = this.#over
    // During the handshake, wait a moment: the exit status and stderr follow soon and explain more than this error.
    if (this.#isEstablished) reject(refusal)
    else this.#options.clock.after(2 * exitGraceMs, () => reject(refusal))
  }

  /** From now on, nothing can be sent. */
  #end(what: string): void {
    if (this.usable) this.#over = this.#unavailable(what)
    this.usable = false
  }

  #stop(what: string): void {
    this.#end(what)
    this.#outbox?.close()
  }

  #giveUp(what: string, cause?: Error): void {
    this.#stop(what)
    this.#process?.kill()
    this.#process?.stdin.destroy()
    this.#report(what, cause)
  }

  /** Notifies the receiver once that the process has ended, after the unwritten messages have been rejected. */
  #report(what: string, cause?: Error): void {
    const receiver = this.#receiver
    this.#receiver = undefined
    if (!receiver || this.#disposing) return
    const advice = this.#isEstablished ? '' : ' Run its command manually to see the cause.'
    const error = this.#failure(`${what}.${this.explanation()}${advice}`, cause)
    setImmediate(() => {
      if (!this.#disposing) receiver.closed(error)
    })
  }

  async #dispose(): Promise<void> {
    this.usable = false
    this.#over = closedByUs(this.#options.name)
    this.#receiver = undefined
    this.#outbox?.close()
    const child = await this.#starting?.catch(() => undefined)
    if (!child) return
    await child.close()
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  }

  #failure(what: string, cause?: Error): ToolwayError {
    const { name: server } = this.#options
    return new ToolwayError(brokenConnectionCode(this.#isEstablished), `${server} ${what}`, { server, cause })
  }

  #unavailable(what: string): ToolwayError {
    const { name } = this.#options
    return unsentError(name, `${name} ${what}; try again.`)
  }
}

const notProtocol = `wrote more than ${maxEarlyOutput / 1024 / 1024} MiB to stdout that are not MCP messages, and was stopped`
const maxMegabytes = maxMessage / 1024 / 1024
const tooLargeMessage = (): LimitExceeded => new LimitExceeded('large-message', maxMessage)

/** The request that a response is for, of which only the start and the end are known; undefined if that is unclear. */
function responseId(head: Buffer, tail: Buffer): number | undefined {
  const start = /^(?:\xef\xbb\xbf)?\s*\{((?:\s*"(?:jsonrpc|id)"\s*:\s*(?:"[^"]*"|\d+)\s*,)*)\s*"(?:result|error)"\s*:/
  const before = start.exec(head.toString('latin1'))?.[1]
  if (before === undefined) return undefined
  const end = /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]*"\s*)?\}\s*$/
  const id = /"id"\s*:\s*(\d{1,15})\s*,/.exec(before) ?? end.exec(tail.toString('latin1'))
  return id ? Number(id[1]) : undefined
}

const OPEN_BRACE = 0x7b

/** Whether a line may be a message. Messages are JSON objects; anything else on stdout is ordinary output. */
function looksLikeMessage(line: Buffer): boolean {
  const from = line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0
  for (let at = from; at < line.length; at++) {
    const byte = line[at]
    if (byte !== 0x20 && byte !== 0x09) return byte === OPEN_BRACE
  }
  return false
}

interface QueuedMessage {
  readonly number: number
  readonly body: Buffer
  readonly signal: AbortSignal | undefined
  readonly settled: PromiseWithResolvers<void>
  /** The cancel listener, if the wait may be long. */
  cancelled?: () => void
}

const lineFeedByte = 0x0a
const lineEndBytes = Buffer.from([lineFeedByte])

/** The largest write to a pipe that POSIX guarantees to be atomic. */
const atomicBytes = 4096

/**
 * Queues messages for a pipe. Messages from one turn of the event loop are sent in one write, as long as that write is
 * small enough to be atomic. So after a failed write it is known which messages cannot have been read: those whose line
 * ends were not written. `refuse` receives the reject function of a message that was certainly not read, and decides
 * when to call it and with which error.
 */
export class Outbox {
  readonly #pipe: Writable
  readonly #refuse: (reject: (reason: unknown) => void) => void
  readonly #queue = new InFlight<number, QueuedMessage>()
  #queued = 0
  #queuedBytes = 0
  #isScheduled = false
  #isClosed = false

  constructor(pipe: Writable, refuse: (reject: (reason: unknown) => void) => void) {
    this.#pipe = pipe
    this.#refuse = refuse
  }

  /** How many bytes the other side has not read yet. */
  get waiting(): number {
    return this.#queuedBytes + this.#pipe.writableLength
  }

  /** Resolves when the pipe has accepted the whole line. A message that is cancelled in the queue is not written. */
  send(body: Buffer, signal?: AbortSignal): Promise<void> {
    const settled = Promise.withResolvers<void>()
    if (this.#isClosed) {
      this.#refuse(settled.reject)
      return settled.promise
    }
    const message: QueuedMessage = { number: ++this.#queued, body, signal, settled }
    this.#queue.set(message.number, message)
    this.#queuedBytes += body.length
    if (this.#pipe.writableLength > 0) this.#watch(message)
    else if (!this.#isScheduled) {
      // Write at the end of this turn of the event loop, so that concurrent messages share a write.
      this.#isScheduled = true
      setImmediate(this.#writeQueued)
    }
    return settled.promise
  }

  close(): void {
    this.#isClosed = true
    for (const message of this.#queue.values()) {
      this.#take(message)
      this.#refuse(message.settled.reject)
    }
  }

  readonly #writeQueued = (): void => {
    this.#isScheduled = false
    while (this.#queue.size > 0 && this.#pipe.writableLength === 0 && !this.#isClosed) this.#writeBundle()
  }

  #watch(message: QueuedMessage): void {
    message.cancelled = () => {
      this.#take(message)
      message.settled.reject(message.signal?.reason)
    }
    message.signal?.addEventListener('abort', message.cancelled, { once: true })
  }

  #take(message: QueuedMessage): void {
    if (message.cancelled) message.signal?.removeEventListener('abort', message.cancelled)
    this.#queue.take(message.number)
    this.#queuedBytes -= message.body.length
  }

  /** Writes the first messages of the queue that fit into one atomic write. */
  #writeBundle(): void {
    const messages: QueuedMessage[] = []
    let bytes = 0
    for (const message of this.#queue.values()) {
      const { body, signal, settled } = message
      if (!signal?.aborted) {
        if (messages.length > 0 && bytes + body.length + 1 > atomicBytes) break
        bytes += body.length + 1
        messages.push(message)
      } else settled.reject(signal.reason)
      this.#take(message)
    }
    const [first] = messages
    if (!first) return
    const pipe = this.#pipe
    const onWritten = (error?: Error | null) => {
      if (error) {
        for (const { settled } of messages) this.#refuse(settled.reject)
        this.close()
        return
      }
      for (const { settled } of messages) settled.resolve()
      if (this.#queue.size > 0) this.#writeQueued()
    }
    if (first.body.length < atomicBytes) pipe.write(joinLines(messages, bytes), onWritten)
    else {
      pipe.cork()
      pipe.write(first.body)
      pipe.write(lineEndBytes, onWritten)
      pipe.uncork()
    }
    // The pipe accepted everything at once, so its later errors do not affect these messages.
    if (pipe.writableLength === 0 && !pipe.errored && !pipe.destroyed)
      for (const { settled } of messages) settled.resolve()
  }
}

function joinLines(messages: readonly QueuedMessage[], bytes: number): Buffer {
  const lines = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const { body } of messages) {
    lines.set(body, at)
    at += body.length
    lines[at++] = lineFeedByte
  }
  return lines
}
