import { type JSValueHandle, QuickJS, type Snapshot } from 'quickjs-wasi'
import { type Natives, type RealmTools, realm } from './realm.ts'

/** A JavaScript engine inside WebAssembly, which knows nothing but what is given to it here. */
export interface Machine {
  readonly vm: QuickJS
  /** Functions of the realm, taken before any program could change anything. */
  readonly tools: Readonly<Record<keyof RealmTools, JSValueHandle>>
  /** Does work inside, on the account of the program, with all that follows from it. */
  enter(work: () => void): void
  /** From now on, so much time on the processor. */
  allow(cpuMs: number): void
  /** Whether that time is used up. */
  readonly exhausted: boolean
  snapshot(): Remembered
}

/** A machine at rest. */
export interface Remembered extends Omit<Snapshot, 'extensions'> {
  /** Where the functions of the realm are found again. */
  readonly tokens: Readonly<Record<keyof RealmTools, number>>
}

/** A compiled module. */
export type WasmModule = Parameters<typeof QuickJS.restore>[1]

type Callbacks = { readonly [Name in keyof Natives]: (...values: JSValueHandle[]) => string | undefined }

/** Deep recursion must end as an exception, long before the stack of the engine does. */
const stackSize = 256 * 1024

export async function createMachine(options: {
  readonly wasm: WasmModule
  readonly memory: number
  readonly callbacks: Callbacks
  readonly remembered?: Remembered
}): Promise<Machine> {
  const { wasm, memory, callbacks, remembered } = options
  const used = () => {
    const { user, system } = process.threadCpuUsage()
    return user + system
  }
  let left = Number.POSITIVE_INFINITY
  let entered = 0
  let exhausted = false

  const settings = {
    wasm,
    memoryLimit: memory,
    maxStackSize: stackSize,
    timezoneOffset: 0,
    interruptHandler: () => {
      exhausted ||= used() - entered > left
      return exhausted
    },
    moduleLoader: {
      load: (name: string): string => {
        throw new Error(`There are no modules to import here, and so no '${name}'.`)
      },
    },
    // The engine's own complaints concern nobody.
    wasi: () => ({ fd_write: () => 8 }),
  }
  const vm = remembered
    ? await QuickJS.restore({ ...remembered, extensions: [] }, settings)
    : await QuickJS.create(settings)
  const tools = remembered ? found(remembered.tokens) : installed()

  return {
    vm,
    tools,
    enter(work) {
      entered = used()
      try {
        work()
        vm.executePendingJobs()
      } finally {
        left -= used() - entered
      }
    },
    allow(cpuMs) {
      left = cpuMs * 1000
      exhausted = false
    },
    get exhausted() {
      return exhausted
    },
    snapshot() {
      const tokens = { finish: vm.exportHandle(tools.finish), answered: vm.exportHandle(tools.answered) }
      return { ...vm.snapshot(), tokens }
    },
  }

  function found({ finish, answered }: Remembered['tokens']): Machine['tools'] {
    for (const name of names) vm.registerHostCallback(name, (...values) => run(name, values))
    return { finish: vm.importHandle(finish), answered: vm.importHandle(answered) }
  }

  function installed(): Machine['tools'] {
    const natives = vm.newObject()
    for (const name of names) {
      natives.setProp(
        name,
        vm.newFunction(name, (...values) => run(name, values)),
      )
    }
    const install = vm.evalCode(`(${realm})`, 'realm.js')
    const made = vm.callFunction(install, vm.undefined, natives)
    return { finish: made.getProp('finish'), answered: made.getProp('answered') }
  }

  function run(name: keyof Natives, values: JSValueHandle[]): JSValueHandle {
    const said = callbacks[name](...values)
    return said === undefined ? vm.undefined : vm.newString(said)
  }
}

const names = ['print', 'call', 'timer', 'finished'] as const satisfies readonly (keyof Natives)[]
