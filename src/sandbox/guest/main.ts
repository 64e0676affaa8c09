import { stripTypeScriptTypes } from 'node:module'
import { beginProgram } from './evaluate.ts'
import { limitWasmMemory, Machine, packMemory, unpackMemory, type WasmModule } from './machine.ts'
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
 * Entry point of the child, which runs one program, or those of one environment in turn. Arguments: the engine's module,
 * the memory limit in bytes, and `threadArgument` in a thread. It imports no module of Node that loads many others: `node:fs`, `node:zlib` and
 * `node:worker_threads` would take a third of the CPU time for starting.
 */

/** Declared here because Node's types do not declare `WebAssembly`. */
declare const WebAssembly: { compile(module: Uint8Array): Promise<WasmModule> }

const [wasmFile = '', memoryText = '', thread] = process.argv.slice(2)
const memoryBytes = Number(memoryText)
/** The engine's memory limit, which must also cover its stack and strings in transit. */
const maximum = memoryBytes + 24 * 1024 * 1024

/** How long a child waits for its program before it loads the TypeScript parser. */
const parserDelayMs = 5_000

const engineModule = await WebAssembly.compile(
  limitWasmMemory(process.getBuiltinModule('node:fs').readFileSync(wasmFile), maximum),
)
let currentProgram: GuestProgram | undefined
let environmentState: Buffer | undefined
/** Whether no program has run in the engine. */
let isFresh = true

const createMachine = (remembered?: ReturnType<typeof unpackMemory>) =>
  Machine.create({ wasm: engineModule, memory: memoryBytes, program: () => currentProgram, remembered })

let currentMachine = await createMachine()
// Warm up the code that every program needs.
currentMachine.enter(() => {
  const { vm, tools } = currentMachine
  const begun = beginProgram(vm, '0', 'javascript', false)
  if ('promise' in begun) vm.callFunction(tools.finish, vm.undefined, begun.promise, vm.false)
})
const hostChannel = (thread === threadArgument ? openThreadChannel : openProcessChannel)(receive)
hostChannel.send(messageKinds.ready, 0)
// The first call loads the parser, which takes as much CPU time as starting: do it ahead only in a child that waits.
const loadParser = () => stripTypeScriptTypes('')
const parserTimer = setTimeout(loadParser, parserDelayMs)

function receive({ kind, id, payload }: Frame): void {
  if (kind === messageKinds.memory) environmentState = payload
  else if (kind === messageKinds.run) void runTask(JSON.parse(payload.toString()) as ProgramTask)
  else if (kind === messageKinds.answer) currentProgram?.answered(id, true, payload.toString(), '')
  else if (kind === messageKinds.refusal) {
    const { code, message } = JSON.parse(payload.toString()) as HostCallError
    currentProgram?.answered(id, false, message, code)
  }
}

async function runTask(task: ProgramTask): Promise<void> {
  clearTimeout(parserTimer)
  // Otherwise loading it would count as the program's CPU time.
  if (task.language === 'typescript') loadParser()
  if (environmentState) {
    currentMachine = await createMachine(unpackMemory(environmentState, maximum))
    environmentState = undefined
    isFresh = false
  }
  const needsPrelude = isFresh
  isFresh = false
  currentProgram = new GuestProgram(task, currentMachine, hostChannel, (result) => {
    hostChannel.send(messageKinds.done, 0, JSON.stringify(result))
    // After this, the host suspends or kills the child.
    if (task.keep && !result.broken) hostChannel.send(messageKinds.memory, 0, packMemory(currentMachine.snapshot()))
  })
  currentProgram.start(needsPrelude)
}
