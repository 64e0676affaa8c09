import { createKeptLog, type KeptLog } from '../../tests/fixtures/log.ts'
import { configSchema } from '../config/schema.ts'
import { systemClock } from '../core/clock.ts'
import { type ExecutionOutcome, type Executor, HostRefusal, type Language, type Program } from '../core/executor.ts'
import { type ExecutorOptions, SandboxExecutor } from './executor.ts'

/** The module that children are started with, as it lies among the sources. */
const childModule = new URL('guest/main.ts', import.meta.url)

const sandboxConfig = (given: object = {}) => configSchema.parse({ sandbox: given }).sandbox

export interface TestExecutor extends AsyncDisposable {
  readonly executor: Executor
  readonly log: KeptLog
  run(code: string, more?: Partial<Program> & { readonly language?: Language }): Promise<ExecutionOutcome>
}

/** An executor with a small host: it echoes, refuses, fails or never answers. */
export function openTestExecutor(given: object = {}, more: Partial<ExecutorOptions> = {}): TestExecutor {
  const log = createKeptLog()
  const executor = new SandboxExecutor({
    config: sandboxConfig(given),
    child: childModule,
    clock: systemClock,
    log,
    ...more,
  })
  return {
    executor,
    log,
    run: (code, asked = {}) =>
      executor.run({
        code,
        language: 'javascript',
        owner: 'somebody',
        timeoutMs: 20_000,
        signal: new AbortController().signal,
        host: smallHost,
        ...asked,
      }),
    [Symbol.asyncDispose]: () => executor[Symbol.asyncDispose](),
  }
}

async function smallHost(name: string, input: string, signal: AbortSignal): Promise<string> {
  if (name === 'echo') return input
  if (name === 'refuse') throw new HostRefusal('DENIED_BY_POLICY', 'No rule allows that.')
  if (name === 'fail') throw new Error('a secret of the host')
  if (name === 'never') return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  throw new HostRefusal('TOOL_NOT_FOUND', `There is no ${name}.`)
}
