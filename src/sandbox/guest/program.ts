import type { JSValueHandle } from 'quickjs-wasi'
import type { ProgramError } from '../../core/executor.ts'
import { beginProgram, placeIn, runPrelude } from './evaluate.ts'
import type { Machine, ProgramCalls } from './machine.ts'
import { type HostChannel, messageKinds, type ProgramResult, type ProgramTask } from './protocol.ts'

interface ReportedOutcome {
  readonly ok: boolean
  readonly text: string | undefined
}

const maxPendingTimers = 1000

/** Runs a program and reports its result once. */
export class GuestProgram implements ProgramCalls {
  readonly #task: ProgramTask
  readonly #machine: Machine
  readonly #channel: HostChannel
  readonly #ended: (result: ProgramResult) => void
  readonly #printer: Printer
  readonly #calls = new Set<number>()
  readonly #timers = new Map<number, NodeJS.Timeout>()
  readonly #truncated: string[] = []
  #linesBefore = 0
  #outcome: ReportedOutcome | undefined
  #made = 0
  #over = false

  constructor(task: ProgramTask, machine: Machine, channel: HostChannel, ended: (result: ProgramResult) => void) {
    this.#task = task
    this.#machine = machine
    this.#channel = channel
    this.#ended = ended
    this.#printer = new Printer(task, (text) => channel.send(messageKinds.log, 0, text))
  }

