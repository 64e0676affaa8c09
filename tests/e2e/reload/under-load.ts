import { rename, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'

export interface Outcome {
  readonly calls: number
  readonly failures: readonly unknown[]
  /** How many broken files changed nothing and were told of. */
  readonly rejected: number
  /** Milliseconds from each valid file to its being in force. */
  readonly delays: readonly number[]
}

/** Changes the configuration again and again, every other time into a broken one, while 32 callers call. */
export async function reloadUnderLoad(reloads: number): Promise<Outcome> {
  const base = { one: stdioServers.manyTools('one', 5), two: stdioServers.manyTools('two', 5) }
  await using toolway = await startToolway({ mcpServers: base }, { watch: true })
  const { gateway } = toolway
  await gateway.refresh()
  const load = startLoad(toolway)
  const delays: number[] = []
  let rejected = 0
  for (let count = 0; count < reloads; count++) {
    const before = gateway.reloadStatus()
    const inForce = () => gateway.loaded.config.policy.blockedTools[0]
    if (count % 2 === 0) {
      const added = { [`new${count}`]: { ...stdioServers.manyTools('x', 1), disabled: true } }
      await toolway.rewrite({ mcpServers: { ...base, ...added }, policy: { blockedTools: [`x.blocked_${count}`] } })
      const start = performance.now()
      await until(() => inForce() === `x.blocked_${count}`, { what: `change ${count}` })
      delays.push(performance.now() - start)
    } else {
      const expected = inForce()
      await damage(toolway.configFile, count)
      await until(() => gateway.reloadStatus().history[0] !== before.history[0], { what: `fault ${count}` })
      const { successes, last_error } = gateway.reloadStatus()
      if (last_error !== null && successes === before.successes && inForce() === expected) rejected++
    }
  }
  const { calls, failures } = await load.stop()
  return { calls, failures, rejected, delays }
}

function startLoad(toolway: LocalToolway) {
  const failures: unknown[] = []
  let calls = 0
  let stopped = false
  const caller = async (number: number) => {
    const session = await rawSession(toolway)
    for (let turn = 0; !stopped; turn++) {
      const name = `${number % 2 ? 'one' : 'two'}__tool_${turn % 5}`
      try {
        const { result, error } = await session.answer('tools/call', { name, arguments: { message: 'x' } })
        if (error || result?.isError) failures.push(error ?? result)
      } catch (error) {
        failures.push(String(error))
      }
      calls++
      // Enough of them are under way at any time; more would only slow the reloads down.
      await pause(100)
    }
  }
  const callers = Array.from({ length: 32 }, (_, number) => caller(number))
  return {
    async stop() {
      stopped = true
      await Promise.all(callers)
      return { calls, failures }
    },
  }
}

/** A file cut short, one that names what there is not, one that is no JSON; written in place or moved there. */
async function damage(file: string, count: number): Promise<void> {
  const texts = [
    '{ "mcpServers": { "one": {',
    `{ "nonsense${count}": 1 }`,
    '\u0000\u0001',
    `{ "server": { "port": "x${count}" } }`,
    '',
  ]
  const text = texts[count % 5] as string
  if (count % 3 !== 0) return writeFile(file, text)
  await writeFile(`${file}.new`, text)
  await rename(`${file}.new`, file)
}
