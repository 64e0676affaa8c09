import { dirname } from 'node:path'
import { type Environment, interpolate, type RunCommand } from './interpolate.ts'
import { type CommandOutcome, runSecretCommand } from './secret-command.ts'
import { type Branch, mapLeaves } from './tree.ts'

const foreign =
  'commands are run for toolway.yaml, or for a file that is named with --config, and this one was merely found here'

/**
 * Runs the commands that a configuration names by `${exec:COMMAND}`, each once and all at the same time, before it is
 * read in earnest. `trusted` are the files of the operator: others may lie in any folder that somebody has checked out.
 */
export async function runCommands(
  tree: Branch,
  env: Environment,
  trusted: ReadonlySet<string>,
): Promise<RunCommand | undefined> {
  if (!namesCommands(tree)) return undefined
  const wanted = new Map<string, { readonly line: string; readonly file: string }>()
  // What it would come to is not asked here: only which commands stand in what is not disabled.
  interpolate(tree, env, '', (line, file) => {
    wanted.set(keyOf(line, file), { line, file })
    return { text: 'x' }
  })
  const run = async ({ line, file }: { line: string; file: string }): Promise<CommandOutcome> =>
    trusted.has(file) ? runSecretCommand({ line, folder: dirname(file) }, env) : { fault: foreign }
  const outcomes = new Map(await Promise.all([...wanted].map(async ([key, asked]) => [key, await run(asked)] as const)))
  return (line, file) => outcomes.get(keyOf(line, file)) ?? { fault: 'the command was not run' }
}

function namesCommands(tree: Branch): boolean {
  let found = false
  mapLeaves(tree, (leaf) => {
    found ||= typeof leaf.value === 'string' && leaf.value.includes('${exec:')
    return leaf
  })
  return found
}

const keyOf = (line: string, file: string): string => JSON.stringify([dirname(file), line])
