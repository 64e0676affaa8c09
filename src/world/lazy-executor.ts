import type { Executor } from '../core/executor.ts'

/** An executor that is loaded with the first program: most gateways never run one. */
export function lazyExecutor(load: () => Promise<Executor>): Executor {
  let loading: Promise<Executor> | undefined
  const executor = () => {
    loading ??= load()
    return loading
  }
  return {
    probe: async () => (await executor()).probe(),
    run: async (program) => (await executor()).run(program),
    async [Symbol.asyncDispose]() {
      await (await loading)?.[Symbol.asyncDispose]()
    },
  }
}
