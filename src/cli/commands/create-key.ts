import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import { keyName, newApiKey } from '../../stores/api-key.ts'
import { keyFile } from '../../stores/key-file.ts'
import { audited } from '../audited.ts'
import { type ExitCode, exit } from '../exit.ts'
import { type CommonOptions, load } from '../load.ts'
import { createOutput } from '../output.ts'
import { near, type Shell } from '../shell.ts'
import { UsageError } from '../usage.ts'
import { changed, warnOfAgents } from './keys.ts'

export interface CreateKeyOptions extends CommonOptions {
  readonly agent?: readonly string[]
  readonly admin?: boolean
  readonly expires?: number
  readonly hashOnly?: boolean
}

const once = 'This is the only time the key is shown: what is kept of it does not give it back.'

/** Makes an API key. Stdout has the key alone, so that a script can take it from there. */
export async function createKey(shell: Shell, id: string, options: CreateKeyOptions): Promise<ExitCode> {
  check(id, options)
  const output = createOutput(shell, options.json)
  const { config } = await load(shell, options)
  refuseTaken(id, config)
  const { agent: agents = [], admin = false, expires: lifetime } = options
  const { key, hash } = newApiKey(id)
  const entry = { id, hash, agents, admin }

  if (options.hashOnly) {
    const line = `- { id: ${JSON.stringify(id)}, hash: ${JSON.stringify(hash)}, agents: ${JSON.stringify(agents)}, admin: ${admin} }`
    if (options.json) output.value({ key, entry })
    else {
      output.print(key)
      output.print(line)
      output.note(`${once} The line below it goes under auth.keys in the configuration.`)
    }
  } else {
    const now = systemClock.now()
    const created = new Date(now).toISOString()
    const expires = lifetime === undefined ? undefined : new Date(now + lifetime).toISOString()
    await audited(config, { operation: 'create_key', arguments: { id, agents, admin, expires: expires ?? null } }, () =>
      changed(config, (keys) => {
        if (keys.some((other) => other.id === id)) throw taken(id, 'in the key file')
        return [...keys, { ...entry, agents: [...agents], created, ...(expires !== undefined && { expires }) }]
      }),
    )
    const file = keyFile(config.stores.path)
    if (options.json) output.value({ id, key, agents, admin, created, expires: expires ?? null, file })
    else {
      output.print(key)
      output.note(`${once} Its hash is in ${near(file, shell.cwd)}; a running gateway knows it within a second.`)
    }
  }
  warnOfAgents(agents, config, output)
  return exit.ok
}

function check(id: string, { hashOnly, expires }: CreateKeyOptions): void {
  if (!keyName.test(id)) {
    throw new UsageError('A key is named with up to 64 letters, digits and . _ -, a letter or digit first.')
  }
  if (hashOnly && expires !== undefined) {
    throw new UsageError('Keys of the configuration do not expire.', 'Leave out --expires, or leave out --hash-only.')
  }
}

function refuseTaken(id: string, { auth }: Config): void {
  if (auth.keys.some((key) => key.id === id)) throw taken(id, 'in the configuration')
}

const taken = (id: string, where: string): UsageError =>
  new UsageError(`There is a key ${id} already, ${where}.`, 'Choose another name, or take that one away first.')
