import { stripTypeScriptTypes } from 'node:module'
import { begin } from './evaluate.ts'
import { limitMemory, Machine, packMemory, unpackMemory, type WasmModule } from './machine.ts'
import { GuestProgram } from './program.ts'
import {
  type Frame,
  type HostCallError,
  messageKinds,
  openProcessChannel,
  openThreadChannel,
  type ProgramTask,
  threadArgument,
} from './protocol.ts'

/**
 * Entry point of the child, which runs one program. Arguments: the engine's module, the memory limit in bytes, and
 * `threadArgument` in a thread. It imports no module of Node that loads many others: `node:fs`, `node:zlib` and
 * `node:worker_threads` would take a third of the CPU time for starting.
 */

/** Declared here because Node's types do not declare `WebAssembly`. */
declare const WebAssembly: { compile(module: Uint8Array): Promise<WasmModule> }

const [wasmFile = '', memoryText = '', thread] = process.argv.slice(2)
const memory = Number(memoryText)
/** The engine's memory limit, which must also cover its stack and strings in transit. */
const maximum = memory + 24 * 1024 * 1024

/** How long a child waits for its program before it loads the TypeScript parser. */
const parserDelayMs = 5_000

const wasm = await WebAssembly.compile(limitMemory(process.getBuiltinModule('node:fs').readFileSync(wasmFile), maximum))
let running: GuestProgram | undefined
let remembered: Buffer | undefined

let machine = await Machine.create({ wasm, memory, program: () => running })
// Warm up the code that every program needs.
machine.enter(() => {
  const begun = begin(machine.vm, '0', 'javascript', false)
  if ('promise' in begun)
    machine.vm.callFunction(machine.tools.finish, machine.vm.undefined, begun.promise, machine.vm.false)
})
const channel = (thread === threadArgument ? openThreadChannel : openProcessChannel)(receive)
channel.send(messageKinds.ready, 0)
// The first call loads the parser, which takes as much CPU time as starting: do it ahead only in a child that waits.
const loadParser = () => stripTypeScriptTypes('')
const waiting = setTimeout(loadParser, parserDelayMs)

function receive({ kind, id, payload }: Frame): void {
  if (kind === messageKinds.memory) remembered = payload
  else if (kind === messageKinds.run) void run(JSON.parse(payload.toString()) as ProgramTask)
  else if (kind === messageKinds.answer) running?.answered(id, true, payload.toString(), '')
  else if (kind === messageKinds.refusal) {
    const { code, message } = JSON.parse(payload.toString()) as HostCallError
    running?.answered(id, false, message, code)
  }
}

async function run(task: ProgramTask): Promise<void> {
  clearTimeout(waiting)
  // Otherwise loading it would count as the program's CPU time.
  if (task.language === 'typescript') loadParser()
  if (remembered) {
    const state = unpackMemory(remembered, maximum)
    machine = await Machine.create({ wasm, memory, program: () => running, remembered: state })
  }
  running = new GuestProgram(task, machine, channel, (result) => {
    channel.send(messageKinds.done, 0, JSON.stringify(result))
    // After this, the host kills the child.
    if (task.keep && !result.broken) channel.send(messageKinds.memory, 0, packMemory(machine.snapshot()))
  })
  running.start(remembered === undefined)
}
