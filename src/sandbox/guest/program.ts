import type { JSValueHandle } from 'quickjs-wasi'
import type { ProgramError } from '../../core/executor.ts'
import { begin, placeIn, runPrelude } from './evaluate.ts'
import type { Machine } from './machine.ts'
import { type HostChannel, messageKinds, type ProgramResult, type ProgramTask } from './protocol.ts'

export interface Running {
  print(text: JSValueHandle): undefined
  /** Makes a host call. Returns an error message if a limit is exceeded. */
  call(id: JSValueHandle, name: JSValueHandle, input: JSValueHandle): string | undefined
  timer(id: JSValueHandle, ms: JSValueHandle): string | undefined
  finished(ok: JSValueHandle, text?: JSValueHandle): undefined
  answered(id: number, ok: boolean, text: string, code: string): void
}

const maxTimers = 1000

/** Runs a program and reports its result once. */
export function startProgram(options: {
  readonly task: ProgramTask
  readonly machine: () => Machine
  readonly fresh: boolean
  readonly channel: HostChannel
  ended(result: ProgramResult): void
}): Running & { start(): void } {
  const { task, machine, channel } = options
  const printer = createPrinter(task.logBytes, (text) => channel.send(messageKinds.log, 0, text))
  const calls = new Set<number>()
  const timers = new Map<number, NodeJS.Timeout>()
  const truncated: string[] = []
  let linesBefore = 0
  let outcome: { readonly ok: boolean; readonly text: string | undefined } | undefined
  let made = 0
  let over = false

  const end = (result: Omit<ProgramResult, 'truncated'>) => {
    if (over) return
    over = true
    for (const timer of timers.values()) clearTimeout(timer)
    printer.flush()
    if (printer.cut) truncated.push(`Only the first ${task.logBytes} bytes of the output are shown.`)
    options.ended({ ...result, truncated })
  }

  /** Runs the program until it waits, then checks whether it can continue. */
  const step = (work: () => void) => {
    if (over) return
    try {
      machine().enter(work)
    } catch (thrown) {
      if (!machine().exhausted) return end(trapped(thrown))
    }
    if (machine().exhausted) end(outOfTime(task.cpuMs))
    else if (!over && outcome && (calls.size === 0 || !outcome.ok)) conclude(outcome)
    else if (!over && !outcome && calls.size === 0 && timers.size === 0) conclude()
  }

  /** Ends the program with its outcome; without one, it waits for something that will never happen. */
  const conclude = (reached?: { readonly ok: boolean; readonly text: string | undefined }) => {
    try {
      machine().enter(() => {
        const { vm, tools } = machine()
        const unfinished = vm.callFunction(tools.unfinished, vm.undefined).consume((handle) => handle.toString())
        if (reached?.ok !== false) printer.print(unfinishedText(unfinished, linesBefore))
      })
    } catch (thrown) {
      return end(machine().exhausted ? outOfTime(task.cpuMs) : trapped(thrown))
    }
    if (!reached) return end(stuck)
    const { ok, text } = reached
    if (!ok) return end(failed(text ?? '', linesBefore))
    if (text !== undefined) channel.send(messageKinds.value, 0, shortened(text))
    end({ status: 'ok' })
  }

  const shortened = (text: string): string => {
    if (Buffer.byteLength(text) <= task.valueBytes) return text
    const limit = `The result is larger than ${task.valueBytes} bytes`
    truncated.push(`${limit}: only the beginning of its JSON text is returned.`)
    // An escaped character takes up to six bytes, so a sixth of the limit is certain to fit.
    return JSON.stringify(text.slice(0, Math.floor(task.valueBytes / 6)))
  }

  return {
    start() {
      machine().allow(task.cpuMs)
      step(() => {
        const { vm, tools } = machine()
        if (options.fresh && task.prelude !== '') runPrelude(vm, task.prelude)
        const begun = begin(vm, task.code, task.language, task.keep)
        if ('error' in begun) {
          if (!machine().exhausted) end(endedBy(begun.error))
          return
        }
        linesBefore = begun.linesBefore
        vm.callFunction(tools.finish, vm.undefined, begun.promise, begun.returned ? vm.true : vm.false)
      })
    },
    print: (text) => printer.print(text.toString()) as undefined,
    call(id, name, input) {
      const [number, message] = [id.toNumber(), `${name.toString().replaceAll('\n', ' ')}\n${input.toString()}`]
      if (++made > task.calls) return `The limit of ${task.calls} calls per program was reached.`
      if (Buffer.byteLength(message) > task.callBytes) return `A call's input exceeds ${task.callBytes} bytes.`
      calls.add(number)
      printer.flush()
      channel.send(messageKinds.call, number, message)
      return undefined
    },
    timer(id, ms) {
      if (timers.size >= maxTimers) return `The limit of ${maxTimers} timers was reached.`
      const number = id.toNumber()
      const fire = () => {
        timers.delete(number)
        answer(number, true, '', '')
      }
      timers.set(number, setTimeout(fire, Math.min(Math.max(ms.toNumber(), 0), 3_600_000)))
      return undefined
    },
    finished(ok, text) {
      outcome ??= { ok: ok.toBoolean(), text: text?.isString ? text.toString() : undefined }
      return undefined
    },
    answered(id, ok, text, code) {
      if (calls.delete(id)) answer(id, ok, text, code)
    },
  }

  function answer(id: number, ok: boolean, text: string, code: string): void {
    step(() => {
      const { vm, tools } = machine()
      const values = [vm.newNumber(id), ok ? vm.true : vm.false, vm.newString(text), vm.newString(code)]
      vm.callFunction(tools.answered, vm.undefined, ...values).dispose()
      for (const value of values) value.dispose()
    })
  }
}