  /** Starts the program, after the prelude in a fresh engine. */
  start(isFresh: boolean): void {
    const { code, language, keep, prelude, cpuMs } = this.#task
    const { vm, tools } = this.#machine
    this.#machine.allow(cpuMs)
    this.#step(() => {
      if (isFresh && prelude !== '') runPrelude(vm, prelude)
      const begun = beginProgram(vm, code, language, keep)
      if ('error' in begun) {
        if (!this.#machine.exhausted) this.#end(endedBy(begun.error))
        return
      }
      // A program with a top-level `return` is wrapped in a function, which begins one line earlier.
      this.#linesBefore = begun.returned ? 1 : 0
      const isReturned = begun.returned ? vm.true : vm.false
      // The engine may outlive the program: keep none of its values.
      begun.promise.consume((promise) => vm.callFunction(tools.finish, vm.undefined, promise, isReturned).dispose())
    })
  }

  print(text: JSValueHandle): undefined {
    this.#printer.print(text.toString())
    if (this.#printer.flooded) this.#machine.interrupt()
  }

  /** Makes a host call. */
  call(id: JSValueHandle, name: JSValueHandle, input: JSValueHandle): string | undefined {
    const { calls, callBytes } = this.#task
    const [number, message] = [id.toNumber(), `${name.toString().replaceAll('\n', ' ')}\n${input.toString()}`]
    if (++this.#made > calls) return `The limit of ${calls} calls per program was reached.`
    if (Buffer.byteLength(message) > callBytes) return `A call's input exceeds ${callBytes} bytes.`
    this.#calls.add(number)
    this.#printer.flush()
    this.#channel.send(messageKinds.call, number, message)
    return undefined
  }

  timer(id: JSValueHandle, ms: JSValueHandle): string | undefined {
    if (this.#timers.size >= maxPendingTimers) return `The limit of ${maxPendingTimers} timers was reached.`
    const number = id.toNumber()
    const fire = () => {
      this.#timers.delete(number)
      this.#answer(number, true, '', '')
    }
    this.#timers.set(number, setTimeout(fire, Math.min(Math.max(ms.toNumber(), 0), 3_600_000)))
    return undefined
  }

  finished(ok: JSValueHandle, text?: JSValueHandle): undefined {
    this.#outcome ??= { ok: ok.toBoolean(), text: text?.isString ? text.toString() : undefined }
  }

  answered(id: number, ok: boolean, text: string, code: string): void {
    if (this.#calls.delete(id)) this.#answer(id, ok, text, code)
  }

  #answer(id: number, ok: boolean, text: string, code: string): void {
    const { vm, tools } = this.#machine
    this.#step(() => {
      const values = [vm.newNumber(id), ok ? vm.true : vm.false, vm.newString(text), vm.newString(code)]
      vm.callFunction(tools.answered, vm.undefined, ...values).dispose()
      for (const value of values) value.dispose()
    })
  }

  /** Runs the program until it waits, then checks whether it can continue. */
  #step(work: () => void): void {
    if (this.#over || !this.#enter(work)) return
    const outcome = this.#outcome
    if (outcome && (this.#calls.size === 0 || !outcome.ok)) this.#conclude(outcome)
    else if (!outcome && this.#calls.size === 0 && this.#timers.size === 0) this.#conclude()
  }

  /** Runs work in the engine. Returns false if that ended the program. */
  #enter(work: () => void): boolean {
    try {
      this.#machine.enter(work)
    } catch (thrown) {
      if (!this.#machine.exhausted) this.#end(trapResult(thrown))
    }
    if (this.#machine.exhausted) this.#end(this.#printer.flooded ? floodResult(this.#task) : outOfTime(this.#task))
    return !this.#over
  }

  /** Ends the program with its outcome; without one, it waits for something that will never happen. */
  #conclude(outcome?: ReportedOutcome): void {
    const { vm, tools } = this.#machine
    const isDone = this.#enter(() => {
      const unfinished = vm.callFunction(tools.unfinished, vm.undefined).consume((handle) => handle.toString())
      if (outcome?.ok !== false) this.#printer.print(unfinishedText(unfinished, this.#linesBefore))
    })
    if (!isDone) return
    if (outcome?.text !== undefined && outcome.ok)
      this.#channel.send(messageKinds.value, 0, this.#shortened(outcome.text))
    this.#end(outcome ? resultFor(outcome, this.#linesBefore) : stuck)
  }

  #shortened(text: string): string {
    const { valueBytes } = this.#task
    if (Buffer.byteLength(text) <= valueBytes) return text
    const limit = `The result is larger than ${valueBytes} bytes`
    this.#truncated.push(`${limit}: only the beginning of its JSON text is returned.`)
    // An escaped character takes up to six bytes, so a sixth of the limit is certain to fit.
    return JSON.stringify(text.slice(0, Math.floor(valueBytes / 6)))
  }

  #end(result: Omit<ProgramResult, 'truncated'>): void {
    if (this.#over) return
    this.#over = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#printer.flush()
    if (this.#printer.cut) this.#truncated.push(`Only the first ${this.#task.logBytes} bytes of the output are shown.`)
    this.#ended({ ...result, truncated: this.#truncated })
  }
}

const resultFor = ({ ok, text = '' }: ReportedOutcome, linesBefore: number): Omit<ProgramResult, 'truncated'> =>
  ok ? { status: 'ok' } : exceptionResult(text, linesBefore)

const endedBy = (error: ProgramError): Omit<ProgramResult, 'truncated'> =>
  error.name === 'InternalError' && error.message.includes('out of memory')
    ? outOfMemoryResult
    : { status: 'error', error }

/** The result for an uncaught exception, which the realm describes as JSON. */
function exceptionResult(text: string, linesBefore: number): Omit<ProgramResult, 'truncated'> {
  const { name, message, stack = '', code } = JSON.parse(text) as Record<string, string>
  return endedBy({
    name: String(name).slice(0, 200),
    message: String(message).slice(0, 8000),
    ...placeIn(String(stack), linesBefore),
    code: code === undefined ? undefined : String(code).slice(0, 200),
  })
}

/** Describes the errors and timers of a program that ended without waiting for them. */
function unfinishedText(text: string, linesBefore: number): string {
  const { errors, timers } = JSON.parse(text) as { errors: string[]; timers: number }
  const lines = errors.map((error) => {
    const { name, message, line } = exceptionResult(error, linesBefore).error as ProgramError
    const sentence = `Uncaught ${name}: ${message}${line === undefined ? '' : ` (line ${line})`}`
    return `${sentence.replace(/\.?$/, '.')} Await the promise to handle it.\n`
  })
  if (timers > 0) lines.push(`The program ended before ${timers} of its timers: await a promise that they resolve.\n`)
  return lines.join('')
}

function trapResult(thrown: unknown): Omit<ProgramResult, 'truncated'> {
  const { name, message } = thrown as Error
  if (message.includes('out of memory')) return outOfMemoryResult
  // After a WebAssembly trap, the engine's state is undefined.
  const error = { name: 'SandboxError', message: `The engine failed to run this program (${name}: ${message}).` }
  return { status: 'error', error, broken: true }
}

const outOfMemoryResult: Omit<ProgramResult, 'truncated'> = {
  status: 'out_of_memory',
  error: { name: 'MemoryError', message: 'The program exceeded its memory limit.' },
  broken: true,
}

const outOfTime = ({ cpuMs }: ProgramTask): Omit<ProgramResult, 'truncated'> => ({
  status: 'timeout',
  error: { name: 'TimeoutError', message: `The program exceeded its limit of ${cpuMs / 1000} s of CPU time.` },
  broken: true,
})

const floodResult = ({ logBytes }: ProgramTask): Omit<ProgramResult, 'truncated'> => ({
  status: 'error',
  error: {
    name: 'OutputError',
    message: `The program was stopped because it kept printing after the first ${logBytes} bytes. Print less.`,
  },
  broken: true,
})

const stuck: Omit<ProgramResult, 'truncated'> = {
  status: 'error',
  error: { name: 'Error', message: 'The program is waiting for a promise that will never settle.' },
}

/**
 * Size and age at which a batch of output is sent. Batches keep the number of messages low, but must not wait long,
 * because unsent output is lost when the program is killed.
 */
const batchBytes = 4096
const outputBatchMs = 50
/** As how many bytes a short line counts once output is dropped: the time that it takes does not depend on its length. */
const printCost = 2048

class Printer {
  readonly #send: (text: string) => void
  #batch = ''
  #left: number
  #leftToDrop: number
  #sent = 0
  /** Whether output was dropped. */
  cut = false

  constructor({ logBytes, droppedLogBytes }: ProgramTask, send: (text: string) => void) {
    this.#left = logBytes
    this.#leftToDrop = droppedLogBytes
    this.#send = send
  }

  /** Whether too much output was dropped. */
  get flooded(): boolean {
    return this.#leftToDrop < 0
  }

  print(text: string): void {
    if (this.#left <= 0) {
      this.cut ||= text !== ''
      this.#leftToDrop -= Math.max(text.length, printCost)
      return
    }
    const bytes = Buffer.from(text)
    this.cut ||= bytes.length > this.#left
    this.#batch += bytes.length > this.#left ? bytes.subarray(0, this.#left).toString() : text
    this.#left -= bytes.length
    if (this.#batch.length > batchBytes || performance.now() - this.#sent > outputBatchMs) this.flush()
  }

  flush(): void {
    if (this.#batch === '') return
    this.#send(this.#batch)
    this.#batch = ''
    this.#sent = performance.now()
  }
}
