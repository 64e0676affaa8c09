import { type JSValueHandle, QuickJS, type Snapshot } from 'quickjs-wasi'
import { type Natives, type RealmTools, realmSource } from './realm.ts'

/** The running program, which the engine calls. A text that is returned is the message of an error. */
export interface ProgramCalls {
  print(text: JSValueHandle): undefined
  call(id: JSValueHandle, name: JSValueHandle, input: JSValueHandle): string | undefined
  timer(id: JSValueHandle, ms: JSValueHandle): string | undefined
  finished(ok: JSValueHandle, text?: JSValueHandle): undefined
}

interface MachineSnapshot extends Omit<Snapshot, 'extensions'> {
  readonly tokens: Readonly<Record<keyof RealmTools, number>>
}

export type WasmModule = Parameters<typeof QuickJS.restore>[1]

interface MachineOptions {
  readonly wasm: WasmModule
  readonly memory: number
  readonly program: () => ProgramCalls | undefined
  readonly remembered?: MachineSnapshot | undefined
}

/** The engine's stack limit, low enough that deep recursion throws before the real stack overflows. */
const stackSize = 256 * 1024

function usedMicroseconds(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

/** A JavaScript engine in WebAssembly, without access to anything outside it. */
export class Machine {
  vm!: QuickJS
  /** The realm's functions, captured before any program could change them. */
  tools!: Readonly<Record<keyof RealmTools, JSValueHandle>>
  readonly #program: MachineOptions['program']
  #left = Number.POSITIVE_INFINITY
  #entered = 0
  #exhausted = false

  private constructor(program: MachineOptions['program']) {
    this.#program = program
  }

  static async create({ wasm, memory, program, remembered }: MachineOptions): Promise<Machine> {
    const machine = new Machine(program)
    const settings = machine.#settings(wasm, memory)
    machine.vm = remembered
      ? await QuickJS.restore({ ...remembered, extensions: [] }, settings)
      : await QuickJS.create(settings)
    machine.tools = remembered ? machine.#find(remembered.tokens) : machine.#install()
    return machine
  }

  /** Whether the program was interrupted or has used up its CPU time. */
  get exhausted(): boolean {
    return this.#exhausted
  }

  /** Ends the program at the engine's next interrupt, which it cannot catch. */
  interrupt(): void {
    this.#exhausted = true
  }

  allow(cpuMs: number): void {
    this.#left = cpuMs * 1000
    this.#exhausted = false
  }

  /** Runs work inside the engine and charges it to the program's CPU time. */
  enter(work: () => void): void {
    this.#entered = usedMicroseconds()
    try {
      work()
      this.vm.executePendingJobs()
    } finally {
      this.#left -= usedMicroseconds() - this.#entered
    }
  }

  snapshot(): MachineSnapshot {
    const tokens = forEachTool((name) => this.vm.exportHandle(this.tools[name]))
    return { ...this.vm.snapshot(), tokens }
  }

  #settings(wasm: WasmModule, memory: number) {
    return {
      wasm,
      memoryLimit: memory,
      maxStackSize: stackSize,
      timezoneOffset: 0,
      interruptHandler: () => {
        this.#exhausted ||= usedMicroseconds() - this.#entered > this.#left
        return this.#exhausted
      },
      onUnhandledRejection: (promise: JSValueHandle, reason: JSValueHandle, handled: boolean): void => {
        const { vm, tools } = this
        if (tools)
          vm.callFunction(tools.rejected, vm.undefined, promise, reason, handled ? vm.true : vm.false).dispose()
      },
      moduleLoader: {
        load: (name: string): string => {
          throw new Error(`Modules are not supported: cannot import '${name}'.`)
        },
      },
      wasi: (engineMemory: { readonly buffer: ArrayBuffer }) => ({
        // Ignore the engine's own output.
        fd_write: () => 8,
        // The C library asks once, for its stack protector. Loading `crypto`, the default, would take a fifth of the CPU
        // time for starting.
        random_get(at: number, length: number): number {
          const bytes = new Uint8Array(engineMemory.buffer, at, length)
          for (let index = 0; index < length; index++) bytes[index] = Math.floor(Math.random() * 256)
          return 0
        },
      }),
    }
  }

  #find(tokens: MachineSnapshot['tokens']): Machine['tools'] {
    for (const name of nativeNames) this.vm.registerHostCallback(name, this.#native(name))
    return forEachTool((name) => this.vm.importHandle(tokens[name]))
  }

  #install(): Machine['tools'] {
    const { vm } = this
    const natives = vm.newObject()
    for (const name of nativeNames) natives.setProp(name, vm.newFunction(name, this.#native(name)))
    const made = vm.callFunction(vm.evalCode(realmSource(), 'realm.js'), vm.undefined, natives)
    return forEachTool((name) => made.getProp(name))
  }

  /** The function `name` of the realm, which calls the method of that name of the program (`program.ts`). */
  #native(name: keyof Natives) {
    return (...values: JSValueHandle[]): JSValueHandle => {
      const program = this.#program() as Record<string, (...values: JSValueHandle[]) => string | undefined> | undefined
      const message = program?.[name]?.(...values)
      return message === undefined ? this.vm.undefined : this.vm.newString(message)
    }
  }
}