const endedBy = (error: ProgramError): Omit<ProgramResult, 'truncated'> =>
  error.name === 'InternalError' && error.message.includes('out of memory') ? outOfMemory : { status: 'error', error }

/** The result for an uncaught exception, which the realm describes as JSON. */
function failed(text: string, linesBefore: number): Omit<ProgramResult, 'truncated'> {
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
    const { name, message, line } = failed(error, linesBefore).error as ProgramError
    const sentence = `Uncaught ${name}: ${message}${line === undefined ? '' : ` (line ${line})`}`
    return `${sentence.replace(/\.?$/, '.')} Await the promise to handle it.\n`
  })
  if (timers > 0) lines.push(`The program ended before ${timers} of its timers: await a promise that they resolve.\n`)
  return lines.join('')
}

function trapped(thrown: unknown): Omit<ProgramResult, 'truncated'> {
  const { name, message } = thrown as Error
  if (message.includes('out of memory')) return outOfMemory
  // After a WebAssembly trap, the engine's state is undefined.
  const error = { name: 'SandboxError', message: `The engine failed to run this program (${name}: ${message}).` }
  return { status: 'error', error, broken: true }
}

const outOfMemory: Omit<ProgramResult, 'truncated'> = {
  status: 'out_of_memory',
  error: { name: 'MemoryError', message: 'The program exceeded its memory limit.' },
  broken: true,
}

const outOfTime = (cpuMs: number): Omit<ProgramResult, 'truncated'> => ({
  status: 'timeout',
  error: { name: 'TimeoutError', message: `The program exceeded its limit of ${cpuMs / 1000} s of CPU time.` },
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
const batchMs = 50

function createPrinter(maxBytes: number, send: (text: string) => void) {
  let batch = ''
  let left = maxBytes
  let sent = 0
  let cut = false

  const flush = () => {
    if (batch === '') return
    send(batch)
    batch = ''
    sent = performance.now()
  }

  return {
    print(text: string): void {
      if (left <= 0) {
        cut ||= text !== ''
        return
      }
      const bytes = Buffer.from(text)
      cut ||= bytes.length > left
      batch += bytes.length > left ? bytes.subarray(0, left).toString() : text
      left -= bytes.length
      if (batch.length > batchBytes || performance.now() - sent > batchMs) flush()
    },
    flush,
    /** Whether output was dropped. */
    get cut() {
      return cut
    },
  }
}
