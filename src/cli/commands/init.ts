import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type ExitCode, exit } from '../exit.ts'
import type { CommonOptions } from '../load.ts'
import { createOutput } from '../output.ts'
import { type Shell, spelling } from '../shell.ts'
import { starter } from '../starter.ts'
import { UsageError } from '../usage.ts'

export interface InitOptions extends CommonOptions {
  readonly output: string
  readonly force?: boolean
}

/** Writes a starter configuration. */
export async function init(shell: Shell, { output: file, force, json }: InitOptions): Promise<ExitCode> {
  if (!/\.ya?ml$/.test(file)) throw new UsageError(`The starter is YAML, so ${file} should end in .yaml.`)
  const path = resolve(shell.cwd, file)
  try {
    await writeFile(path, starter, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new UsageError(`${file} is there already.`, 'Replace it with --force, or choose --output.')
    if (code === 'ENOENT') throw new UsageError(`There is no folder to write ${file} into.`)
    throw error
  }
  const output = createOutput(shell, json)
  if (json) output.value({ path })
  else output.print(nextSteps(file, spelling(shell.env)))
  return exit.ok
}

function nextSteps(file: string, command: string): string {
  const config = file === 'toolway.yaml' ? '' : ` --config ${file}`
  return [
    `Wrote ${file}. Next:`,
    `  1. put your servers under mcpServers in it`,
    `  2. ${command} validate${config}`,
    `  3. ${command} serve${config}`,
  ].join('\n')
}