const toolNames = ['finish', 'answered', 'rejected', 'unfinished'] as const satisfies readonly (keyof RealmTools)[]

const forEachTool = <T>(make: (name: keyof RealmTools) => T) =>
  Object.fromEntries(toolNames.map((name) => [name, make(name)])) as Record<keyof RealmTools, T>

const nativeNames = ['print', 'call', 'timer', 'finished'] as const satisfies readonly (keyof Natives)[]

/** Loaded only for environments: most programs have none. */
const zlib = () => process.getBuiltinModule('node:zlib')

/** Compresses a snapshot, because most of the memory is empty. */
export function packMemory({ memory, stackPointer, runtimePtr, contextPtr, tokens }: MachineSnapshot): Buffer {
  const header = Buffer.alloc(memoryHeaderLength)
  const numbers = [stackPointer, runtimePtr, contextPtr, ...toolNames.map((name) => tokens[name])]
  for (const [index, number] of numbers.entries()) header.writeUInt32BE(number, index * 4)
  const { constants, zstdCompressSync } = zlib()
  const packed = zstdCompressSync(memory, { params: { [constants.ZSTD_c_compressionLevel]: 1 } })
  return Buffer.concat([header, packed])
}

export function unpackMemory(bytes: Buffer, maxLength: number): MachineSnapshot {
  const number = (index: number) => bytes.readUInt32BE(index * 4)
  return {
    memory: zlib().zstdDecompressSync(bytes.subarray(memoryHeaderLength), { maxOutputLength: maxLength }),
    stackPointer: number(0),
    runtimePtr: number(1),
    contextPtr: number(2),
    tokens: forEachTool((name) => number(3 + toolNames.indexOf(name))),
  }
}

const memoryHeaderLength = 4 * (3 + toolNames.length)

const memorySection = 5
const wasmPageSize = 65_536

/** Limits the module's memory to `bytes`: the engine's own limit does not count all allocations. */
export function limitWasmMemory(module: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  let at = 8
  while (at < module.length) {
    const start = at
    const kind = module[at++]
    const size = read(at)
    at = size.next
    if (kind === memorySection) {
      const minimum = read(read(at).next + 1)
      const maximum = Math.ceil(bytes / wasmPageSize)
      // The section declares one memory, with a maximum (flag 1).
      const body = [1, 1, ...leb(minimum.value), ...leb(Math.max(minimum.value, maximum))]
      const section = Uint8Array.from([memorySection, ...leb(body.length), ...body])
      return new Uint8Array(Buffer.concat([module.subarray(0, start), section, module.subarray(at + size.value)]))
    }
    at += size.value
  }
  throw new Error('The module has no memory section.')

  function read(from: number): { readonly value: number; readonly next: number } {
    let value = 0
    for (let next = from, shift = 0; ; shift += 7) {
      const byte = module[next++] as number
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return { value, next }
    }
  }
}

function leb(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) | 0x80)
  }
}
