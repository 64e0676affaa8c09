import { didYouMean } from '../../core/near.ts'
import { type ExitCode, exit } from '../exit.ts'
import { createOutput } from '../output.ts'
import type { Shell } from '../shell.ts'
import { edited, told } from '../told.ts'
import { UsageError } from '../usage.ts'
import {
  type EditConfigOptions,
  openConfig,
  refuseWorse,
  secretsLeft,
  showChange,
  takenOver,
  writeConfig,
} from './edit-config.ts'

/** Takes one server out of the configuration. */
export const removeServer = (shell: Shell, name: string, options: EditConfigOptions): Promise<ExitCode> =>
  told(() => run(shell, name, options))

async function run(shell: Shell, name: string, options: EditConfigOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const file = await openConfig(shell, options)
  const { named, path, text } = file
  if (!file.before.bytes) throw new UsageError(`There is no ${named}.`, 'Name the configuration with --config.')
  if (!text.names.includes(name)) {
    throw new UsageError(
      `There is no server ${name} in ${named}${didYouMean(name, text.names)}`,
      text.names.length > 0 ? `It has ${text.names.join(', ')}.` : 'It has none.',
    )
  }
  const after = edited(named, () => text.remove(name))
  await refuseWorse(file, after)
  if (!options.json) showChange(file, after, output)
  if (!options.dryRun) await writeConfig(file, after)
  const left = secretsLeft(file, name)
  if (options.json) output.value({ file: path, name, left, written: !options.dryRun })
  else if (!options.dryRun) {
    output.print(`Removed ${name} from ${named}. ${takenOver}`)
    if (left.length > 0) output.note(`Its secrets are still in ${left.join(', ')}.`)
  }
  return exit.ok
}
