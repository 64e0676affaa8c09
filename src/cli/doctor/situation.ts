import type { LoadedConfig } from '../../config/load.ts'
import { ConfigError, type ConfigProblem } from '../../config/problems.ts'
import type { Config } from '../../config/schema.ts'
import { type CommonOptions, load } from '../load.ts'
import type { Shell } from '../shell.ts'
import { withSoundServers } from './sound-servers.ts'

/** The configuration as far as there is one, and what is wrong with it. */
export interface Situation {
  /** Absent where it cannot be used. Where nothing but variables is missing, it is read as if they were set. */
  readonly loaded: LoadedConfig | undefined
  readonly problems: readonly ConfigProblem[]
  /** The same; or, where it cannot be used, one that has the sound ones of its servers and nothing else. */
  readonly understood: Config | undefined
  /** What files, commands and secret variables gave for it. */
  readonly secrets: readonly string[]
  /** The variables that servers lack, by key. */
  readonly unset: readonly UnsetVariable[]
}

interface UnsetVariable {
  readonly key: string
  readonly variable: string
}

type Outcome = Pick<Situation, 'loaded' | 'problems'>

/** Reads the configuration. A broken one is what the doctor is there for, so it is no reason to stop. */
export async function situationOf(shell: Shell, options: CommonOptions): Promise<Situation> {
  const outcome = await read(shell, options)
  const tried = outcome.loaded ? outcome : await withSoundServers(shell, options, (config) => read(shell, { config }))
  return {
    ...outcome,
    understood: tried?.loaded?.config,
    secrets: tried?.loaded?.secrets ?? [],
    unset: (tried?.problems ?? []).flatMap((problem) => {
      const variable = unsetVariable(problem)
      return variable === undefined ? [] : [{ key: problem.key, variable }]
    }),
  }
}

async function read(shell: Shell, options: CommonOptions): Promise<Outcome> {
  try {
    return { loaded: await load(shell, options), problems: [] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { loaded: await readAsIfSet(error, shell, options), problems: error.problems }
  }
}

/** What a variable that is not set is read as: good for an address, too. */
const standIn = 'http://unset.invalid/'

/** One server's missing variable must not keep the others from being looked at. */
async function readAsIfSet(
  { problems }: ConfigError,
  shell: Shell,
  options: CommonOptions,
): Promise<LoadedConfig | undefined> {
  const unset = problems.map(unsetVariable)
  if (unset.includes(undefined)) return undefined
  const env = { ...shell.env, ...Object.fromEntries(unset.map((name) => [name, standIn])) }
  return load({ ...shell, env }, options).catch((error: unknown) => {
    if (error instanceof ConfigError) return undefined
    throw error
  })
}

/** The variable that a problem is about, if it is about one that is not set. */
export const unsetVariable = ({ message }: ConfigProblem): string | undefined =>
  /^the variable (\w+) is not set/.exec(message)?.[1]
