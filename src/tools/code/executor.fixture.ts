import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { EvalFlags, type JSException, type JSValueHandle, QuickJS } from 'quickjs-wasi'
import type { ExecutionOutcome, Executor, HostRefusal, Language, Program } from '../../core/executor.ts'

/** The types of Node know nothing of WebAssembly. */
const { compile } = Reflect.get(globalThis, 'WebAssembly') as { compile(bytes: Uint8Array): Promise<never> }
const wasm = await compile(await readFile(new URL(import.meta.resolve('quickjs-wasi/quickjs.wasm'))))

export interface FixtureExecutor extends Executor {
  readonly programs: readonly Program[]
}

/**
 * Runs JavaScript in an engine inside this process: enough to see what programs can do through their bridge. How they
 * are held is the sandbox's business, and tested there. Of Python it only keeps what it was asked.
 */
export function createFixtureExecutor(
  languages: readonly Language[] = ['javascript', 'typescript'],
  missing: readonly string[] = [],
): FixtureExecutor {
  const programs: Program[] = []
  const environments = new Map<string, Machine>()
  return {
    programs,
    probe: async () => ({ tier: languages.length > 0 ? 'process' : undefined, languages, missing }),
    async run(program) {
      programs.push(program)
      const { environment, language, prelude = '' } = program
      if (language === 'python') return { status: 'ok', ...told, logs: '' }
      const known = environment === undefined ? undefined : environments.get(environment)
      const machine = known ?? (await createMachine())
      if (environment !== undefined) environments.set(environment, machine)
      const logs: string[] = []
      using deadline = ending(program)
      machine.now = { program, logs, signal: deadline.signal }
      if (!known) machine.vm.evalCode(prelude, 'prelude.js').dispose()
      const outcome = await Promise.race([finished(machine.vm, program), deadline.late])
      return { ...told, ...outcome, logs: logs.join('') }
    },
    async [Symbol.asyncDispose]() {
      for (const { vm } of environments.values()) vm[Symbol.dispose]()
    },
  }
}

/** An engine, and the program that it runs now. */
interface Machine {
  readonly vm: QuickJS
  now?: { readonly program: Program; readonly logs: string[]; readonly signal: AbortSignal }
}

const told = { isolation: 'process', durationMs: 1, truncated: [] } as const

type Ended = Pick<ExecutionOutcome, 'status' | 'value' | 'error'>

async function finished(vm: QuickJS, { code, language }: Program): Promise<Ended> {
  try {
    const text = language === 'typescript' ? stripTypeScriptTypes(code) : code
    const promise = /^\s*return\b/m.test(text)
      ? vm.evalCode(`(async () => {${text}\n})().then((value) => ({ value }))`, 'program.js')
      : vm.evalCode(text, 'program.js', EvalFlags.ASYNC)
    vm.executePendingJobs()
    const settled = await vm.resolvePromise(promise)
    if ('error' in settled) return { status: 'error', error: errorOf(vm, settled.error) }
    vm.setProp(vm.global, '__result', settled.value)
    // What it came to may be a promise itself.
    const json = vm.evalCode('Promise.resolve(__result.value).then((value) => JSON.stringify(value))')
    vm.executePendingJobs()
    const text2 = await vm.resolvePromise(json)
    if ('error' in text2) return { status: 'error', error: errorOf(vm, text2.error) }
    const value = text2.value.isString ? text2.value.toString() : undefined
    return { status: 'ok', ...(value !== undefined && { value }) }
  } catch (thrown) {
    const { name, message } = thrown as JSException
    return { status: 'error', error: { name, message } }
  }
}

function errorOf(vm: QuickJS, error: JSValueHandle): NonNullable<ExecutionOutcome['error']> {
  const text = (name: string): string | undefined => {
    const value = vm.dump(error.getProp(name))
    return typeof value === 'string' ? value : undefined
  }
  const line = /program\.js:(\d+)/.exec(text('stack') ?? '')?.[1]
  const code = text('code')
  return {
    name: text('name') ?? 'Error',
    message: text('message') ?? '',
    ...(line !== undefined && { line: Number(line) }),
    ...(code !== undefined && { code }),
  }
}

async function createMachine(): Promise<Machine> {
  const vm = await QuickJS.create({ wasm })
  const machine: Machine = { vm }
  const log = vm.newFunction('log', (...values) => {
    machine.now?.logs.push(`${values.map((value) => value.toString()).join(' ')}\n`)
    return vm.undefined
  })
  const console = vm.newObject()
  console.setProp('log', log)
  vm.setProp(vm.global, 'console', console)
  const ask = vm.newFunction('host', (name, input) => {
    const answer = vm.newPromise()
    const { program, signal } = machine.now as NonNullable<Machine['now']>
    const settle = (work: () => void) => {
      if (signal.aborted) return
      work()
      vm.executePendingJobs()
    }
    program.host(name?.toString() ?? '', input?.toString() ?? '', signal).then(
      (text) => settle(() => answer.resolve(vm.newString(text))),
      (refusal: HostRefusal) =>
        settle(() => {
          const error = vm.newError(refusal)
          error.setProp('code', vm.newString(refusal.code))
          answer.reject(error)
        }),
    )
    return answer.handle
  })
  vm.setProp(vm.global, 'host', ask)
  return machine
}

/** A deadline that ends a program which waits. It cannot stop one that computes without end in this process. */
function ending({ timeoutMs, signal }: Program) {
  const controller = new AbortController()
  const { promise: late, resolve } = Promise.withResolvers<Ended>()
  const end = (outcome: Ended) => {
    controller.abort(new Error('the sandbox has its own words'))
    resolve(outcome)
  }
  const error = { name: 'TimeoutError', message: `It took longer than ${timeoutMs} ms.` }
  const timer = setTimeout(() => end({ status: 'timeout', error }), timeoutMs)
  const cancel = () => end({ status: 'cancelled' })
  if (signal.aborted) cancel()
  signal.addEventListener('abort', cancel, { once: true })
  return {
    signal: controller.signal,
    late,
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal.removeEventListener('abort', cancel)
      controller.abort()
    },
  }
}
